// Sparse rows, and features of what each legal class of many samples leads to.
#pragma once
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bindings/convert.h"
#include "learn/factorization/samples.h"

namespace bothost::python {

using Offsets = List<std::int64_t>;
using Indices = List<std::int32_t>;
/// Rows of indices: offsets, and the rows one after the other.
using Sparse = std::pair<Offsets, Indices>;

inline fm::Rows rows_of(const Sparse& rows) { return {span_of(rows.first), span_of(rows.second)}; }

inline nb::tuple rows_to(fm::OwnedRows rows) {
  return nb::make_tuple(array_of(std::move(rows.offsets)), array_of(std::move(rows.items)));
}

/// A row for each legal class of each sample. `position(features)` makes of a sample's
/// features what `mark(position, class, items)` appends the features of a class by, ascending.
template <class Position, class Mark>
nb::tuple afterstates(const Sparse& features, const Sparse& legal, int num_features, int num_classes,
                      Position position, Mark mark) {
  const fm::Samples samples{rows_of(features), rows_of(legal), {}};
  samples.check(num_features, num_classes);
  fm::OwnedRows out;
  without_gil([&] {
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const auto from = position(samples.features[s]);
      for (const auto each : samples.legal[s]) {
        mark(from, each, out.items);
        out.end_row();
      }
    }
  });
  return rows_to(std::move(out));
}

}  // namespace bothost::python

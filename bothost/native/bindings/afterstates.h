// Features of what each legal class leads to, of many samples.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bindings/convert.h"
#include "learn/factorization/samples.h"

namespace bothost::python {

using SparseOffsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SparseItems = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Offsets and items: a row for each legal class of each sample. `position(features)` makes of a sample's
/// features what `mark(position, class, items)` appends the features of a class by, ascending.
template <class Position, class Mark>
nb::tuple afterstates(const SparseOffsets& fo, const SparseItems& fi, const SparseOffsets& lo,
                      const SparseItems& li, int num_features, int num_classes, Position position,
                      Mark mark) {
  const fm::Samples samples{{{fo.data(), fo.shape(0)}, {fi.data(), fi.shape(0)}},
                            {{lo.data(), lo.shape(0)}, {li.data(), li.shape(0)}},
                            {}};
  samples.check(num_features, num_classes);
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> items;
  {
    nb::gil_scoped_release release;
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const auto from = position(samples.features[s]);
      for (const auto each : samples.legal[s]) {
        mark(from, each, items);
        offsets.push_back(static_cast<std::int64_t>(items.size()));
      }
    }
  }
  return nb::make_tuple(array_of(std::move(offsets)), array_of(std::move(items)));
}

}  // namespace bothost::python

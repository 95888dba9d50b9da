// The native network of values Q(s, a), as class ActionValues.
#include "learn/networks/action_values.h"

#include <string>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "bindings/parameters.h"

namespace bothost::python {
namespace {

using Floats = Array<const float>;
using Offsets = Array<const std::int64_t>;

/// The network, and a guard: with the GIL released a second thread could enter while it computes.
struct ActionValues {
  ActionValues(std::vector<int> trunk, std::vector<int> head, const std::string& kernels)
      : native(std::move(trunk), std::move(head), kernels_named(kernels, false)) {}

  network::ActionValues native;
  Exclusive busy{"network"};
  std::size_t learnt_from = 0;  // moves of the last forward

  network::Candidates candidates(const Floats& positions, const Floats& moves, const Offsets& offsets) const {
    const std::size_t n = rows_of(positions, native.inputs(), "positions");
    rows_of(moves, native.features(), "moves");
    if (!has_shape(offsets, {n + 1})) throw InvalidInput("offsets: shape (n + 1,)");
    const std::int64_t* const at = offsets.data();
    bool ascending = at[0] == 0 && at[n] == static_cast<std::int64_t>(moves.shape(0));
    for (std::size_t i = 0; i < n; ++i) ascending = ascending && at[i] <= at[i + 1];
    if (!ascending) throw InvalidInput("offsets must ascend from 0 to the number of moves");
    return {positions.data(), n, moves.data(), at};
  }
};

void load(ActionValues& self, const nb::sequence& arrays) {
  const ParameterArrays<const float> parameters(arrays, self.native.shapes());
  self.busy.run([&] { self.native.load(parameters.data()); });
}

nb::object evaluate(ActionValues& self, const Floats& positions, const Floats& moves,
                    const Offsets& offsets) {
  const auto candidates = self.candidates(positions, moves, offsets);
  std::vector<float> values(moves.shape(0));
  self.busy.run([&] {
    self.learnt_from = 0;
    self.native.evaluate(candidates, values.data());
  });
  return array_of(std::move(values));
}

nb::object forward(ActionValues& self, const Floats& positions, const Floats& moves, const Offsets& offsets) {
  const auto candidates = self.candidates(positions, moves, offsets);
  const std::size_t m = moves.shape(0), width = at(self.native.representation());
  std::vector<float> values(m), representations(m * width);
  self.busy.run([&] {
    self.native.forward(candidates, values.data(), representations.data());
    self.learnt_from = m;
  });
  return nb::make_tuple(array_of(std::move(values)), array_of(std::move(representations), {m, width}));
}

void backward(ActionValues& self, const Floats& values, const Floats& representations,
              const nb::sequence& into) {
  const auto width = at(self.native.representation());
  const ParameterArrays<float> gradients(into, self.native.shapes());
  const auto held = self.busy.hold();
  if (!has_shape(values, {self.learnt_from}) || !has_shape(representations, {self.learnt_from, width}))
    throw InvalidInput("gradients of the " + std::to_string(self.learnt_from) +
                       " moves of the last forward are needed: shapes (m,) and (m, " + std::to_string(width) +
                       ")");
  nb::gil_scoped_release release;
  self.native.backward(values.data(), representations.data(), gradients.data());
}

}  // namespace

void bind_action_values(nb::module_& m) {
  nb::class_<ActionValues>(m, "ActionValues", "A network of values Q(s, a); see bothost/native/_native.pyi.")
      .def(nb::init<std::vector<int>, std::vector<int>, const std::string&>(), nb::arg("trunk"),
           nb::arg("head"), nb::arg("kernels") = "")
      .def_prop_ro("kernels", [](const ActionValues& self) { return self.native.kernels(); })
      .def("load", &load)
      .def("evaluate", &evaluate)
      .def("forward", &forward)
      .def("backward", &backward);
}

}  // namespace bothost::python

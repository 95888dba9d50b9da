// The native networks: of a policy and a value, as class Mlp; of values Q(s, a), as class ActionValues.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "bindings/parameters.h"
#include "learn/networks/action_values.h"
#include "learn/networks/mlp.h"

namespace bothost::python {
namespace {

using network::Kernels;
using Floats = Array<const float>;
using Masks = Array<const bool>;
using Integers = Array<const std::int64_t>;

/// The kernels of this name; "": the fastest here. Throws InvalidInput where the processor lacks what is
/// asked for.
const Kernels& kernels_named(const std::string& name, bool bf16) {
  if (bf16) {
    for (const Kernels* kernels : {network::amx_bf16(), network::avx512_bf16()})
      if (kernels && (name.empty() || name == kernels->name)) return *kernels;
    throw InvalidInput("this processor does not multiply in bfloat16");
  }
  if (const Kernels* fastest = network::avx512(); fastest && (name.empty() || name == fastest->name))
    return *fastest;
  if (name.empty() || name == network::baseline().name) return network::baseline();
  throw InvalidInput("there are no kernels called \"" + name + "\" here");
}

template <class Network>
void load(Network& self, const nb::sequence& arrays) {
  const ParameterArrays<const float> parameters(arrays, self.native.shapes());
  self.busy.run([&] { self.native.load(parameters.data()); });
}

// --- policies

/// The network, and a guard: with the GIL released a second thread could enter while it computes.
struct Mlp {
  Mlp(std::vector<int> widths, bool bf16, const std::string& kernels, int features, int hidden)
      : native(std::move(widths), bf16, kernels_named(kernels, bf16), {features, hidden}) {}

  network::Mlp native;
  Exclusive busy{"network"};

  /// The number of observations, which have as many masks, if there are any.
  std::size_t samples(const Floats& observations, const Masks* masks) const {
    const std::size_t n = rows_of(observations, native.row(), "observations");
    if (masks && !has_shape(*masks, {n, at(native.actions())}))
      throw InvalidInput("masks: shape (n, " + std::to_string(native.actions()) + ") is needed");
    return n;
  }
};

template <class T>
void check_length(const Array<T>& array, std::size_t n, const char* name) {
  if (!has_shape(array, {n})) throw InvalidInput(std::string(name) + ": shape (n,) is needed");
}

nb::object forward(Mlp& self, const Floats& observations) {
  const std::size_t n = self.samples(observations, nullptr), width = at(self.native.actions()) + 1;
  std::vector<float> out(n * width);
  self.busy.run([&] { self.native.forward(observations.data(), n, out.data()); });
  return array_of(std::move(out), {n, width});
}

nb::object act(Mlp& self, const Floats& observations, const Masks& masks, const Floats& uniform) {
  const std::size_t n = self.samples(observations, &masks);
  check_length(uniform, n, "uniform");
  const auto width = at(self.native.actions());
  for (std::size_t i = 0; i < n; ++i)
    if (std::none_of(masks.data() + i * width, masks.data() + (i + 1) * width, std::identity{}))
      throw InvalidInput("masks: row " + std::to_string(i) + " has no legal action");
  std::vector<std::int64_t> actions(n);
  std::vector<float> log_probs(n), values(n);
  self.busy.run([&] {
    self.native.act(observations.data(), masks.data(), uniform.data(), n, actions.data(), log_probs.data(),
                    values.data());
  });
  return nb::make_tuple(array_of(std::move(actions)), array_of(std::move(log_probs)),
                        array_of(std::move(values)));
}

nb::object gradients(Mlp& self, const Floats& observations, const Masks& masks, const Integers& actions,
                     const Floats& log_probs, const Floats& advantages, const Floats& returns,
                     const nb::sequence& into, float clip, float value_coef, float entropy_coef,
                     float kl_coef) {
  const std::size_t n = self.samples(observations, &masks);
  if (n == 0) throw InvalidInput("a minibatch has at least one sample");
  check_length(actions, n, "actions");
  check_length(log_probs, n, "log_probs");
  check_length(advantages, n, "advantages");
  check_length(returns, n, "returns");
  const std::int64_t width = self.native.actions();
  const bool* legal = masks.data();
  for (std::size_t i = 0; i < n; ++i, legal += width)
    if (const std::int64_t action = actions.data()[i]; action < 0 || action >= width || !legal[action])
      throw InvalidInput("action " + std::to_string(action) + " of sample " + std::to_string(i) +
                         " is not legal");
  const ParameterArrays<float> gradients(into, self.native.shapes());
  const network::Minibatch batch{n,
                                 observations.data(),
                                 masks.data(),
                                 actions.data(),
                                 log_probs.data(),
                                 advantages.data(),
                                 returns.data()};
  const auto terms = self.busy.run([&] {
    return self.native.gradients(batch, {clip, value_coef, entropy_coef, kl_coef}, gradients.data());
  });
  return nb::make_tuple(terms.policy, terms.value, terms.entropy, terms.approx_kl, terms.clipped);
}

// --- values of actions

/// As Mlp.
struct ActionValues {
  ActionValues(std::vector<int> trunk, std::vector<int> head, const std::string& kernels)
      : native(std::move(trunk), std::move(head), kernels_named(kernels, false)) {}

  network::ActionValues native;
  Exclusive busy{"network"};
  std::size_t learnt_from = 0;  // moves of the last forward

  network::Candidates candidates(const Floats& positions, const Floats& moves,
                                 const Integers& offsets) const {
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

nb::object evaluate(ActionValues& self, const Floats& positions, const Floats& moves,
                    const Integers& offsets) {
  const auto candidates = self.candidates(positions, moves, offsets);
  std::vector<float> values(moves.shape(0));
  self.busy.run([&] {
    self.learnt_from = 0;
    self.native.evaluate(candidates, values.data());
  });
  return array_of(std::move(values));
}

nb::object forward_values(ActionValues& self, const Floats& positions, const Floats& moves,
                          const Integers& offsets) {
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

void bind_networks(nb::module_& m) {
  nb::class_<Mlp>(m, "Mlp", "A small network of a policy and a value; see bothost/native/_native.pyi.")
      .def(nb::init<std::vector<int>, bool, const std::string&, int, int>(), nb::arg("widths"),
           nb::arg("bf16") = false, nb::arg("kernels") = "", nb::arg("features") = 0, nb::arg("hidden") = 0)
      .def_prop_ro("kernels", [](const Mlp& self) { return self.native.kernels(); })
      .def("load", &load<Mlp>)
      .def("forward", &forward)
      .def("act", &act)
      .def("gradients", &gradients);
  nb::class_<ActionValues>(m, "ActionValues", "A network of values Q(s, a); see bothost/native/_native.pyi.")
      .def(nb::init<std::vector<int>, std::vector<int>, const std::string&>(), nb::arg("trunk"),
           nb::arg("head"), nb::arg("kernels") = "")
      .def_prop_ro("kernels", [](const ActionValues& self) { return self.native.kernels(); })
      .def("load", &load<ActionValues>)
      .def("evaluate", &evaluate)
      .def("forward", &forward_values)
      .def("backward", &backward);
  m.def(
      "network_kernels",
      [] {
        nb::list names;
        for (const Kernels* kernels :
             {&network::baseline(), network::avx512(), network::avx512_bf16(), network::amx_bf16()})
          if (kernels) names.append(kernels->name);
        return names;
      },
      "The instruction sets that Mlp can use here, the slowest first.");
}

}  // namespace bothost::python

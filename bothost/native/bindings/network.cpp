// The native policy network, as class Mlp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "learn/networks/mlp.h"

namespace bothost::python {

using network::Kernels;

const Kernels& kernels_named(const std::string& name, bool bf16) {
  if (bf16) {
    if (const Kernels* fastest = network::avx512_bf16(); fastest && (name.empty() || name == fastest->name))
      return *fastest;
    throw InvalidInput("this processor does not multiply in bfloat16");
  }
  if (const Kernels* fastest = network::avx512(); fastest && (name.empty() || name == fastest->name))
    return *fastest;
  if (name.empty() || name == network::baseline().name) return network::baseline();
  throw InvalidInput("there are no kernels called \"" + name + "\" here");
}

namespace {

using network::Layer;
using network::Scorer;

using Floats = Array<const float>;
using Masks = Array<const bool>;
using Actions = Array<const std::int64_t>;

/// The network, and a guard: with the GIL released a second thread could enter while it computes.
struct Mlp {
  Mlp(std::vector<int> widths, bool bf16, const std::string& kernels, int features, int hidden)
      : native(std::move(widths), bf16, kernels_named(kernels, bf16), {features, hidden}) {}

  network::Mlp native;
  Exclusive busy{"network"};

  template <class T>
  std::vector<Layer<T>> layers(const std::vector<Array<T>>& arrays) const {
    const auto& widths = native.widths();
    if (arrays.size() != 2 * (native.num_layers() + (native.scorer().features != 0)))
      throw InvalidInput("a weight and a bias of each layer are needed, and two weights of the scorer");
    std::vector<Layer<T>> out;
    for (std::size_t l = 0; l < native.num_layers(); ++l) {
      const auto &weight = arrays[2 * l], &bias = arrays[2 * l + 1];
      const auto inputs = at(widths[l]), outputs = at(widths[l + 1]);
      if (!has_shape(weight, {outputs, inputs}) || !has_shape(bias, {outputs}))
        throw InvalidInput("layer " + std::to_string(l) + ": shapes (" + std::to_string(outputs) + ", " +
                           std::to_string(inputs) + ") and (" + std::to_string(outputs) + ",) are needed");
      out.push_back({weight.data(), bias.data()});
    }
    return out;
  }

  /// The scorer's parameters, which follow those of the layers.
  template <class T>
  Scorer<T> scorer(const std::vector<Array<T>>& arrays) const {
    const auto features = at(native.scorer().features), hidden = at(native.scorer().hidden);
    if (features == 0) return {};
    const auto &weight = arrays[arrays.size() - 2], &out = arrays.back();
    if (!has_shape(weight, {hidden, features}) || !has_shape(out, {hidden}))
      throw InvalidInput("scorer: shapes (" + std::to_string(hidden) + ", " + std::to_string(features) +
                         ") and (" + std::to_string(hidden) + ",) are needed");
    return {weight.data(), out.data()};
  }

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

void load(Mlp& self, const std::vector<Floats>& parameters) {
  const auto layers = self.layers<const float>(parameters);
  const auto scorer = self.scorer<const float>(parameters);
  self.busy.run([&] { self.native.load(layers, scorer); });
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
  std::vector<std::int64_t> actions(n);
  std::vector<float> log_probs(n), values(n);
  self.busy.run([&] {
    self.native.act(observations.data(), masks.data(), uniform.data(), n, actions.data(), log_probs.data(),
                    values.data());
  });
  return nb::make_tuple(array_of(std::move(actions)), array_of(std::move(log_probs)),
                        array_of(std::move(values)));
}

nb::object gradients(Mlp& self, const Floats& observations, const Masks& masks, const Actions& actions,
                     const Floats& log_probs, const Floats& advantages, const Floats& returns,
                     const std::vector<Array<float>>& into, float clip, float value_coef, float entropy_coef,
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
  const auto layers = self.layers<float>(into);
  const auto scorer = self.scorer<float>(into);
  const network::Minibatch batch{n,
                                 observations.data(),
                                 masks.data(),
                                 actions.data(),
                                 log_probs.data(),
                                 advantages.data(),
                                 returns.data()};
  const auto terms = self.busy.run([&] {
    return self.native.gradients(batch, {clip, value_coef, entropy_coef, kl_coef}, layers, scorer);
  });
  return nb::make_tuple(terms.policy, terms.value, terms.entropy, terms.approx_kl, terms.clipped);
}

}  // namespace

void bind_network(nb::module_& m) {
  nb::class_<Mlp>(m, "Mlp", "A small network of a policy and a value; see bothost/native/_native.pyi.")
      .def(nb::init<std::vector<int>, bool, const std::string&, int, int>(), nb::arg("widths"),
           nb::arg("bf16") = false, nb::arg("kernels") = "", nb::arg("features") = 0, nb::arg("hidden") = 0)
      .def_prop_ro("kernels", [](const Mlp& self) { return self.native.kernels(); })
      .def("load", &load)
      .def("forward", &forward)
      .def("act", &act)
      .def("gradients", &gradients);
  m.def(
      "network_kernels",
      [] {
        nb::list names;
        for (const Kernels* kernels : {&network::baseline(), network::avx512(), network::avx512_bf16()})
          if (kernels) names.append(kernels->name);
        return names;
      },
      "The instruction sets that Mlp can use here, the slowest first.");
}

}  // namespace bothost::python

// Factorization machines; bothost/training/factorization.py is their face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "core/types.h"
#include "learn/factorization/conditional.h"
#include "learn/factorization/linear.h"
#include "learn/factorization/machine.h"
#include "learn/factorization/pair_losses.h"

namespace bothost::python {
namespace {

using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

fm::Rows rows_of(const Offsets& offsets, const Indices& items) {
  return {{offsets.data(), offsets.shape(0)}, {items.data(), items.shape(0)}};
}

class Machine {
 public:
  static constexpr const char* kName = "factorization machine";

  Machine(const fm::Shape& shape, std::uint64_t seed, float deviation) : machine_(shape, seed, deviation) {}

  [[nodiscard]] Exclusive::Hold hold() { return busy_.hold(); }
  fm::Machine& get() { return machine_; }

  std::vector<std::pair<const char*, std::vector<float>*>> parameters() {
    fm::Machine& m = machine_;
    return {{"bias", &m.bias},
            {"weights", &m.weights},
            {"factors", &m.factors},
            {"mixing", &m.mixing},
            {"bias_squares", &m.bias_squares},
            {"weight_squares", &m.weight_squares},
            {"factor_squares", &m.factor_squares},
            {"mixing_squares", &m.mixing_squares}};
  }

 private:
  fm::Machine machine_;
  Exclusive busy_{kName};
};

fm::Samples checked_samples(const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
                            const Indices* labels, int features, int classes) {
  fm::Samples samples{rows_of(fo, fi), rows_of(lo, li), {}};
  if (labels) samples.labels = {labels->data(), labels->shape(0)};
  if (labels && fo.shape(0) && labels->shape(0) + 1 != fo.shape(0))
    throw InvalidInput("features and labels differ in length");
  samples.check(features, classes);
  return samples;
}

fm::Samples samples_of(Machine& self, const Offsets& fo, const Indices& fi, const Offsets& lo,
                       const Indices& li, const Indices* labels) {
  const fm::Shape& shape = self.get().shape();
  return checked_samples(fo, fi, lo, li, labels, shape.features, shape.classes);
}

/// A linear model and samples, checked against each other.
struct LinearCase {
  LinearCase(const Floats& weights, const Floats& bias, const Floats& alternatives, const Offsets& fo,
             const Indices& fi, const Offsets& lo, const Indices& li, const Offsets& ao, const Indices& ai,
             const Indices* labels)
      : model{span_of(weights), span_of(bias), span_of(alternatives)}, rows(rows_of(ao, ai)) {
    const std::size_t classes = bias.shape(0);
    if (!classes || weights.shape(0) % classes || alternatives.shape(0) % classes)
      throw InvalidInput("weights must be a row of as many numbers as bias for each feature");
    samples = checked_samples(fo, fi, lo, li, labels, static_cast<int>(weights.shape(0) / classes),
                              static_cast<int>(classes));
    if (model.alternatives.empty()) return;
    rows.check(static_cast<int>(alternatives.shape(0) / classes), "features of classes");
    if (rows.size() != samples.legal.items.size())
      throw InvalidInput("legal classes and their features differ in length");
  }

  static std::span<const float> span_of(const Floats& values) { return {values.data(), values.shape(0)}; }

  fm::LinearModel model;
  fm::Rows rows;
  fm::Samples samples;
};

nb::tuple linear_loss(const Floats& weights, const Floats& bias, const Floats& alternatives,
                      const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
                      const Offsets& ao, const Indices& ai, const Indices& labels) {
  const LinearCase given(weights, bias, alternatives, fo, fi, lo, li, ao, ai, &labels);
  std::vector<float> by_weights(weights.shape(0)), by_bias(bias.shape(0)), by_own(alternatives.shape(0));
  double loss = 0;
  {
    nb::gil_scoped_release release;
    loss = fm::linear_loss(given.model, given.samples, given.rows, {by_weights, by_bias, by_own});
  }
  return nb::make_tuple(loss, array_of(std::move(by_weights)), array_of(std::move(by_bias)),
                        array_of(std::move(by_own)));
}

nb::object linear_probabilities(const Floats& weights, const Floats& bias, const Floats& alternatives,
                                const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
                                const Offsets& ao, const Indices& ai) {
  const LinearCase given(weights, bias, alternatives, fo, fi, lo, li, ao, ai, nullptr);
  std::vector<float> out(given.samples.legal.items.size());
  {
    nb::gil_scoped_release release;
    fm::linear_probabilities(given.model, given.samples, given.rows, out.data());
  }
  return array_of(std::move(out));
}

class Conditional {
 public:
  static constexpr const char* kName = "conditional machine";

  Conditional(const fm::ConditionalShape& shape, int classes, std::uint64_t seed, float deviation)
      : machine_(shape, seed, deviation), classes_(classes) {}

  [[nodiscard]] Exclusive::Hold hold() { return busy_.hold(); }
  fm::ConditionalMachine& get() { return machine_; }
  int classes() const { return classes_; }

  std::vector<std::pair<const char*, std::vector<float>*>> parameters() {
    fm::ConditionalMachine& m = machine_;
    return {{"weights", &m.weights}, {"factors", &m.factors}, {"bias", &m.bias}, {"readout", &m.readout}};
  }

 private:
  fm::ConditionalMachine machine_;
  int classes_;
  Exclusive busy_{kName};
};

fm::ChoiceSamples choice_samples(const fm::ConditionalShape& shape, int classes, const Offsets& fo,
                                 const Indices& fi, const Offsets& lo, const Indices& li, const Offsets& co,
                                 const Indices& ci, const Indices* players, const Indices* labels) {
  fm::ChoiceSamples out{
      checked_samples(fo, fi, lo, li, labels, shape.positions, classes), rows_of(co, ci), {}};
  if (players) out.players = {players->data(), players->shape(0)};
  out.check(shape, classes);
  return out;
}

template <class Model>
nb::dict parameters_of(Model& self) {
  const auto hold = self.hold();
  nb::dict out;
  for (const auto& [name, values] : self.parameters()) out[name] = array_of(*values);
  return out;
}

template <class Model>
void load(Model& self, std::string_view name, const Floats& values) {
  const auto hold = self.hold();
  for (const auto& [own, to] : self.parameters()) {
    if (name != own) continue;
    if (values.shape(0) != to->size())
      throw InvalidInput(std::string(name) + " has " + std::to_string(values.shape(0)) + " numbers, " +
                         std::to_string(to->size()) + " are needed");
    to->assign(values.data(), values.data() + values.shape(0));
    return;
  }
  throw InvalidInput(std::string("a ") + Model::kName + " has no parameter \"" + std::string(name) + "\"");
}

int size_of(nb::handle object, std::int64_t least, std::int64_t most, const char* what) {
  const auto n = integer(object);
  if (n < least || n > most)
    throw InvalidInput(std::string(what) + " must be " + std::to_string(least) + " .. " +
                       std::to_string(most));
  return static_cast<int>(n);
}

}  // namespace

namespace {

void bind_conditional(nb::module_& m) {
  nb::class_<Conditional>(m, "ConditionalMachine", nb::is_final())
      .def("__init__",
           [](Conditional* self, nb::handle positions, nb::handle choices, nb::handle players,
              nb::handle classes, nb::handle quadratic, nb::handle rectified, nb::handle embedded,
              nb::handle random_seed, float deviation) {
             const fm::ConditionalShape shape{
                 size_of(positions, 1, 1 << 16, "positions"), size_of(choices, 1, 1 << 14, "choices"),
                 size_of(players, 0, 1 << 14, "players"),     size_of(quadratic, 0, 1 << 10, "quadratic"),
                 size_of(rectified, 0, 1 << 10, "rectified"), size_of(embedded, 0, 1 << 14, "embedded")};
             new (self)
                 Conditional(shape, size_of(classes, 1, 1 << 12, "classes"), seed(random_seed), deviation);
           })
      .def("train",
           [](Conditional& self, const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
              const Offsets& co, const Indices& ci, const Indices& players, const Indices& labels,
              const Offsets& order, float rate, float decay, nb::handle batch, bool players_only) {
             const auto samples = choice_samples(self.get().shape(), self.classes(), fo, fi, lo, li, co, ci,
                                                 &players, &labels);
             const fm::ConditionalSteps steps{rate, decay, size_of(batch, 1, 1 << 16, "batch"), players_only};
             const auto hold = self.hold();
             nb::gil_scoped_release release;
             return self.get().train(samples, {order.data(), order.shape(0)}, steps);
           })
      .def("probabilities",
           [](Conditional& self, const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
              const Offsets& co, const Indices& ci, const Indices& players) {
             const auto samples = choice_samples(self.get().shape(), self.classes(), fo, fi, lo, li, co, ci,
                                                 &players, nullptr);
             std::vector<float> out(samples.samples.legal.items.size());
             {
               const auto hold = self.hold();
               nb::gil_scoped_release release;
               self.get().probabilities(samples, out.data());
             }
             return array_of(std::move(out));
           })
      .def("pair_losses",
           [](Conditional& self, const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
              const Offsets& co, const Indices& ci, const Indices& players, const Indices& labels) {
             const auto samples = choice_samples(self.get().shape(), self.classes(), fo, fi, lo, li, co, ci,
                                                 &players, &labels);
             fm::ConditionalPairs out;
             {
               const auto hold = self.hold();
               nb::gil_scoped_release release;
               out = fm::conditional_pair_losses(self.get(), samples);
             }
             return nb::make_tuple(out.base, array_of(std::move(out.first)), array_of(std::move(out.second)),
                                   array_of(std::move(out.smallest)));
           })
      .def("anchor",
           [](Conditional& self) {
             const auto hold = self.hold();
             self.get().anchor();
           })
      .def("parameters", &parameters_of<Conditional>)
      .def("load", &load<Conditional>);
  m.def("extend_choices", [](nb::handle positions, nb::handle choices, const Indices& pairs,
                             const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
                             const Offsets& co, const Indices& ci) {
    const fm::ConditionalShape shape{
        size_of(positions, 1, 1 << 16, "positions"), size_of(choices, 1, 1 << 14, "choices"), 0, 0, 0, 0};
    if (pairs.shape(0) % 2) throw InvalidInput("combinations must be pairs");
    const auto samples = choice_samples(shape, 1 << 12, fo, fi, lo, li, co, ci, nullptr, nullptr);
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> items;
    {
      nb::gil_scoped_release release;
      fm::extend_choices(shape.positions, shape.choices, {pairs.data(), pairs.shape(0)}, samples, offsets,
                         items);
    }
    return nb::make_tuple(array_of(std::move(offsets)), array_of(std::move(items)));
  });
}

}  // namespace

void bind_fm(nb::module_& m) {
  bind_conditional(m);
  m.def("linear_loss", &linear_loss);
  m.def("linear_probabilities", &linear_probabilities);
  nb::class_<Machine>(m, "FactorizationMachine", nb::is_final())
      .def(
          "__init__",
          [](Machine* self, nb::handle features, nb::handle classes, nb::handle factors, bool shared,
             nb::handle random_seed, float deviation) {
            const fm::Shape shape{size_of(features, 1, 1 << 16, "features"),
                                  size_of(classes, 1, 1 << 12, "classes"),
                                  size_of(factors, 0, 1 << 10, "factors"), shared};
            new (self) Machine(shape, seed(random_seed), deviation);
          },
          nb::arg("features"), nb::arg("classes"), nb::arg("factors"), nb::arg("shared"), nb::arg("seed"),
          nb::arg("deviation"))
      .def("train",
           [](Machine& self, const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li,
              const Indices& labels, const Offsets& order, float rate, float factor_decay,
              float weight_decay) {
             const auto samples = samples_of(self, fo, fi, lo, li, &labels);
             const auto hold = self.hold();
             nb::gil_scoped_release release;
             return self.get().train(samples, {order.data(), order.shape(0)},
                                     {rate, factor_decay, weight_decay});
           })
      .def("probabilities",
           [](Machine& self, const Offsets& fo, const Indices& fi, const Offsets& lo, const Indices& li) {
             const auto samples = samples_of(self, fo, fi, lo, li, nullptr);
             const auto hold = self.hold();
             std::vector<float> out(samples.legal.items.size());
             {
               nb::gil_scoped_release release;
               self.get().probabilities(samples, out.data());
             }
             return array_of(std::move(out));
           })
      .def("parameters", &parameters_of<Machine>)
      .def("load", &load<Machine>)
      .def("pair_losses", [](Machine& self, const Offsets& fo, const Indices& fi, const Offsets& lo,
                             const Indices& li, const Indices& labels, std::string_view reading) {
        const auto samples = samples_of(self, fo, fi, lo, li, &labels);
        const auto hold = self.hold();
        const bool pair = reading == "pair", nested = reading == "nested";
        if (!pair && !nested && reading != "separate")
          throw InvalidInput("reading must be \"pair\", \"nested\" or \"separate\"");
        fm::PairLosses out;
        {
          nb::gil_scoped_release release;
          out = fm::pair_losses(self.get(), samples,
                                pair     ? fm::Reading::pair
                                : nested ? fm::Reading::nested
                                         : fm::Reading::separate);
        }
        nb::list losses;
        for (auto& each : out.losses)
          if (losses.size() == 0 || !pair) losses.append(array_of(std::move(each)));
        return nb::make_tuple(out.base, array_of(std::move(out.first)), array_of(std::move(out.second)),
                              losses);
      });
}

}  // namespace bothost::python

// Factorization machines; bothost/training/factorization.py is their face.

#include <array>

#include "bindings/afterstates.h"
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

using Floats = List<float>;
using Parameters = std::vector<std::pair<const char*, std::vector<float>*>>;

fm::Samples checked_samples(const Sparse& features, const Sparse& legal, const Indices* labels,
                            int num_features, int num_classes) {
  fm::Samples samples{rows_of(features), rows_of(legal), {}};
  if (labels) samples.labels = span_of(*labels);
  if (labels && features.first.size() && labels->size() + 1 != features.first.size())
    throw InvalidInput("features and labels differ in length");
  samples.check(num_features, num_classes);
  return samples;
}

// ------------------------------------------------------------------------------------- logistic regression

/// A linear model and samples, checked against each other.
struct LinearCase {
  LinearCase(const Floats& weights, const Floats& bias, const Floats& alternatives, const Sparse& features,
             const Sparse& legal, const Sparse& own, const Indices* labels)
      : model{span_of(weights), span_of(bias), span_of(alternatives)}, rows(rows_of(own)) {
    const std::size_t classes = bias.size();
    if (!classes || weights.size() % classes || alternatives.size() % classes)
      throw InvalidInput("weights must be a row of as many numbers as bias for each feature");
    samples = checked_samples(features, legal, labels, static_cast<int>(weights.size() / classes),
                              static_cast<int>(classes));
    if (model.alternatives.empty()) return;
    rows.check(static_cast<int>(alternatives.size() / classes), "features of classes");
    if (rows.size() != samples.legal.items.size())
      throw InvalidInput("legal classes and their features differ in length");
  }

  fm::LinearModel model;
  fm::Rows rows;
  fm::Samples samples;
};

nb::tuple linear_loss(const Floats& weights, const Floats& bias, const Floats& alternatives,
                      const Sparse& features, const Sparse& legal, const Sparse& own, const Indices& labels) {
  const LinearCase given(weights, bias, alternatives, features, legal, own, &labels);
  std::vector<float> by_weights(weights.size()), by_bias(bias.size()), by_own(alternatives.size());
  const double loss = without_gil(
      [&] { return fm::linear_loss(given.model, given.samples, given.rows, {by_weights, by_bias, by_own}); });
  return nb::make_tuple(loss, array_of(std::move(by_weights)), array_of(std::move(by_bias)),
                        array_of(std::move(by_own)));
}

nb::object linear_probabilities(const Floats& weights, const Floats& bias, const Floats& alternatives,
                                const Sparse& features, const Sparse& legal, const Sparse& own) {
  const LinearCase given(weights, bias, alternatives, features, legal, own, nullptr);
  std::vector<float> out(given.samples.legal.items.size());
  without_gil([&] { fm::linear_probabilities(given.model, given.samples, given.rows, out.data()); });
  return array_of(std::move(out));
}

// ------------------------------------------------------------------------------------------------ machines

struct Machine {
  static constexpr const char* kName = "factorization machine";

  fm::Samples samples(const Sparse& features, const Sparse& legal, const Indices* labels) const {
    return checked_samples(features, legal, labels, model.shape().features, model.shape().classes);
  }
  Parameters parameters() {
    return {{"bias", &model.bias},
            {"weights", &model.weights},
            {"factors", &model.factors},
            {"mixing", &model.mixing},
            {"bias_squares", &model.bias_squares},
            {"weight_squares", &model.weight_squares},
            {"factor_squares", &model.factor_squares},
            {"mixing_squares", &model.mixing_squares}};
  }

  fm::Machine model;
  Exclusive busy{kName};
};

fm::ChoiceSamples choice_samples(const fm::ConditionalShape& shape, int classes, const Sparse& features,
                                 const Sparse& legal, const Sparse& choices, const Indices* players,
                                 const Indices* labels) {
  fm::ChoiceSamples out{
      checked_samples(features, legal, labels, shape.positions, classes), rows_of(choices), {}};
  if (players) out.players = span_of(*players);
  out.check(shape, classes);
  return out;
}

struct Conditional {
  static constexpr const char* kName = "conditional machine";

  fm::ChoiceSamples samples(const Sparse& features, const Sparse& legal, const Sparse& choices,
                            const Indices& players, const Indices* labels) const {
    return choice_samples(model.shape(), classes, features, legal, choices, &players, labels);
  }
  Parameters parameters() {
    return {{"weights", &model.weights},
            {"factors", &model.factors},
            {"bias", &model.bias},
            {"readout", &model.readout}};
  }

  fm::ConditionalMachine model;
  int classes;
  Exclusive busy{kName};
};

template <class Model>
nb::dict parameters_of(Model& self) {
  const auto hold = self.busy.hold();
  nb::dict out;
  for (const auto& [name, values] : self.parameters()) out[name] = array_of(*values);
  return out;
}

template <class Model>
void load(Model& self, std::string_view name, const Floats& values) {
  const auto hold = self.busy.hold();
  for (const auto& [own, to] : self.parameters()) {
    if (name != own) continue;
    if (values.size() != to->size())
      throw InvalidInput(std::string(name) + " has " + std::to_string(values.size()) + " numbers, " +
                         std::to_string(to->size()) + " are needed");
    to->assign(values.data(), values.data() + values.size());
    return;
  }
  throw InvalidInput(std::string("a ") + Model::kName + " has no parameter \"" + std::string(name) + "\"");
}

void bind_conditional(nb::module_& m) {
  nb::class_<Conditional>(m, "ConditionalMachine", nb::is_final())
      .def("__init__",
           [](Conditional* self, nb::handle positions, nb::handle choices, nb::handle players,
              nb::handle classes, nb::handle quadratic, nb::handle rectified, nb::handle embedded,
              nb::handle random_seed, float deviation) {
             const fm::ConditionalShape shape{
                 within(positions, "positions", 1, 1 << 16), within(choices, "choices", 1, 1 << 17),
                 within(players, "players", 0, 1 << 14),     within(quadratic, "quadratic", 0, 1 << 10),
                 within(rectified, "rectified", 0, 1 << 10), within(embedded, "embedded", 0, 1 << 14)};
             new (self)
                 Conditional{{shape, seed(random_seed), deviation}, within(classes, "classes", 1, 1 << 12)};
           })
      .def("train",
           [](Conditional& self, const Sparse& features, const Sparse& legal, const Sparse& choices,
              const Indices& players, const Indices& labels, const Offsets& order, float rate, float decay,
              nb::handle batch, bool players_only) {
             const auto samples = self.samples(features, legal, choices, players, &labels);
             const fm::ConditionalSteps steps{rate, decay, within(batch, "batch", 1, 1 << 16), players_only};
             return self.busy.run([&] { return self.model.train(samples, span_of(order), steps); });
           })
      .def("probabilities",
           [](Conditional& self, const Sparse& features, const Sparse& legal, const Sparse& choices,
              const Indices& players) {
             const auto samples = self.samples(features, legal, choices, players, nullptr);
             std::vector<float> out(samples.samples.legal.items.size());
             self.busy.run([&] { self.model.probabilities(samples, out.data()); });
             return array_of(std::move(out));
           })
      .def("pair_losses",
           [](Conditional& self, const Sparse& features, const Sparse& legal, const Sparse& choices,
              const Indices& players, const Indices& labels) {
             const auto samples = self.samples(features, legal, choices, players, &labels);
             auto out = self.busy.run([&] { return fm::conditional_pair_losses(self.model, samples); });
             return nb::make_tuple(out.base, array_of(std::move(out.first)), array_of(std::move(out.second)),
                                   array_of(std::move(out.smallest)));
           })
      .def("anchor", [](Conditional& self) { self.busy.run([&] { self.model.anchor(); }); })
      .def("parameters", &parameters_of<Conditional>)
      .def("load", &load<Conditional>);
  m.def("extend_choices", [](nb::handle positions, nb::handle choices, const Indices& pairs,
                             const Sparse& features, const Sparse& legal, const Sparse& own) {
    const fm::ConditionalShape shape{
        within(positions, "positions", 1, 1 << 16), within(choices, "choices", 1, 1 << 17), 0, 0, 0, 0};
    if (pairs.size() % 2) throw InvalidInput("combinations must be pairs");
    const auto samples = choice_samples(shape, 1 << 12, features, legal, own, nullptr, nullptr);
    return rows_to(without_gil(
        [&] { return fm::extend_choices(shape.positions, shape.choices, span_of(pairs), samples); }));
  });
}

}  // namespace

void bind_fm(nb::module_& m) {
  bind_conditional(m);
  m.def("linear_loss", &linear_loss);
  m.def("linear_probabilities", &linear_probabilities);
  nb::class_<Machine>(m, "FactorizationMachine", nb::is_final())
      .def("__init__",
           [](Machine* self, nb::handle features, nb::handle classes, nb::handle factors, bool shared,
              nb::handle random_seed, float deviation) {
             const fm::Shape shape{within(features, "features", 1, 1 << 16),
                                   within(classes, "classes", 1, 1 << 12),
                                   within(factors, "factors", 0, 1 << 10), shared};
             new (self) Machine{{shape, seed(random_seed), deviation}};
           })
      .def("train",
           [](Machine& self, const Sparse& features, const Sparse& legal, const Indices& labels,
              const Offsets& order, float rate, float factor_decay, float weight_decay) {
             const auto samples = self.samples(features, legal, &labels);
             const fm::Steps steps{rate, factor_decay, weight_decay};
             return self.busy.run([&] { return self.model.train(samples, span_of(order), steps); });
           })
      .def("probabilities",
           [](Machine& self, const Sparse& features, const Sparse& legal) {
             const auto samples = self.samples(features, legal, nullptr);
             std::vector<float> out(samples.legal.items.size());
             self.busy.run([&] { self.model.probabilities(samples, out.data()); });
             return array_of(std::move(out));
           })
      .def("parameters", &parameters_of<Machine>)
      .def("load", &load<Machine>)
      .def("pair_losses", [](Machine& self, const Sparse& features, const Sparse& legal,
                             const Indices& labels, const std::string& reading) {
        const auto samples = self.samples(features, legal, &labels);
        constexpr std::array<std::string_view, 3> kReadings{"pair", "nested", "separate"};
        const auto read = Json(reading).one_of<fm::Reading>("reading", kReadings);
        auto out = self.busy.run([&] { return fm::pair_losses(self.model, samples, read); });
        nb::list losses;
        for (auto& each : out.losses)
          if (losses.size() == 0 || read != fm::Reading::pair) losses.append(array_of(std::move(each)));
        return nb::make_tuple(out.base, array_of(std::move(out.first)), array_of(std::move(out.second)),
                              losses);
      });
}

}  // namespace bothost::python

// The rule player of the pairing game.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "pairing/policy.h"

namespace bothost::python {

namespace {

/// Those of `wanted`, each checked; all legal ones without it.
ActionList valued(const Pairing::View& view, const std::optional<ActionArray>& wanted) {
  ActionList legal;
  view.legal(legal);
  if (!wanted) return legal;
  const auto span = span_of(*wanted);
  ActionList out(span.begin(), span.end());
  if (out.empty()) throw InvalidInput("actions: there are none");
  ActionList sorted = out;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) throw InvalidInput("actions: one is there twice");
  for (const Action action : out)
    if (std::ranges::find(legal, action) == legal.end())
      throw InvalidInput("actions: " + std::to_string(action) + " is not legal here");
  return out;
}

nb::object rule_returns(const AnyView& view, nb::handle deals_object, nb::handle seed_object,
                        const std::optional<ActionArray>& wanted) {
  const auto rows = within<std::size_t>(deals_object, "deals", 1, 100'000);
  Rng rng(seed(seed_object));
  // A copy: another thread may fold events into `view` meanwhile.
  const Pairing::View own = asked_view<Pairing>(view);
  const ActionList actions = valued(own, wanted);
  auto leads = without_gil([&] { return pairing::leads_after(own, actions, rows, rng); });
  return array_of(std::move(leads), {rows, actions.size()});
}

}  // namespace

void bind_pairing(nb::module_& m) {
  m.def("pairing_rule_choice",
        [](const AnyView& view, double deny, double keep, double promise, double force_from) {
          for (const double weight : {deny, keep, promise})
            if (!(std::abs(weight) <= 1000)) throw InvalidInput("a weight is not within -1000 .. 1000");
          if (std::isnan(force_from)) throw InvalidInput("force_from must be a number");
          const auto choice = pairing::choose(asked_view<Pairing>(view), {deny, keep, promise, force_from});
          return nb::make_tuple(choice.action, choice.reason.text());
        });
  m.def("pairing_rule_returns", &rule_returns);
}

}  // namespace bothost::python

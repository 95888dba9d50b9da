// The rule player of the pairing game.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/erased.h"
#include "pairing/policy.h"

namespace nb = nanobind;

namespace bothost::python {

namespace {

const Pairing::View& asked(const AnyView& view) {
  const auto* own = dynamic_cast<const erased::ViewOf<Pairing>*>(&view);
  if (!own) throw nb::type_error("the view is not one of pairing");
  if (!own->asked()) throw InvalidInput("this seat is not asked");
  return own->native();
}

nb::object rule_returns(const AnyView& view, nb::handle deals_object, nb::handle seed_object) {
  const std::int64_t deals = integer(deals_object);
  if (deals < 1 || deals > 100000)
    throw InvalidInput("deals: " + std::to_string(deals) + " is not within 1 .. 100000");
  Rng rng(seed(seed_object));
  const Pairing::View own = asked(view);  // a copy: another thread may fold events into `view` meanwhile
  const auto rows = static_cast<std::size_t>(deals);
  std::vector<float> leads;
  {
    nb::gil_scoped_release release;
    leads = pairing::leads_after(own, rows, rng);
  }
  const std::size_t actions = leads.size() / rows;
  return array_of(std::move(leads), {rows, actions});
}

}  // namespace

void bind_pairing(nb::module_& m) {
  m.def(
      "pairing_rule_choice",
      [](const AnyView& view, double deny, double keep, double promise, double force_from) {
        const auto choice = pairing::choose(asked(view), {deny, keep, promise, force_from});
        return nb::make_tuple(choice.action, choice.reason.text());
      },
      nb::arg("view"), nb::arg("deny"), nb::arg("keep"), nb::arg("promise"), nb::arg("force_from"));
  m.def("pairing_rule_returns", &rule_returns, nb::arg("view"), nb::arg("deals"), nb::arg("seed"));
}

}  // namespace bothost::python

// Search as _native.pyi describes it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "core/registry.h"
#include "search/any_search.h"

namespace bothost::python {

namespace {

search::Options options_of(const Json& json) {
  search::Options o;
  const std::array<std::pair<std::string_view, double*>, 6> numbers{{{"exploration", &o.exploration},
                                                                     {"playout_noise", &o.playout_noise},
                                                                     {"widening", &o.widening},
                                                                     {"points_scale", &o.points_scale},
                                                                     {"prior_visits", &o.prior_visits},
                                                                     {"mixing", &o.mixing}}};
  using Names = std::array<std::string_view, 2>;
  for (const auto& [key, value] : json.object("options")) {
    const auto* number = std::ranges::find(numbers, key, &std::pair<std::string_view, double*>::first);
    if (number != numbers.end())
      *number->second = value.number(key);
    else if (key == "leaf")
      o.leaf = static_cast<search::Leaf>(value.one_of(key, Names{"rollout", "evaluator"}));
    else if (key == "utility")
      o.utility = static_cast<search::Utility>(value.one_of(key, Names{"sign", "points"}));
    else if (key == "playout")
      o.playout = static_cast<search::Playout>(value.one_of(key, Names{"random", "rule"}));
    else if (key == "others")
      o.others = static_cast<search::Others>(value.one_of(key, Names{"tree", "policy"}));
    else if (key == "belief")
      o.belief = static_cast<int>(value.integer(key, 0, 100'000));
    else if (key == "leaf_moves")
      o.leaf_moves = static_cast<int>(value.integer(key, 0, 1 << 20));
    else if (key == "leaf_batch")
      o.leaf_batch = static_cast<int>(value.integer(key, 1, 4096));
    else if (key == "threads")
      o.threads = static_cast<int>(value.integer(key, 1, 256));
    else if (key == "max_nodes")
      o.max_nodes = static_cast<std::uint32_t>(value.integer(key, 1, 1 << 28));
    else
      throw InvalidInput("a search has no option \"" + key + "\"");
  }
  return o;
}

/// The search, and a guard: with the GIL released a second thread could enter while it runs.
struct Search {
  std::unique_ptr<search::AnySearch> native;
  Exclusive busy{"search"};
};

bool run(Search& self, nb::handle iterations, nb::handle ms) {
  search::Until until;
  if (!iterations.is_none()) {
    const auto most = integer(iterations);
    if (most < 0) throw InvalidInput("iterations must not be negative");
    until.iterations = static_cast<std::uint64_t>(most);
  }
  if (!ms.is_none()) {
    const double left = nb::cast<double>(ms);
    if (std::isnan(left)) throw InvalidInput("ms must be a number");
    if (left < 1e12)
      until.deadline =
          search::Clock::now() + std::chrono::duration_cast<search::Clock::duration>(
                                     std::chrono::duration<double, std::milli>(std::max(0.0, left)));
  }
  if (iterations.is_none() && ms.is_none()) throw InvalidInput("run() needs iterations, ms, or both");
  const auto held = self.busy.hold();
  nb::gil_scoped_release release;
  return self.native->run(until);
}

nb::list leaves(Search& self) {
  const auto held = self.busy.hold();
  nb::list out;
  for (std::size_t i = 0; i < self.native->num_leaves(); ++i)
    out.append(nb::make_tuple(nb::cast(self.native->leaf(i)), array_of(self.native->leaf_legal(i))));
  return out;
}

nb::list root_actions(Search& self) {
  const auto held = self.busy.hold();
  nb::list out;
  for (const auto& root : self.native->root_actions())
    out.append(nb::make_tuple(root.action, root.visits, root.value));
  return out;
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<Search>(m, "Search", "Information-set UCT from one seat's view, in coroutine form.")
      .def(
          "__init__",
          [](Search* self, const AnyView& root, nb::handle seed_value, nb::dict options) {
            auto settled = options_of(json_from(options));
            settled.seed = seed(seed_value);
            new (self) Search{find_game(root.game().name()).search(root, settled)};
          },
          nb::arg("root"), nb::arg("seed"), nb::arg("options"))
      .def("run", &run, nb::arg("iterations") = nb::none(), nb::arg("ms") = nb::none())
      .def(
          "feed",
          [](Search& self, const List<float>& values) {
            const auto held = self.busy.hold();
            self.native->feed(span_of(values));
          },
          nb::arg("values").noconvert())
      .def(
          "advance",
          [](Search& self, const AnyView& root, const ActionArray& actions) {
            const auto held = self.busy.hold();
            self.native->advance(root, span_of(actions));
          },
          nb::arg("root"), nb::arg("actions"))
      .def(
          "commit",
          [](Search& self, nb::handle action) {
            const auto held = self.busy.hold();
            self.native->commit(integer(action));
          },
          nb::arg("action"))
      .def(
          "resample_determinizations",
          [](Search& self, nb::handle deals) {
            const auto held = self.busy.hold();
            self.native->resample_determinizations(
                static_cast<int>(std::clamp<std::int64_t>(integer(deals), 0, 1 << 20)));
          },
          nb::arg("deals"))
      .def_prop_ro("leaves", &leaves)
      .def_prop_ro("root_actions", &root_actions)
      .def_prop_ro("iterations", [](Search& self) { return self.native->iterations(); })
      .def_prop_ro("deals", [](Search& self) { return self.native->deals(); })
      .def_prop_ro("tempering_exponent", [](Search& self) { return self.native->tempering_exponent(); })
      .def_prop_ro("nodes", [](Search& self) { return self.native->nodes(); });
}

}  // namespace bothost::python

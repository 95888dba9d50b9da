// Search as _native.pyi describes it.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"
#include "core/options.h"
#include "core/registry.h"
#include "search/any_search.h"

namespace bothost::python {

namespace {

search::Options options_of(const Json& json) {
  constexpr std::array<std::string_view, 2> kLeaves{"rollout", "evaluator"}, kUtilities{"sign", "points"},
      kPlayouts{"random", "rule"}, kOthers{"tree", "policy"};
  constexpr double kAny = std::numeric_limits<double>::max();
  OptionReader read(json);
  search::Options o;
  read("exploration", o.exploration, 0, kAny);
  read("leaf", o.leaf, kLeaves);
  read("playout", o.playout, kPlayouts);
  read("playout_noise", o.playout_noise, 0, 1);
  read("others", o.others, kOthers);
  read("belief", o.belief, 0, 100'000);
  read("widening", o.widening, 0, kAny);
  read("utility", o.utility, kUtilities);
  read("points_scale", o.points_scale, 0, kAny);
  read("prior_visits", o.prior_visits, 0, kAny);
  read("mixing", o.mixing, 0, 1);
  read("leaf_batch", o.leaf_batch, 1, 4096);
  read("leaf_moves", o.leaf_moves, 0, 1 << 20);
  read("threads", o.threads, 1, 256);
  read("max_nodes", o.max_nodes, 1, 1 << 28);
  read.refuse_others("a search");
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
  return self.busy.run([&] { return self.native->run(until); });
}

/// A member of the search, for one thread at a time.
template <class R, class... A>
constexpr auto held(R (search::AnySearch::*member)(A...)) {
  return [member](Search& self, typename Parameter<A>::Type... given) {
    const auto hold = self.busy.hold();
    return (*self.native.*member)(Parameter<A>::of(given)...);
  };
}
template <class R>
constexpr auto held(R (search::AnySearch::*member)() const) {
  return [member](Search& self) {
    const auto hold = self.busy.hold();
    return (*self.native.*member)();
  };
}

nb::list leaves(Search& self) {
  const auto held = self.busy.hold();
  nb::list out;
  for (auto& [view, asked] : self.native->leaves())
    out.append(nb::make_tuple(nb::cast(std::move(view)), array_of(std::move(asked))));
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
  nb::class_<search::AnyPlayerModel>(m, "PlayerModel");
  nb::class_<Search>(m, "Search", "Information-set UCT from one seat's view, in coroutine form.")
      .def(
          "__init__",
          [](Search* self, const AnyView& root, nb::handle seed_value, nb::dict options,
             std::shared_ptr<search::AnyPlayerModel> players) {
            auto settled = options_of(json_from(options));
            settled.seed = seed(seed_value);
            settled.players = std::move(players);
            new (self) Search{find_game(root.game().name()).search(root, settled)};
          },
          nb::arg("root"), nb::arg("seed"), nb::arg("options"), nb::arg("players").none() = nb::none())
      .def("run", &run, nb::arg("iterations") = nb::none(), nb::arg("ms") = nb::none())
      .def("feed", held(&search::AnySearch::feed), nb::arg("values").noconvert())
      .def("advance", held(&search::AnySearch::advance), nb::arg("root"), nb::arg("actions"))
      .def("commit", held(&search::AnySearch::commit), nb::arg("action"))
      .def("resample_determinizations", held(&search::AnySearch::resample_determinizations), nb::arg("deals"))
      .def_prop_ro("leaves", &leaves)
      .def_prop_ro("root_actions", &root_actions)
      .def_prop_ro("iterations", held(&search::AnySearch::iterations))
      .def_prop_ro("deals", held(&search::AnySearch::deals))
      .def_prop_ro("tempering_exponent", held(&search::AnySearch::tempering_exponent))
      .def_prop_ro("nodes", held(&search::AnySearch::nodes));
}

}  // namespace bothost::python

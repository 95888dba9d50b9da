// The rule player of Othello.

#include <string_view>

#include "bindings/afterstates.h"
#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/options.h"
#include "othello/othello.h"
#include "othello/search.h"

namespace bothost::python {
namespace {

othello::SearchLimits limits_of(nb::handle depth, nb::handle solve_from, nb::handle nodes) {
  return {within(depth, "depth", 1, 30), within(solve_from, "solve_from", 0, 60),
          within<std::uint64_t>(nodes, "nodes", 1, std::int64_t{1} << 40)};
}

othello::Weights weights_of(const Json& json) {
  OptionReader read(json);
  othello::Weights weights;
  const auto weight = [&](std::string_view name, int& out) { read(name, out, -10'000, 10'000); };
  weight("mobility", weights.mobility);
  weight("frontier", weights.frontier);
  weight("corners", weights.corners);
  weight("stability", weights.stability);
  weight("danger", weights.danger);
  weight("edges", weights.edges);
  weight("greed", weights.greed);
  read.refuse_others("Othello's judgement");
  return weights;
}

othello::Board board_asked(const AnyView& view) { return asked_view<Othello>(view).hand().now.board; }

nb::tuple afterstates_of(const Sparse& features, const Sparse& legal) {
  return afterstates(features, legal, 3 * Othello::kSquares, Othello::kSquares + 1, othello::board_of,
                     othello::mark_afterstate);
}

}  // namespace

void bind_othello(nb::module_& m) {
  m.def("othello_afterstates", &afterstates_of);
  m.def("othello_choose", [](const AnyView& view, nb::handle depth, nb::handle solve_from, nb::handle nodes) {
    const auto limits = limits_of(depth, solve_from, nodes);
    const auto board = board_asked(view);
    const auto found = without_gil([&] { return othello::choose(board, limits); });
    const int action = found.square < 0 ? static_cast<int>(Othello::kPass) : found.square;
    return nb::make_tuple(action, static_cast<double>(found.score) / othello::kDisc, found.depth, found.exact,
                          found.nodes);
  });
  m.def("othello_judge",
        [](const AnyView& view, nb::handle depth, nb::handle solve_from, nb::handle nodes, nb::dict weights) {
          const auto limits = limits_of(depth, solve_from, nodes);
          const auto settled = weights_of(json_from(weights));
          const auto board = board_asked(view);
          nb::list out;
          for (const auto& move : without_gil([&] { return othello::judge_moves(board, limits, settled); }))
            out.append(nb::make_tuple(move.square, static_cast<double>(move.score) / othello::kDisc));
          return out;
        });
}

}  // namespace bothost::python

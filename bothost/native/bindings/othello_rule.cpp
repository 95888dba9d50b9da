// The rule player of Othello.

#include <array>
#include <string_view>
#include <utility>
#include <vector>

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

/// The judgement of each legal class of each position; 0 for a class that is no move of a disc there.
auto judgements_of(const Sparse& features, const Sparse& legal, nb::handle depth, nb::handle solve_from,
                   nb::handle nodes, nb::dict weights) {
  const fm::Samples samples{rows_of(features), rows_of(legal), {}};
  samples.check(3 * Othello::kSquares, Othello::kSquares + 1);
  const auto limits = limits_of(depth, solve_from, nodes);
  const auto settled = weights_of(json_from(weights));
  std::vector<float> out;
  without_gil([&] {
    for (std::size_t s = 0; s < samples.size(); ++s) {
      std::array<int, Othello::kSquares + 1> scores{};
      for (const auto& move : othello::judge_moves(othello::board_of(samples.features[s]), limits, settled))
        scores[move.square] = move.score;
      for (const auto each : samples.legal[s])
        out.push_back(static_cast<float>(scores[each]) / othello::kDisc);
    }
  });
  return array_of(std::move(out));
}

}  // namespace

void bind_othello(nb::module_& m) {
  m.def("othello_afterstates", &afterstates_of);
  m.def("othello_judgements", &judgements_of);
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

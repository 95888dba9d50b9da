// The rule player of Othello.
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/erased.h"
#include "othello/othello.h"
#include "othello/search.h"

namespace nb = nanobind;

namespace bothost::python {

void bind_othello(nb::module_& m) {
  m.def(
      "othello_choose",
      [](const AnyView& view, nb::handle depth, nb::handle solve_from, nb::handle nodes) {
        const auto* own = dynamic_cast<const erased::ViewOf<Othello>*>(&view);
        if (!own) throw nb::type_error("the view is not one of Othello");
        if (!own->asked()) throw InvalidInput("this seat is not asked");
        othello::SearchLimits limits;
        const auto within = [](nb::handle value, const char* name, std::int64_t low, std::int64_t high) {
          const std::int64_t number = integer(value);
          if (number < low || number > high)
            throw InvalidInput(std::string(name) + ": " + std::to_string(number) + " is not within " +
                               std::to_string(low) + " .. " + std::to_string(high));
          return number;
        };
        limits.depth = static_cast<int>(within(depth, "depth", 1, 30));
        limits.solve_from = static_cast<int>(within(solve_from, "solve_from", 0, 60));
        limits.nodes = static_cast<std::uint64_t>(within(nodes, "nodes", 1, std::int64_t{1} << 40));
        const othello::Board board = own->native().hand().now.board;
        othello::SearchResult found;
        {
          nb::gil_scoped_release release;
          found = othello::choose(board, limits);
        }
        const int action = found.square < 0 ? static_cast<int>(Othello::kPass) : found.square;
        return nb::make_tuple(action, static_cast<double>(found.score) / othello::kDisc, found.depth,
                              found.exact, found.nodes);
      },
      nb::arg("view"), nb::arg("depth") = 6, nb::arg("solve_from") = 12, nb::arg("nodes") = 120000);
}

}  // namespace bothost::python

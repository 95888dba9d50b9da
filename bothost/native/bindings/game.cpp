// Game, State, View, Oracle and Block as bothost/rules/game.py describes them.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <bit>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/json_text.h"

namespace bothost::python {

namespace {

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
std::int64_t fnv1a(std::string_view data) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : data) h = (h ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
  return std::bit_cast<std::int64_t>(h);
}

nb::tuple seats_to(SeatMask mask) {
  nb::list out;
  for (; mask; mask &= mask - 1) out.append(std::countr_zero(mask));
  return nb::tuple(out);
}

nb::object encode_view(const AnyView& view, std::string_view name, nb::handle out) {
  FloatOut floats(view.game(), name, Block::Of::view, out);
  view.encode(floats.block, floats.data);
  return floats.array;
}

nb::object encode_actions(const AnyView& view, std::string_view name, const ActionArray& actions,
                          nb::handle out) {
  const std::size_t n = actions.shape(0);
  FloatOut floats(view.game(), name, Block::Of::action, out, {&n, 1});
  view.encode_actions(floats.block, span_of(actions), floats.data);
  return floats.array;
}

std::unique_ptr<AnyState> sample_state(const AnyView& view, nb::handle seed_object) {
  const auto seed_value = seed(seed_object);
  const auto own = view.clone();  // another thread may fold events into `view` meanwhile
  nb::gil_scoped_release release;
  return own->sample(seed_value);
}

std::unique_ptr<AnyState> replay(const AnyGame& game, nb::handle deal, nb::handle actions) {
  auto state = game.state_from_deal(json_from(deal));
  for (nb::handle pair : actions) {
    if (!nb::isinstance<nb::sequence>(pair) || nb::len(pair) != 2)
      throw InvalidInput("replay: every action is a pair (seat, action)");
    const auto both = nb::borrow<nb::sequence>(pair);
    state->apply(integer(both[0]), integer(both[1]));
  }
  return state;
}

/// Legal actions of many views at once: all ids, and where each view's begin.
nb::tuple legal_many(nb::sequence views) {
  ActionList ids;
  std::vector<std::int64_t> offsets{0};
  for (nb::handle item : views) {
    const AnyView* view = nullptr;
    if (!nb::try_cast(item, view) || !view) throw nb::type_error("legal_many: every item is a native View");
    view->legal(ids);
    offsets.push_back(static_cast<std::int64_t>(ids.size()));
  }
  return nb::make_tuple(array_of(std::move(ids)), array_of(std::move(offsets)));
}

/// What trainers alone may see: it takes a State, which no strategy at a table ever holds.
struct Oracle {
  nb::object owner;
  const AnyState* state;
  Seat seat;
};

void bind_block(nb::module_& m) {
  nb::class_<Block>(m, "Block", "One named encoder tensor, float32, C order.")
      .def_ro("name", &Block::name)
      .def_prop_ro("shape", [](const Block& b) { return nb::tuple(nb::cast(b.shape)); })
      .def_ro("version", &Block::version)
      .def_prop_ro("of", [](const Block& b) { return name_of(b.of); })
      .def_ro("doc", &Block::doc)
      .def("__repr__", [](const Block& b) { return "<Block " + b.name + ">"; });
}

template <class T>
void bind_clone(nb::class_<T>& of) {
  of.def("clone", &T::clone).def("__copy__", &T::clone);
  of.def("__deepcopy__", [](const T& self, nb::handle) { return self.clone(); });
}

void bind_view(nb::module_& m) {
  nb::class_<AnyView> view(m, "View", "What one seat may know. Mutable; clone before sharing.");
  view.def_prop_ro("game", [](const AnyView& v) { return game_of(v.game()); })
      .def_prop_ro("seat", &AnyView::seat)
      .def_prop_ro("seq", &AnyView::seq)
      .def_prop_ro("asked", &AnyView::asked)
      .def_prop_ro("to_act",
                   [](const AnyView& v) -> nb::object {
                     const Seat seat = v.to_act();
                     return seat == kNobody ? nb::none() : nb::object(nb::int_(static_cast<int>(seat)));
                   })
      .def_prop_ro("terminal", &AnyView::terminal)
      .def_prop_ro("phase", &AnyView::phase)
      .def("legal",
           [](const AnyView& v) {
             ActionList& list = erased::scratch();
             v.legal(list);
             return array_of(list);
           })
      .def("is_legal", bound(&AnyView::is_legal), nb::arg("action"))
      .def("observe", &AnyView::observe, nb::arg("event"))
      .def(
          "observe_all",
          [](AnyView& v, nb::handle events) {
            for (nb::handle event : events) {
              std::string_view text;
              if (!nb::try_cast(event, text)) throw nb::type_error("an event is a string");
              v.observe(text);
            }
          },
          nb::arg("events"))
      .def("apply", bound(&AnyView::apply), nb::arg("action"))
      .def(
          "notation", [](const AnyView& v, nb::handle a) { return v.game().notation(integer(a)); },
          nb::arg("action"))
      .def(
          "parse", [](const AnyView& v, std::string_view text) { return v.game().parse(text); },
          nb::arg("text"))
      .def("sample_state", &sample_state, nb::arg("seed"))
      .def("record",
           [](const AnyView& v) -> nb::object {
             const auto record = v.record();
             return record ? nb::object(nb::make_tuple(json_to(record->deal), pairs_to(record->actions)))
                           : nb::none();
           })
      .def("encode", &encode_view, nb::arg("block"), nb::arg("out") = nb::none())
      .def("encode_actions", &encode_actions, nb::arg("block"), nb::arg("actions").noconvert(),
           nb::arg("out") = nb::none())
      .def("to_bytes",
           [](const AnyView& v) {
             const std::string data = v.to_bytes();
             return nb::bytes(data.data(), data.size());
           })
      .def("to_json", bound(&AnyView::to_json))
      .def("hash", [](const AnyView& v) { return fnv1a(v.to_bytes()); })
      .def("__eq__",
           [](const AnyView& v, nb::handle other) {
             return nb::isinstance<AnyView>(other) && v.equals(*nb::cast<const AnyView*>(other));
           })
      .def("__repr__", [](const AnyView& v) {
        return "<View of " + std::string(v.game().name()) + ", seat " + std::to_string(v.seat()) + ", seq " +
               std::to_string(v.seq()) + ", " + std::string(v.phase()) + ">";
      });
  view.attr("__hash__") = nb::none();
  bind_clone(view);
}

void bind_state(nb::module_& m) {
  nb::class_<AnyState> state(m, "State", "The full truth of one hand.");
  bind_clone(state);
  state.def_prop_ro("game", [](const AnyState& s) { return game_of(s.game()); })
      .def_prop_ro("to_act", [](const AnyState& s) { return seats_to(s.to_act()); })
      .def_prop_ro("terminal", &AnyState::terminal)
      .def_prop_ro("returns", [](const AnyState& s) { return nb::tuple(nb::cast(s.returns())); })
      .def_prop_ro("deal", bound(&AnyState::deal))
      .def_prop_ro("actions", [](const AnyState& s) { return pairs_to(s.actions()); })
      .def(
          "legal",
          [](const AnyState& s, nb::handle seat) {
            ActionList& list = erased::scratch();
            s.legal(integer(seat), list);
            return array_of(list);
          },
          nb::arg("seat"))
      .def("apply", bound(&AnyState::apply), nb::arg("seat"), nb::arg("action"))
      .def("events", bound(&AnyState::events), nb::arg("seat"), nb::arg("since") = 0)
      .def("view", bound(&AnyState::view), nb::arg("seat"))
      .def("__repr__", [](const AnyState& s) {
        return "<State of " + std::string(s.game().name()) + " after " + std::to_string(s.actions().size()) +
               " actions>";
      });

  nb::class_<Oracle>(m, "Oracle", "Features of the hidden truth, for trainers: made from a State.")
      .def(
          "__init__",
          [](Oracle* self, nb::object state, nb::handle seat) {
            const auto* s = nb::cast<const AnyState*>(state);
            if (!s) throw nb::type_error("Oracle: state must be a State");
            new (self) Oracle{state, s, s->game().checked_seat(integer(seat))};
          },
          nb::arg("state"), nb::arg("seat"))
      .def(
          "encode",
          [](const Oracle& o, std::string_view name, nb::handle out) {
            FloatOut floats(o.state->game(), name, Block::Of::oracle, out);
            o.state->encode_oracle(o.seat, floats.block, floats.data);
            return floats.array;
          },
          nb::arg("block"), nb::arg("out") = nb::none());
}

std::unique_ptr<AnyView> view_from_bytes(const AnyGame& game, const nb::bytes& data) {
  return game.view_from_bytes({data.c_str(), data.size()});
}

}  // namespace

void bind_game(nb::module_& m) {
  m.def("legal_many", &legal_many, nb::arg("views"));
  bind_block(m);
  bind_view(m);
  bind_state(m);
  nb::class_<AnyGame>(m, "Game", "A game with its rules settled.")
      .def_prop_ro("name", &AnyGame::name)
      .def_prop_ro("rules", bound(&AnyGame::rules))
      .def_prop_ro("num_seats", &AnyGame::num_seats)
      .def_prop_ro("num_actions", &AnyGame::num_actions)
      .def_prop_ro("format_version", &AnyGame::format_version)
      .def_prop_ro("blocks",
                   [](const AnyGame& g) {
                     nb::dict out;
                     for (const Block& block : g.blocks())
                       out[block.name.c_str()] = nb::cast(&block, nb::rv_policy::reference);
                     return out;
                   })
      .def("new_state", bound(&AnyGame::new_state), nb::arg("seed"))
      .def("state_from_deal", bound(&AnyGame::state_from_deal), nb::arg("deal"))
      .def("new_view", bound(&AnyGame::new_view), nb::arg("seat"))
      .def("view_from_bytes", &view_from_bytes, nb::arg("data"))
      .def(
          "view_json",
          [](const AnyGame& g, const nb::bytes& data) {
            std::string text;
            append_json(text, view_from_bytes(g, data)->to_json());
            return text;
          },
          nb::arg("data"))
      .def("view_from_json", bound(&AnyGame::view_from_json), nb::arg("data"))
      .def("view_from_snapshot", bound(&AnyGame::view_from_snapshot), nb::arg("data"))
      .def("replay", &replay, nb::arg("deal"), nb::arg("actions"))
      .def("notation", bound(&AnyGame::notation), nb::arg("action"))
      .def("parse", &AnyGame::parse, nb::arg("text"))
      .def("__repr__", [](const AnyGame& g) { return "<Game " + std::string(g.name()) + ">"; });
}

}  // namespace bothost::python

// VecEnv as bothost/rules/game.py describes it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/exclusive.h"

namespace bothost::python {

namespace {

/// The environment, and a guard: with the GIL released a second thread could enter while a step is under way.
struct VecEnv {
  VecEnv(const AnyGame& game, std::int64_t n, std::uint64_t seed) : env(game.vec_env(n, seed)) { publish(); }

  void publish() {
    ids = env->legal_ids();
    num_legal = env->num_legal();
  }

  std::unique_ptr<AnyVecEnv> env;
  Exclusive busy{"VecEnv"};
  std::vector<Action> actions;
  /// The legal ids as the last complete step left them.
  std::shared_ptr<Action[]> ids;
  std::size_t num_legal = 0;
};

void step(VecEnv& self, const ActionArray& given) {
  const auto held = self.busy.hold();
  // Copied before the GIL goes, so that no other thread can change them between check and use.
  self.actions.assign(given.data(), given.data() + given.size());
  without_gil([&] { self.env->step(self.actions); });
  self.publish();
}

/// A read-only array over memory that `owner` keeps alive.
template <class T, class... Shape>
nb::object array_over(const T* data, nb::handle owner, Shape... shape) {
  return nb::ndarray<nb::numpy, const T>(data, {at(shape)...}, owner).cast();
}

template <auto values>
nb::object by_env(nb::handle_t<VecEnv> self) {
  const auto& all = (*nb::cast<VecEnv&>(self).env.*values)();
  return array_over(all.data(), self, all.size());
}

nb::object legal_ids(VecEnv& self) {
  using Owner = std::shared_ptr<Action[]>;
  nb::capsule owner(new Owner(self.ids), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  return array_over(self.ids.get(), owner, self.num_legal);
}

void legal_mask(VecEnv& self, const Array<bool>& out) {
  const auto width = at(self.env->game().num_actions());
  if (width > 512) throw InvalidInput("dense masks are for games of at most 512 actions; use legal_ids");
  if (!has_shape(out, {self.env->size(), width}))
    throw InvalidInput("out: legal_mask needs shape (n, num_actions)");
  self.busy.run([&] { self.env->legal_mask(out.data()); });
}

using RowArray = List<std::int64_t>;

void check_row(const AnyVecEnv& env, std::int64_t row) {
  if (row < 0 || row >= static_cast<std::int64_t>(env.size()))
    throw InvalidInput("environment " + std::to_string(row) + " is not within 0 .. " +
                       std::to_string(env.size() - 1));
}

/// A copy of the environments' numbers, all of them where none are given, that no other thread can change.
std::vector<std::int64_t> rows_of(const AnyVecEnv& env, const std::optional<RowArray>& given) {
  if (!given) {
    std::vector<std::int64_t> all(env.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<std::int64_t> rows(given->data(), given->data() + given->shape(0));
  for (const auto row : rows) check_row(env, row);
  return rows;
}

std::size_t legal_of(const AnyVecEnv& env, std::span<const std::int64_t> rows) {
  std::size_t count = 0;
  for (const auto row : rows) count += at(env.offsets()[at(row) + 1] - env.offsets()[at(row)]);
  return count;
}

template <Block::Of kind>
void encode(VecEnv& self, std::string_view name, nb::handle out, const std::optional<RowArray>& given) {
  if (out.is_none()) throw nb::type_error("out must be an array");
  const auto held = self.busy.hold();
  const auto rows = rows_of(*self.env, given);
  const std::size_t leading = kind == Block::Of::action ? legal_of(*self.env, rows) : rows.size();
  const FloatOut floats(self.env->game(), name, kind, out, {&leading, 1});
  nb::gil_scoped_release release;
  if constexpr (kind == Block::Of::view) self.env->encode(floats.block, rows, floats.data);
  if constexpr (kind == Block::Of::action) self.env->encode_actions(floats.block, rows, floats.data);
  if constexpr (kind == Block::Of::oracle) self.env->encode_oracle(floats.block, rows, floats.data);
}

nb::object deal(VecEnv& self, nb::handle index) {
  const auto held = self.busy.hold();
  const auto row = integer(index);
  check_row(*self.env, row);
  return json_to(self.env->deal(at(row)));
}

nb::object rule_actions(VecEnv& self, const RowArray& indices) {
  const auto held = self.busy.hold();
  const auto rows = rows_of(*self.env, indices);
  ActionList actions(rows.size());
  without_gil([&] { self.env->rule_actions(rows, actions.data()); });
  return array_of(std::move(actions));
}

}  // namespace

void bind_vec_env(nb::module_& m) {
  nb::class_<VecEnv>(m, "VecEnv", "n hands stepped at once; arrays are views that the next step overwrites.")
      .def(
          "__init__",
          [](VecEnv* self, const AnyGame& game, nb::handle n, nb::handle seed_value) {
            new (self) VecEnv(game, integer(n), seed(seed_value));
          },
          nb::arg("game"), nb::arg("n"), nb::arg("seed"))
      .def_prop_ro("game", [](VecEnv& v) { return game_of(v.env->game()); })
      .def_prop_ro("n", [](VecEnv& v) { return v.env->size(); })
      .def_prop_ro("seat", &by_env<&AnyVecEnv::seats>)
      .def_prop_ro("legal_offsets", &by_env<&AnyVecEnv::offsets>)
      .def_prop_ro("legal_ids", &legal_ids)
      .def_prop_ro("returns",
                   [](nb::handle_t<VecEnv> self) {
                     auto& env = *nb::cast<VecEnv&>(self).env;
                     return array_over(env.returns().data(), self, env.size(), env.game().num_seats());
                   })
      .def_prop_ro("done",
                   [](nb::handle_t<VecEnv> self) {
                     const auto& done = nb::cast<VecEnv&>(self).env->done();
                     return array_over(reinterpret_cast<const bool*>(done.data()), self, done.size());
                   })
      .def("step", &step, nb::arg("actions").noconvert())
      .def("encode", &encode<Block::Of::view>, nb::arg("block"), nb::arg("out"),
           nb::arg("rows").noconvert() = nb::none())
      .def("encode_actions", &encode<Block::Of::action>, nb::arg("block"), nb::arg("out"),
           nb::arg("rows").noconvert() = nb::none())
      .def("encode_oracle", &encode<Block::Of::oracle>, nb::arg("block"), nb::arg("out"),
           nb::arg("rows").noconvert() = nb::none())
      .def("legal_mask", &legal_mask, nb::arg("out").noconvert())
      .def("deal", &deal, nb::arg("index"))
      .def("rule_actions", &rule_actions, nb::arg("indices").noconvert());
}

}  // namespace bothost::python

// Between Python objects and the core's values. Wrong types raise TypeError, wrong values ValueError.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/erased.h"

namespace bothost::python {

namespace nb = nanobind;

/// Any object with __index__; what exceeds 64 bits is cut to their limits, which no range check lets pass.
std::int64_t integer(nb::handle object);
/// The same, which must lie within low .. high; `what` names it in the error.
template <class T = int>
T within(nb::handle object, const char* what, std::int64_t low, std::int64_t high) {
  return Json(integer(object)).integer<T>(what, low, high);
}
/// Any integer, taken modulo 2^64.
std::uint64_t seed(nb::handle object);

/// dict, list, tuple, str, int, float, bool, None; at most 64 levels deep.
Json json_from(nb::handle object);
nb::object json_to(const Json& json);

/// The game of a view, a state or an environment, as Python holds it.
std::shared_ptr<AnyGame> game_of(const AnyGame& game);

nb::list pairs_to(const std::vector<std::pair<Seat, Action>>& pairs);

/// An array of any number of axes, row by row.
template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
/// An array of one axis that is only read.
template <class T>
using List = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ActionArray = List<Action>;

/// A new array that owns the values, row by row.
template <class T>
nb::object array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(kept->data(), shape, owner).cast();
}

/// The same, of shape (n,).
template <class T>
nb::object array_of(std::vector<T> values) {
  const std::size_t n = values.size();
  return array_of(std::move(values), {n});
}

/// Memory for the block `name` with the given leading axes: `out` itself after a check of its shape, or a new
/// array.
struct FloatOut {
  FloatOut(const AnyGame& game, std::string_view name, Block::Of of, nb::handle out,
           std::span<const std::size_t> leading = {});
  /// The block's index.
  int block;
  nb::object array;
  float* data;
};

/// The view as `G` knows it. Throws TypeError for a view of another game.
template <Game G>
const typename G::View& view_of(const AnyView& view) {
  const auto* own = dynamic_cast<const erased::ViewOf<G>*>(&view);
  if (!own) throw nb::type_error(("the view is not one of " + std::string(G::kName)).c_str());
  return own->native();
}

/// The same, of a seat that must decide now.
template <Game G>
const typename G::View& asked_view(const AnyView& view) {
  const auto& own = view_of<G>(view);
  if (!own.asked()) throw InvalidInput("this seat is not asked");
  return own;
}

template <Game G>
const typename G::State& state_of(const AnyState& state) {
  const auto* own = dynamic_cast<const erased::StateOf<G>*>(&state);
  if (!own) throw nb::type_error(("the state is not one of " + std::string(G::kName)).c_str());
  return own->native();
}

template <class T, class... Options>
std::span<const T> span_of(const nb::ndarray<const T, Options...>& array) {
  return {array.data(), array.size()};
}

/// As Python shows a shape of one axis or more: (3,) or (3, 4).
std::string shape_text(const std::vector<std::size_t>& shape);

/// Whether an array has this shape.
template <class AnyArray>
bool has_shape(const AnyArray& array, const std::vector<std::size_t>& shape) {
  return std::equal(shape.begin(), shape.end(), array.shape_ptr(), array.shape_ptr() + array.ndim(),
                    [](std::size_t a, std::int64_t b) { return a == at(b); });
}

/// How many rows of so many numbers there are. Throws InvalidInput, which begins with `what`, for another
/// shape.
template <class AnyArray>
std::size_t rows_of(const AnyArray& array, int columns, const char* what) {
  if (array.ndim() != 2 || array.shape(1) != at(columns))
    throw InvalidInput(std::string(what) + ": shape (n, " + std::to_string(columns) + ") is needed");
  return array.shape(0);
}

/// How Python passes a parameter of the core.
template <class T>
struct Parameter {
  using Type = T;
  static T of(T given) { return given; }
};
template <class T, T (*convert)(nb::handle)>
struct FromAnyObject {
  using Type = nb::handle;
  static T of(nb::handle given) { return convert(given); }
};
template <>
struct Parameter<std::int64_t> : FromAnyObject<std::int64_t, integer> {};
template <>
struct Parameter<std::uint64_t> : FromAnyObject<std::uint64_t, seed> {};
template <>
struct Parameter<const Json&> : FromAnyObject<Json, json_from> {};
template <class T>
struct Parameter<std::span<const T>> {
  using Type = const List<T>&;
  static std::span<const T> of(const List<T>& given) { return span_of(given); }
};

inline nb::object result_of(const Json& json) { return json_to(json); }
template <class T>
T result_of(T result) {
  return result;
}

template <class C, class R, class... A>
constexpr auto bound(R (C::*member)(A...) const) {
  return [member](const C& self, typename Parameter<A>::Type... given) {
    return result_of((self.*member)(Parameter<A>::of(given)...));
  };
}
/// A member function of the core as Python calls it.
template <class C, class R, class... A>
constexpr auto bound(R (C::*member)(A...)) {
  return [member](C& self, typename Parameter<A>::Type... given) {
    return (self.*member)(Parameter<A>::of(given)...);
  };
}

/// What `work` returns, computed without the GIL.
template <class Work>
auto without_gil(Work&& work) {
  const nb::gil_scoped_release release;
  return work();
}

}  // namespace bothost::python

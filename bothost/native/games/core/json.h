// A JSON value tree. The core does not parse JSON text: bindings convert this tree to Python objects and
// back, and msgspec reads and writes the text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/types.h"

namespace bothost {

class Json;
using JsonArray = std::vector<Json>;
/// Keeps insertion order, so that equal values print equally.
using JsonObject = std::vector<std::pair<std::string, Json>>;

class Json {
 public:
  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool v) : v_(v) {}
  Json(int v) : v_(static_cast<std::int64_t>(v)) {}
  Json(unsigned v) : v_(static_cast<std::int64_t>(v)) {}
  Json(std::int64_t v) : v_(v) {}
  Json(double v) : v_(v) {}
  Json(const char* v) : v_(std::string(v)) {}
  Json(std::string v) : v_(std::move(v)) {}
  Json(std::string_view v) : v_(std::string(v)) {}
  Json(JsonArray v) : v_(std::move(v)) {}
  Json(JsonObject v) : v_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(v_); }

  bool boolean(std::string_view what) const { return get<bool>(what, "true or false"); }
  /// An integer within [low, high], which `T` can hold; `what` names the field in the error.
  template <class T = std::int64_t>
  T integer(std::string_view what, std::int64_t low, std::int64_t high) const {
    const auto v = get<std::int64_t>(what, "an integer");
    if (v < low || v > high)
      throw InvalidInput(std::string(what) + ": " + std::to_string(v) + " is not within " +
                         std::to_string(low) + " .. " + std::to_string(high));
    return static_cast<T>(v);
  }
  double number(std::string_view what) const {
    if (const auto* i = std::get_if<std::int64_t>(&v_)) return static_cast<double>(*i);
    return get<double>(what, "a number");
  }
  /// The same, within [low, high].
  double number(std::string_view what, double low, double high) const {
    const double v = number(what);
    if (v >= low && v <= high) return v;
    char given[96];
    std::snprintf(given, sizeof given, ": %g is not within %g .. %g", v, low, high);
    throw InvalidInput(std::string(what) + given);
  }
  const std::string& text(std::string_view what) const { return get<std::string>(what, "a string"); }
  /// Index of the text in a list of names, or the enumerator of that number.
  template <class T = int, class Names>
  T one_of(std::string_view what, const Names& names) const {
    const auto& given = text(what);
    const auto it = std::ranges::find(names, given);
    if (it != names.end()) return static_cast<T>(it - names.begin());
    std::string known;
    for (const auto& name : names) (known += known.empty() ? "" : ", ") += name;
    throw InvalidInput(std::string(what) + ": \"" + given + "\" is not one of " + known);
  }
  const JsonArray& array(std::string_view what) const { return get<JsonArray>(what, "an array"); }
  /// The same, of so many values.
  const JsonArray& array(std::string_view what, std::size_t size) const {
    const auto& values = array(what);
    if (values.size() == size) return values;
    throw InvalidInput(std::string(what) + ": " + std::to_string(size) + " values are needed, not " +
                       std::to_string(values.size()));
  }
  const JsonObject& object(std::string_view what) const { return get<JsonObject>(what, "an object"); }

  /// Member of an object, or nullptr where it is absent.
  const Json* find(std::string_view key) const {
    if (const auto* o = std::get_if<JsonObject>(&v_))
      for (const auto& [k, v] : *o)
        if (k == key) return &v;
    return nullptr;
  }
  /// The same, or nullptr where it is null.
  const Json* known(std::string_view key) const {
    const auto* v = find(key);
    return v && !v->is_null() ? v : nullptr;
  }
  /// Reads a member within [low, high], unless it is absent or null.
  template <class T>
  void read(std::string_view key, T& out, std::int64_t low, std::int64_t high) const {
    if (const auto* v = known(key)) out = v->integer<T>(key, low, high);
  }
  const Json& at(std::string_view key) const {
    if (const auto* v = find(key)) return *v;
    throw InvalidInput("missing key \"" + std::string(key) + "\"");
  }

  /// Throws InvalidInput for an object that has another key than these; `what` begins the error.
  template <class Keys = std::initializer_list<std::string_view>>
  void only(std::string_view what, const Keys& keys) const {
    for (const auto& [key, value] : object(what))
      if (std::find(std::begin(keys), std::end(keys), key) == std::end(keys))
        throw InvalidInput(std::string(what) + " has no key \"" + key.substr(0, 40) + "\"");
  }

  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject>;
  const Value& value() const { return v_; }

  /// Objects are equal when their members are, in whatever order.
  friend bool operator==(const Json& a, const Json& b) {
    const auto* x = std::get_if<JsonObject>(&a.v_);
    const auto* y = std::get_if<JsonObject>(&b.v_);
    if (!x || !y) return a.v_ == b.v_;
    if (x->size() != y->size()) return false;
    for (const auto& [key, value] : *x)
      if (const Json* other = b.find(key); !other || !(value == *other)) return false;
    return true;
  }

 private:
  template <class T>
  const T& get(std::string_view what, const char* kind) const {
    if (const auto* v = std::get_if<T>(&v_)) return *v;
    throw InvalidInput(std::string(what) + " must be " + kind);
  }
  Value v_;
};

}  // namespace bothost

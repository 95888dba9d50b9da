// Options as one list of names, members and limits, which reads them from JSON and writes them to it.
#pragma once
#include <concepts>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace bothost {

template <class T>
concept Whole = std::integral<T> && !std::same_as<T, bool>;

/// Reads the options that are there into the members of a list.
class OptionReader {
 public:
  explicit OptionReader(const Json& options) : options_(options) {}

  void operator()(std::string_view name, bool& out) {
    if (const Json* given = find(name)) out = given->boolean(name);
  }
  void operator()(std::string_view name, double& out, double low, double high) {
    if (const Json* given = find(name)) out = given->number(name, low, high);
  }
  template <Whole T>
  void operator()(std::string_view name, T& out, std::int64_t low, std::int64_t high) {
    if (const Json* given = find(name)) out = given->integer<T>(name, low, high);
  }
  /// An enumerator, or false and true, by its name.
  template <class T, class Names>
  void operator()(std::string_view name, T& out, const Names& names) {
    if (const Json* given = find(name)) out = given->one_of<T>(name, names);
  }

  /// The preset that the options name; the first where they name none.
  template <class Names>
  std::string_view preset(const Names& names) {
    const Json* given = find("preset");
    return names[given ? given->one_of<std::size_t>("preset", names) : 0];
  }
  /// The option of this name, which the list then has; nullptr where it is absent.
  const Json* find(std::string_view name) {
    names_.push_back(name);
    return options_.find(name);
  }
  /// Throws InvalidInput, which begins with `what`, for an option that is not in the list.
  void refuse_others(std::string_view what) const;

 private:
  const Json& options_;
  std::vector<std::string_view> names_;
};

/// Writes all members of a list, in its order.
class OptionWriter {
 public:
  JsonObject out;

  void operator()(std::string_view name, bool value) { add(name, value); }
  void operator()(std::string_view name, Whole auto value, std::int64_t, std::int64_t) {
    add(name, static_cast<std::int64_t>(value));
  }
  template <class T, class Names>
  void operator()(std::string_view name, T value, const Names& names) {
    add(name, names[at(value)]);
  }
  /// Out of line: GCC 12 warns falsely about bounds where it is inlined.
  void add(std::string_view name, Json value);
};

}  // namespace bothost

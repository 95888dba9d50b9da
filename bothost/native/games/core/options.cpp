#include "core/options.h"

#include <algorithm>
#include <numeric>

namespace bothost {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t swap = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({swap, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

void OptionReader::refuse_others(std::string_view what) const {
  for (const auto& [key, value] : options_.object(what)) {
    if (std::ranges::find(names_, key) != names_.end()) continue;
    const auto given = std::string_view(key).substr(0, 60);
    const auto near = std::ranges::min(names_, {}, [&](auto name) { return edit_distance(given, name); });
    throw InvalidInput(std::string(what) + " has no option \"" + std::string(given) + "\"; did you mean \"" +
                       std::string(near) + "\"?");
  }
}

void OptionWriter::add(std::string_view name, Json value) { out.emplace_back(name, std::move(value)); }

}  // namespace bothost

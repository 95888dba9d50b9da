#include <algorithm>

#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

static_assert(Game<Pairing>);

const std::vector<std::string>& Pairing::presets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Machine& machine : kMachines) out.emplace_back(machine.name);
    return out;
  }();
  return names;
}

std::string Pairing::notation(const Rules&, Action action) {
  if (action < 0 || action >= kNumActions)
    throw InvalidInput("pairing has no action " + std::to_string(action));
  if (action < kCards) return card_text(static_cast<Card>(action));
  return "enter:" + std::string(kPhaseNames[entered_phase(action)]);
}

Action Pairing::parse_action(const Rules&, std::string_view text) {
  constexpr std::string_view prefix = "enter:";
  if (!text.starts_with(prefix)) return parse_card(text);
  const auto phase = std::find(kPhaseNames.begin() + 1, kPhaseNames.end(), text.substr(prefix.size()));
  if (phase == kPhaseNames.end())
    throw InvalidInput("\"" + std::string(text.substr(0, 40)) +
                       "\": the phases to enter are A, B, discard1, discard2, pairing and final");
  return enter_action(static_cast<Phase>(phase - kPhaseNames.begin()));
}

}  // namespace bothost

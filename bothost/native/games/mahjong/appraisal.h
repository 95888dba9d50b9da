#pragma once
#include <cstdint>

namespace bothost::mahjong {

/// How the look-ahead values hands: as the rule player does, or weighted by acceptance (lookahead.h).
enum class Appraisal : std::uint8_t { plain, acceptance_weighted };

}  // namespace bothost::mahjong

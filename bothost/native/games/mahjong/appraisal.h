#pragma once
#include <cstdint>

namespace bothost::mahjong {

/// How hands are weighed: as the rule player does, or as its better does (lookahead.h).
enum class Appraisal : std::uint8_t { plain, discerning };

}  // namespace bothost::mahjong

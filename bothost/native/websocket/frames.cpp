#include "websocket/frames.h"

namespace bothost::websocket {
namespace {

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t n = 0;
  for (const char c : bytes) n = n << 8 | static_cast<std::uint8_t>(c);
  return n;
}

}  // namespace

std::optional<Extent> frame_at(std::string_view data, std::size_t at, std::size_t most) {
  const std::size_t left = data.size() - at;
  const Extent unknown{at, data.size() + 1};
  if (left < 2) return unknown;
  const auto said = static_cast<std::uint8_t>(data[at + 1]);
  if (said > 127) return std::nullopt;
  const std::size_t wide = said == 126 ? 2 : said == 127 ? 8 : 0;
  if (left < 2 + wide) return unknown;
  const std::uint64_t length = wide ? big_endian(data.substr(at + 2, wide)) : said;
  if (length > most) return std::nullopt;
  const std::size_t start = at + 2 + wide;
  return Extent{start, start + static_cast<std::size_t>(length)};
}

}  // namespace bothost::websocket

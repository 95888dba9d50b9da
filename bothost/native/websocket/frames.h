// Frames of websockets (RFC 6455, 5.2) as a client receives them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bothost::websocket {

/// First byte of a text message in one frame: FIN and opcode.
inline constexpr std::uint8_t kText = 0x81;

/// Where the payload of a frame starts and ends. The end may lie behind the data; where the length itself has
/// not come yet, the payload is said to start at the frame and to end one byte behind the data.
struct Extent {
  std::size_t start, end;
};

/// The frame that begins at `at`, which is within `data`. None: masked, or its payload is longer than `most`.
std::optional<Extent> frame_at(std::string_view data, std::size_t at, std::size_t most);

}  // namespace bothost::websocket

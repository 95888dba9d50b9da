// Little-endian byte streams for the versioned view format.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/types.h"

namespace bothost {

class ByteWriter {
 public:
  /// The low byte of an integer or an enumerator.
  template <class T>
  void u8(T v) {
    out_.push_back(static_cast<char>(v));
  }
  void u16(std::uint16_t v) { fixed(v); }
  void u32(std::uint32_t v) { fixed(v); }
  void u64(std::uint64_t v) { fixed(v); }
  /// LEB128.
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) u8(v | 0x80);
    u8(v);
  }
  void text(std::string_view s) {
    varint(s.size());
    out_.append(s);
  }
  /// A varint; with ByteReader::number, one function can write and read the same fields.
  template <class T>
  void number(T v, std::uint64_t) {
    varint(static_cast<std::uint64_t>(v));
  }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void fixed(T v) {
    for (std::size_t i = 0; i < sizeof(T); ++i) u8(v >> (8 * i));
  }
  std::string out_;
};

/// Every read is bounds-checked: bytes come from a database or a peer and are hostile until validated.
class ByteReader {
 public:
  explicit ByteReader(std::string_view data) : data_(data) {}
  std::uint8_t u8() {
    if (pos_ >= data_.size()) throw InvalidInput("bytes end too early");
    return static_cast<std::uint8_t>(data_[pos_++]);
  }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = u8();
      v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return v;
    }
    throw InvalidInput("varint is too long");
  }
  /// A varint that must not exceed `most`: lengths and counts are checked before anything is allocated.
  std::uint64_t count(std::uint64_t most) {
    const auto v = varint();
    if (v > most) throw InvalidInput("count " + std::to_string(v) + " exceeds " + std::to_string(most));
    return v;
  }
  /// A count into a member.
  template <class T>
  void number(T& v, std::uint64_t most) {
    v = static_cast<T>(count(most));
  }
  std::string_view text(std::size_t most) {
    const auto n = static_cast<std::size_t>(count(most));
    if (n > data_.size() - pos_) throw InvalidInput("bytes end too early");
    const auto s = data_.substr(pos_, n);
    pos_ += n;
    return s;
  }
  void expect_end() const {
    if (pos_ != data_.size()) throw InvalidInput("bytes are left over");
  }

 private:
  template <class T>
  T fixed() {
    T v = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) v |= static_cast<T>(static_cast<T>(u8()) << (8 * i));
    return v;
  }
  std::string_view data_;
  std::size_t pos_ = 0;
};

}  // namespace bothost

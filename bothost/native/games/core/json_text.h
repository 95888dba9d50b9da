// JSON text of a value tree. Export uses it: making Python objects first costs ten times as much.
#pragma once
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "core/json.h"

namespace bothost {

inline void append_text(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void append_number(std::string& out, Number v) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr;
  out.append(digits.data(), end);
}

/// Appends compact JSON in UTF-8; numbers that JSON does not know (infinities, NaN) become null.
inline void append_json(std::string& out, const Json& json) {
  struct Visitor {
    std::string& out;
    void operator()(std::monostate) const { out += "null"; }
    void operator()(bool v) const { out += v ? "true" : "false"; }
    void operator()(std::int64_t v) const { append_number(out, v); }
    void operator()(double v) const {
      if (!std::isfinite(v)) {
        out += "null";
        return;
      }
      const std::size_t start = out.size();
      append_number(out, v);
      if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
    }
    void operator()(const std::string& v) const { append_text(out, v); }
    void operator()(const JsonArray& v) const {
      char before = '[';
      for (const Json& item : v) {
        out += before;
        append_json(out, item);
        before = ',';
      }
      out += v.empty() ? "[]" : "]";
    }
    void operator()(const JsonObject& v) const {
      char before = '{';
      for (const auto& [key, value] : v) {
        out += before;
        append_text(out, key);
        out += ':';
        append_json(out, value);
        before = ',';
      }
      out += v.empty() ? "{}" : "}";
    }
  };
  std::visit(Visitor{out}, json.value());
}

}  // namespace bothost

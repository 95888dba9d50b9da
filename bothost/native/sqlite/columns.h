// The result of a query as columns in the memory layout of Apache Arrow
// (arrow.apache.org/docs/format/Columnar.html), ready to be wrapped without a copy.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sqlite/buffer.h"
#include "sqlite/library.h"

namespace bothost::sqlite {

enum class Kind {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat64,
  kText,    ///< UTF-8, checked by whoever wraps it
  kBytes,   ///< a blob
  kKey,     ///< a blob of 16 bytes
  kWords,   ///< a blob of 4-byte values, as a list of them
  kSymbol,  ///< text of few values: 32-bit indices into `Column::symbols`
};

/// Bytes joined end to end: value i is data[offsets[i], offsets[i + 1]), in units of `unit` bytes.
struct Joined {
  Joined() { offsets.push(0); }

  Buffer<std::int32_t> offsets;
  Buffer<std::uint8_t> data;

  /// Throws InvalidInput beyond 2 GiB, where 32-bit offsets end.
  void append(const void* bytes, std::size_t count, std::size_t unit = 1);
};

/// One column. Nulls hold zeros, or nothing where the size varies.
class Column {
 public:
  Column(std::string name, Kind kind) : name_(std::move(name)), kind_(kind) {}

  /// Takes the next row's value. Throws InvalidInput for one that does not belong into such a column.
  void append(const Library& library, sqlite3_value* value);

  [[nodiscard]] Kind kind() const { return kind_; }

  std::int64_t nulls = 0;
  /// One bit a row, least significant first: set where there is a value. Empty while there are no nulls.
  Buffer<std::uint8_t> validity;
  /// Fixed sizes: `values.data` alone.
  Joined values;
  /// Of kSymbol: the texts that the indices stand for.
  Joined symbols;

 private:
  template <class T>
  void append_value(T value);
  template <class T>
  void append_integer(std::int64_t value);
  void append_symbol(std::string_view text);
  void append_null();
  void append_validity(bool valid);
  void require(bool belongs, const char* why) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string name_;
  Kind kind_;
  std::int64_t rows_ = 0;
  std::map<std::string, std::int32_t, std::less<>> known_;
  std::string_view last_;
  std::int32_t last_index_ = -1;
};

/// A connection that only reads. Not for several threads at once.
class Reader {
 public:
  /// Throws std::runtime_error when the file cannot be opened.
  Reader(const Library& library, const std::string& file, int busy_ms);
  ~Reader() { library_.close_v2(database_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Runs a query with these blobs as its parameters. Throws std::runtime_error when the database fails,
  /// InvalidInput for values that do not belong into their column.
  [[nodiscard]] std::vector<Column> read(const std::string& query, std::span<const std::string_view> blobs,
                                         std::span<const Kind> kinds);

 private:
  [[noreturn]] void fail() const;

  Library library_;
  sqlite3* database_ = nullptr;
};

}  // namespace bothost::sqlite

#include "sqlite/columns.h"

#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/types.h"

namespace bothost::sqlite {

void Joined::append(const void* bytes, std::size_t count, std::size_t unit) {
  data.append(static_cast<const std::uint8_t*>(bytes), count);
  if (data.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput("one page of rows holds more than 2 GiB in one column");
  offsets.push(static_cast<std::int32_t>(data.size() / unit));
}

void Column::refuse(const std::string& why) const { throw InvalidInput("column " + name_ + " " + why); }

void Column::require(bool belongs, const char* why) const {
  if (!belongs) refuse(why);
}

template <class T>
void Column::append_value(T value) {
  values.data.append(reinterpret_cast<const std::uint8_t*>(&value), sizeof value);
}

template <class T>
void Column::append_integer(std::int64_t value) {
  if (!std::in_range<T>(value)) refuse("holds " + std::to_string(value) + ", which is out of its range");
  append_value(static_cast<T>(value));
}

void Column::append_symbol(std::string_view text) {
  if (last_index_ < 0 || text != last_) {  // rows of one hand follow each other, and mostly say the same
    auto found = known_.find(text);
    if (found == known_.end()) {
      found = known_.emplace(text, static_cast<std::int32_t>(known_.size())).first;
      symbols.append(text.data(), text.size());
    }
    last_ = found->first;
    last_index_ = found->second;
  }
  append_value(last_index_);
}

void Column::append_validity(bool valid) {
  if (rows_ % 8 == 0) validity.push(0);
  validity.back() |= static_cast<std::uint8_t>(valid << (rows_ % 8));
}

void Column::append_null() {
  if (!nulls++) {  // so far all rows had a value
    for (std::int64_t byte = 0; byte < rows_ / 8; ++byte) validity.push(0xFF);
    if (rows_ % 8) validity.push(static_cast<std::uint8_t>((1 << rows_ % 8) - 1));
  }
  append_validity(false);
  switch (kind_) {
    case Kind::kInt8:
      return append_value(std::int8_t{0});
    case Kind::kInt16:
      return append_value(std::int16_t{0});
    case Kind::kInt32:
    case Kind::kSymbol:
      return append_value(std::int32_t{0});
    case Kind::kInt64:
    case Kind::kFloat64:
      return append_value(std::int64_t{0});
    case Kind::kKey:
      return append_value(std::array<std::uint8_t, 16>{});
    default:
      values.offsets.push(values.offsets.back());
  }
}

void Column::append(const Library& library, sqlite3_value* value) {
  const int type = library.value_type(value);
  if (type == kNull) {
    append_null();
    ++rows_;
    return;
  }
  if (nulls) append_validity(true);
  ++rows_;
  if (kind_ <= Kind::kInt64) {
    require(type == kInteger, "holds something else than an integer");
    const std::int64_t number = library.value_int64(value);
    if (kind_ == Kind::kInt64) return append_value(number);
    if (kind_ == Kind::kInt32) return append_integer<std::int32_t>(number);
    if (kind_ == Kind::kInt16) return append_integer<std::int16_t>(number);
    return append_integer<std::int8_t>(number);
  }
  if (kind_ == Kind::kFloat64) {
    require(type == kFloat || type == kInteger, "holds something else than a number");
    return append_value(library.value_double(value));
  }
  const bool text = kind_ == Kind::kText || kind_ == Kind::kSymbol;
  require(type == (text ? kText : kBlob),
          text ? "holds something else than text" : "holds something else than bytes");
  // Text as a blob: its bytes as they are, where value_text would copy them to end them with a zero. In this
  // order, for the length may change with the first call.
  const void* bytes = library.value_blob(value);
  const auto size = static_cast<std::size_t>(library.value_bytes(value));
  switch (kind_) {
    case Kind::kSymbol:
      return append_symbol({size ? static_cast<const char*>(bytes) : "", size});
    case Kind::kKey:
      require(size == 16, "holds a key that is not 16 bytes long");
      return values.data.append(static_cast<const std::uint8_t*>(bytes), 16);
    case Kind::kWords:
      require(size % 4 == 0, "holds a list whose length is no multiple of 4 bytes");
      return values.append(bytes, size, 4);
    default:
      return values.append(bytes, size);
  }
}

Reader::Reader(const Library& library, const std::string& file, int busy_ms) : library_(library) {
  if (library_.open_v2(file.c_str(), &database_, kOpenReadOnly | kOpenNoMutex, nullptr) != kOk) {
    const std::string why = database_ ? library_.errmsg(database_) : "out of memory";
    library_.close_v2(database_);
    throw std::runtime_error(why);
  }
  library_.busy_timeout(database_, busy_ms);
}

void Reader::fail() const { throw std::runtime_error(library_.errmsg(database_)); }

std::vector<Column> Reader::read(const std::string& query, std::span<const std::string_view> blobs,
                                 std::span<const Kind> kinds) {
  sqlite3_stmt* made = nullptr;
  if (library_.prepare_v2(database_, query.data(), static_cast<int>(query.size()), &made, nullptr) != kOk)
    fail();
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, library_.finalize);
  if (library_.column_count(made) != static_cast<int>(kinds.size()))
    throw InvalidInput("the query has another number of columns than kinds were given");
  for (std::size_t i = 0; i < blobs.size(); ++i)  // they outlive the statement: nothing is copied
    if (library_.bind_blob(made, static_cast<int>(i) + 1, blobs[i].data(), static_cast<int>(blobs[i].size()),
                           nullptr) != kOk)
      fail();
  std::vector<Column> columns;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    columns.emplace_back(library_.column_name(made, static_cast<int>(i)), kinds[i]);
  int status = library_.step(made);
  // The values themselves, not column_int64 and the like, which look for the column and for errors each time.
  // A connection without mutexes makes no difference between protected and unprotected values.
  for (; status == kRow; status = library_.step(made))
    for (std::size_t i = 0; i < kinds.size(); ++i)
      columns[i].append(library_, library_.column_value(made, static_cast<int>(i)));
  if (status != kDone) fail();
  return columns;
}

}  // namespace bothost::sqlite

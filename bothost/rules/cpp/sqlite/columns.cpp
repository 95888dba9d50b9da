#include "sqlite/columns.h"

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/types.h"

namespace bothost::sqlite {

void Joined::append(const void* bytes, std::size_t count, std::size_t unit) {
  const auto* first = static_cast<const std::uint8_t*>(bytes);
  if (count) data.insert(data.end(), first, first + count);
  if (data.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput("one page of rows holds more than 2 GiB in one column");
  offsets.push_back(static_cast<std::int32_t>(data.size() / unit));
}

void Column::refuse(const std::string& why) const { throw InvalidInput("column " + name_ + " " + why); }

template <class T>
void Column::append_value(T value) {
  const auto at = values.data.size();
  values.data.resize(at + sizeof value);
  std::memcpy(values.data.data() + at, &value, sizeof value);
}

void Column::append_integer(std::int64_t value) {
  const auto fits = [&]<class T>(T) {
    if (!std::in_range<T>(value)) refuse("holds " + std::to_string(value) + ", which is out of its range");
    append_value(static_cast<T>(value));
  };
  switch (kind_) {
    case Kind::kInt8:
      return fits(std::int8_t{});
    case Kind::kInt16:
      return fits(std::int16_t{});
    case Kind::kInt32:
      return fits(std::int32_t{});
    default:
      return fits(std::int64_t{});
  }
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

void Column::append(const Library& library, sqlite3_stmt* row, int index) {
  const int type = library.column_type(row, index);
  if (rows_ % 8 == 0) validity.push_back(0);
  validity.back() |= static_cast<std::uint8_t>((type != kNull) << (rows_ % 8));
  ++rows_;
  nulls += type == kNull;
  const bool text = kind_ == Kind::kText || kind_ == Kind::kSymbol;
  switch (kind_) {
    case Kind::kInt8:
    case Kind::kInt16:
    case Kind::kInt32:
    case Kind::kInt64:
      if (type != kInteger && type != kNull) refuse("holds something else than an integer");
      return append_integer(library.column_int64(row, index));  // 0 for null
    case Kind::kFloat64:
      if (type != kFloat && type != kInteger && type != kNull) refuse("holds something else than a number");
      return append_value(library.column_double(row, index));
    default:
      break;
  }
  if (type != (text ? kText : kBlob) && type != kNull)
    refuse(text ? "holds something else than text" : "holds something else than bytes");
  // In this order, for the pointer is valid and the length known only after the first call.
  const void* bytes = text ? library.column_text(row, index) : library.column_blob(row, index);
  const auto size = static_cast<std::size_t>(library.column_bytes(row, index));
  if (kind_ == Kind::kWords && size % 4) refuse("holds a list whose length is no multiple of 4 bytes");
  if (kind_ == Kind::kSymbol && type == kNull) return append_value(std::int32_t{0});
  if (kind_ == Kind::kSymbol) return append_symbol({size ? static_cast<const char*>(bytes) : "", size});
  if (kind_ == Kind::kKey && type == kNull) return append_value(std::array<std::uint8_t, 16>{});
  if (kind_ == Kind::kKey && size != 16) refuse("holds a key that is not 16 bytes long");
  values.append(bytes, size, kind_ == Kind::kWords ? 4 : 1);
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
  for (; status == kRow; status = library_.step(made))
    for (std::size_t i = 0; i < kinds.size(); ++i) columns[i].append(library_, made, static_cast<int>(i));
  if (status != kDone) fail();
  return columns;
}

}  // namespace bothost::sqlite

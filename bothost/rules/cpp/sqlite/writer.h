// Rows into a database, a transaction at a time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sqlite/library.h"

namespace bothost::sqlite {

/// What a parameter is bound to. Text and blobs are not copied: they must outlive the insert, and are not
/// null.
struct Value {
  int type = kNull;  ///< kInteger, kFloat, kText (UTF-8), kBlob or kNull
  int size = 0;      ///< bytes, of text and blobs
  union {
    std::int64_t integer = 0;
    double number;
    const void* bytes;
  };
};

/// Rows for one INSERT with as many parameters as a row has values.
struct Insert {
  std::string statement;
  std::size_t width = 0;
  std::vector<Value> values;  ///< row by row
};

/// What became of a transaction.
struct Written {
  int error = kOk;  ///< extended result code; nothing was kept unless it is kOk
  std::string why;
  std::int64_t rows = 0;  ///< that were new
};

/// A connection that writes. Not for several threads at once.
class Writer {
 public:
  /// Throws std::runtime_error when the file cannot be opened.
  Writer(const Library& library, const std::string& file);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Runs a statement without parameters to its end.
  [[nodiscard]] Written execute(const std::string& statement);

  /// All inserts in one transaction. After every `turn` rows the core is offered to other threads, 0: never:
  /// the kernel may let a thread run for milliseconds while others wait for its core.
  [[nodiscard]] Written insert(std::span<const Insert> inserts, int turn);

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  /// nullptr when it cannot be prepared.
  [[nodiscard]] sqlite3_stmt* prepared(const std::string& statement);
  [[nodiscard]] Written rows_of(const Insert& insert);
  [[nodiscard]] int bind(sqlite3_stmt* statement, int index, const Value& value);
  /// Resets a statement whose last step had this status.
  [[nodiscard]] Written ended(sqlite3_stmt* statement, int status);
  [[nodiscard]] Written failed() const;

  const Library library_;
  sqlite3* database_ = nullptr;
  std::map<std::string, Statement> prepared_;
  int turn_ = 0, rows_left_ = 0;
};

}  // namespace bothost::sqlite

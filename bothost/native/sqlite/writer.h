// Rows into a database, a transaction at a time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
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

  /// All inserts in one transaction. In the `background` a thread of the lowest priority writes them while
  /// this one waits: threads that compute, or serve connections, go first. It never holds what such a thread
  /// could wait for, as the caller may (Python's lock), which for that reason must not have a low priority
  /// itself.
  [[nodiscard]] Written insert(std::span<const Insert> inserts, bool background);

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  void serve();
  [[nodiscard]] Written transact(std::span<const Insert> inserts);
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

  std::thread thread_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::span<const Insert> job_;
  std::optional<Written> done_;
  bool has_job_ = false, closing_ = false;
};

}  // namespace bothost::sqlite

// SQLite's C interface, as function pointers into the library that the process has loaded already. A second
// copy of SQLite in one process would break the locks of the first (sqlite.org/howtocorrupt.html, 2.2.1), so
// nothing is linked here.
#pragma once
#include <cstdint>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_value;

namespace bothost::sqlite {

inline constexpr int kOk = 0, kRange = 25, kRow = 100, kDone = 101;
inline constexpr int kOpenReadOnly = 0x1, kOpenReadWrite = 0x2, kOpenNoMutex = 0x8000;
inline constexpr int kInteger = 1, kFloat = 2, kText = 3, kBlob = 4, kNull = 5;

/// Each field is the function `sqlite3_NAME` (sqlite.org/c3ref/funclist.html).
struct Library {
  int (*open_v2)(const char* file, sqlite3** out, int flags, const char* vfs);
  int (*close_v2)(sqlite3*);
  const char* (*errmsg)(sqlite3*);
  int (*extended_errcode)(sqlite3*);
  int (*total_changes)(sqlite3*);
  int (*busy_timeout)(sqlite3*, int ms);
  int (*prepare_v2)(sqlite3*, const char* text, int bytes, sqlite3_stmt** out, const char** tail);
  int (*finalize)(sqlite3_stmt*);
  int (*bind_blob)(sqlite3_stmt*, int index, const void* data, int bytes, void (*destroy)(void*));
  int (*bind_text)(sqlite3_stmt*, int index, const char* text, int bytes, void (*destroy)(void*));
  int (*bind_int64)(sqlite3_stmt*, int index, std::int64_t);
  int (*bind_double)(sqlite3_stmt*, int index, double);
  int (*bind_null)(sqlite3_stmt*, int index);
  int (*bind_parameter_count)(sqlite3_stmt*);
  int (*step)(sqlite3_stmt*);
  int (*reset)(sqlite3_stmt*);
  int (*column_count)(sqlite3_stmt*);
  const char* (*column_name)(sqlite3_stmt*, int column);
  sqlite3_value* (*column_value)(sqlite3_stmt*, int column);
  int (*value_type)(sqlite3_value*);
  std::int64_t (*value_int64)(sqlite3_value*);
  double (*value_double)(sqlite3_value*);
  const void* (*value_blob)(sqlite3_value*);
  int (*value_bytes)(sqlite3_value*);
};

}  // namespace bothost::sqlite

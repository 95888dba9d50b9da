#include "sqlite/writer.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace bothost::sqlite {
Writer::Writer(const Library& library, const std::string& file) : library_(library) {
  if (library_.open_v2(file.c_str(), &database_, kOpenReadWrite | kOpenNoMutex, nullptr) != kOk) {
    const std::string why = database_ ? library_.errmsg(database_) : "out of memory";
    library_.close_v2(database_);
    throw std::runtime_error(why);
  }
}

Writer::~Writer() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  prepared_.clear();
  library_.close_v2(database_);
}

Written Writer::insert(std::span<const Insert> inserts, bool background) {
  if (!background) return transact(inserts);
  if (!thread_.joinable()) thread_ = std::thread(&Writer::serve, this);
  std::unique_lock lock(mutex_);
  job_ = inserts;
  done_.reset();
  has_job_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_.has_value(); });
  return *std::exchange(done_, std::nullopt);
}

void Writer::serve() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, 0, 19);  // the calling thread's
#endif
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return has_job_ || closing_; });
    if (!has_job_) return;
    has_job_ = false;
    lock.unlock();
    Written written = transact(job_);
    lock.lock();
    done_ = std::move(written);
    changed_.notify_all();
  }
}

Written Writer::execute(const std::string& statement) {
  sqlite3_stmt* run = prepared(statement);
  if (!run) return failed();
  int status = library_.step(run);
  while (status == kRow) status = library_.step(run);
  return ended(run, status);
}

Written Writer::transact(std::span<const Insert> inserts) {
  Written out = execute("BEGIN IMMEDIATE");
  if (out.error != kOk) return out;
  const auto before = static_cast<std::uint32_t>(library_.total_changes(database_));
  for (std::size_t i = 0; i < inserts.size() && out.error == kOk; ++i) out = rows_of(inserts[i]);
  // A counter that wraps around.
  const auto after = static_cast<std::uint32_t>(library_.total_changes(database_));
  if (out.error == kOk) out = execute("COMMIT");
  // Some errors have rolled back by themselves; then this fails, which is as well.
  if (out.error != kOk)
    static_cast<void>(execute("ROLLBACK"));
  else
    out.rows = after - before;
  return out;
}

sqlite3_stmt* Writer::prepared(const std::string& statement) {
  auto found = prepared_.find(statement);
  if (found == prepared_.end()) {
    sqlite3_stmt* made = nullptr;
    if (library_.prepare_v2(database_, statement.data(), static_cast<int>(statement.size()), &made,
                            nullptr) != kOk)
      return nullptr;
    found = prepared_.emplace(statement, Statement(made, library_.finalize)).first;
  }
  return found->second.get();
}

Written Writer::rows_of(const Insert& insert) {
  sqlite3_stmt* statement = prepared(insert.statement);
  if (!statement) return failed();
  if (library_.bind_parameter_count(statement) != static_cast<int>(insert.width))
    return {kRange, "a row has another number of values than there are columns", 0};
  for (std::size_t at = 0; at < insert.values.size(); at += insert.width) {
    int status = kOk;
    for (std::size_t i = 0; i < insert.width && status == kOk; ++i)
      status = bind(statement, static_cast<int>(i) + 1, insert.values[at + i]);
    if (status != kOk) return failed();
    if (Written out = ended(statement, library_.step(statement)); out.error != kOk) return out;
  }
  return {};
}

Written Writer::ended(sqlite3_stmt* statement, int status) {
  Written out = status == kDone ? Written{} : failed();  // before the reset, which forgets what it was
  library_.reset(statement);
  return out;
}

int Writer::bind(sqlite3_stmt* statement, int index, const Value& value) {
  switch (value.type) {
    case kInteger:
      return library_.bind_int64(statement, index, value.integer);
    case kFloat:
      return library_.bind_double(statement, index, value.number);
    case kText:
      return library_.bind_text(statement, index, static_cast<const char*>(value.bytes), value.size, nullptr);
    case kBlob:
      return library_.bind_blob(statement, index, value.bytes, value.size, nullptr);
    default:
      return library_.bind_null(statement, index);
  }
}

Written Writer::failed() const {
  return {library_.extended_errcode(database_), library_.errmsg(database_), 0};
}

}  // namespace bothost::sqlite

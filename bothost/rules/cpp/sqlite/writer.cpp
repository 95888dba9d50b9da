#include "sqlite/writer.h"

#include <sched.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <stdexcept>

namespace bothost::sqlite {
namespace {

/// Lets the scheduler count the calling thread's turns in its shortest unit: otherwise each turn that it
/// gives away costs it some 3 ms in which only the others run. Linux before 6.12 has one length for all, and
/// leaves it.
void take_short_turns() {
#ifdef SYS_sched_setattr
  struct Attributes {  // sched_setattr(2), its first version
    std::uint32_t size = sizeof(Attributes), policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = getpriority(PRIO_PROCESS, 0);  // on Linux the thread's
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000, deadline_ns = 0, period_ns = 0;
  } wanted;
  static_assert(sizeof wanted == 48);
  syscall(SYS_sched_setattr, 0, &wanted, 0);
#endif
}

}  // namespace

Writer::Writer(const Library& library, const std::string& file) : library_(library) {
  if (library_.open_v2(file.c_str(), &database_, kOpenReadWrite | kOpenNoMutex, nullptr) != kOk) {
    const std::string why = database_ ? library_.errmsg(database_) : "out of memory";
    library_.close_v2(database_);
    throw std::runtime_error(why);
  }
}

Writer::~Writer() {
  prepared_.clear();
  library_.close_v2(database_);
}

Written Writer::execute(const std::string& statement) {
  sqlite3_stmt* run = prepared(statement);
  if (!run) return failed();
  int status = library_.step(run);
  while (status == kRow) status = library_.step(run);
  return ended(run, status);
}

Written Writer::insert(std::span<const Insert> inserts, int turn) {
  Written out = execute("BEGIN IMMEDIATE");
  if (out.error != kOk) return out;
  const auto before = static_cast<std::uint32_t>(library_.total_changes(database_));
  turn_ = rows_left_ = turn;
  if (turn) {
    thread_local const bool once = (take_short_turns(), true);
    static_cast<void>(once);
  }
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
    if (turn_ && !--rows_left_) {
      rows_left_ = turn_;
      sched_yield();
    }
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

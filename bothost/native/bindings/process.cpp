// What a process asks of the system for its threads and its memory.
#include <cstdint>
#include <cstdlib>  // defines __GLIBC__ where it is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "bindings/bind.h"

namespace bothost::python {
namespace {

/// Makes the calling thread run soon after it wakes up, for short time slices. Linux from 6.12 on then gives
/// it slices of 0.1 ms (sched_setattr(2)) in place of 3 ms, and prefers it to threads with longer slices. On
/// other systems it does nothing.
void take_short_turns() {
#if defined(__linux__) && defined(SYS_sched_setattr)
  const int nice = getpriority(PRIO_PROCESS, 0);  // on Linux the thread's
  // Respect a policy or priority that was already chosen. The flag below would reset it for child threads.
  if (sched_getscheduler(0) != SCHED_OTHER || nice < 0) return;
  constexpr std::uint64_t kResetOnFork = 1;  // threads and processes that it starts are as others
  struct Attributes {                        // sched_setattr(2), its first version
    std::uint32_t size = sizeof(Attributes), policy = SCHED_OTHER;
    std::uint64_t flags = kResetOnFork;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000, deadline_ns = 0, period_ns = 0;
  } wanted;
  wanted.nice = nice;
  static_assert(sizeof wanted == 48);
  syscall(SYS_sched_setattr, 0, &wanted, 0);
#endif
}

/// Returns the whole pages that the allocator keeps in each of its arenas to the system (malloc_trim(3)).
/// glibc only; with other allocators it does nothing. Each arena is locked for some milliseconds, one after
/// the other.
void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

/// At most `arenas` arenas serve all threads (M_ARENA_MAX of mallopt(3)). Threads that have another one keep
/// it. glibc only; with other allocators it does nothing.
void limit_arenas([[maybe_unused]] int arenas) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, arenas);
#endif
}

}  // namespace

void bind_process(nanobind::module_& m) {
  m.def("take_short_turns", &take_short_turns);
  m.def("return_free_memory", &return_free_memory, nanobind::call_guard<nanobind::gil_scoped_release>());
  m.def("limit_arenas", &limit_arenas);
}

}  // namespace bothost::python

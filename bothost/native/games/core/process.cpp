#include "core/process.h"

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

namespace bothost {

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

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void limit_arenas([[maybe_unused]] int arenas) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, arenas);
#endif
}

}  // namespace bothost

#include "core/free_memory.h"

#include <cstdlib>  // defines __GLIBC__ where it is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace bothost {

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

// Memory that the process has freed and its allocator has kept.
#pragma once

namespace bothost {

/// Returns the whole pages that the allocator keeps in each of its arenas to the system (malloc_trim(3)).
/// glibc only; with other allocators it does nothing. Each arena is locked for some milliseconds, one after
/// the other.
void return_free_memory();

/// At most `arenas` arenas serve all threads (M_ARENA_MAX of mallopt(3)). Threads that have another one keep
/// it. glibc only; with other allocators it does nothing.
void limit_arenas(int arenas);

}  // namespace bothost

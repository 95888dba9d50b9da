// What a process asks of the system for its threads and its memory.
#pragma once

namespace bothost {

/// Makes the calling thread run soon after it wakes up, for short time slices. Linux from 6.12 on then gives
/// it slices of 0.1 ms (sched_setattr(2)) in place of 3 ms, and prefers it to threads with longer slices. On
/// other systems it does nothing.
void take_short_turns();

/// Returns the whole pages that the allocator keeps in each of its arenas to the system (malloc_trim(3)).
/// glibc only; with other allocators it does nothing. Each arena is locked for some milliseconds, one after
/// the other.
void return_free_memory();

/// At most `arenas` arenas serve all threads (M_ARENA_MAX of mallopt(3)). Threads that have another one keep
/// it. glibc only; with other allocators it does nothing.
void limit_arenas(int arenas);

}  // namespace bothost

// How the threads of a process share a core.
#pragma once

namespace bothost {

/// Makes the calling thread run soon after it wakes up, for short time slices. Linux from 6.12 on then gives
/// it slices of 0.1 ms (sched_setattr(2)) in place of 3 ms, and prefers it to threads with longer slices. On
/// other systems it does nothing.
void take_short_turns();

}  // namespace bothost

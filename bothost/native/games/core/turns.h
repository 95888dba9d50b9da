// How the threads of a process share a core.
#pragma once

namespace bothost {

/// Lets the calling thread run soon when it wakes up, for a short time each: Linux from 6.12 on then counts
/// its turns by 0.1 ms (sched_setattr(2)), where it counts 3 ms else, and lets it go before threads of longer
/// turns. Elsewhere it does nothing.
void take_short_turns();

}  // namespace bothost

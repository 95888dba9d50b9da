// Sampling of what a seat does not know.
//
// A hidden card lies in a *slot*: a place of the other hand at the beginning, or an entry of the deck. What
// the seat saw restricts slots: while the other seat discards because nothing matches, no slot in its hand
// holds a colour of the pool; a card that it plays came from one of its slots, and from which is not known; a
// card that it puts under the deck is one of its slots too. Slots that must avoid the same colours are
// interchangeable, so it is enough to follow, through the history, how many slots of each kind the hand
// holds: a small set of weighted nodes per step. The weight of a last node times the number of ways to fill
// its open slots with unseen cards counts deals exactly; one is drawn by walking back, slots are picked along
// the way, and filled.
#pragma once
#include "pairing/pairing.h"

namespace bothost {

class Pairing::Sampler {
 public:
  static State sample(const View& view, Rng& rng);
};

}  // namespace bothost

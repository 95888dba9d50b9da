// Module bothost.native._testing: games that exist only to test the contract of games. No wheel has it.
#include <nanobind/nanobind.h>

#include "claims.h"
#include "search/search.h"

namespace nb = nanobind;

NB_MODULE(_testing, m) {
  static constexpr auto kClaims = [] {
    auto entry = bothost::search::entry_of<bothost::Claims>();
    entry.testing = true;
    return entry;
  }();
  m.attr("claims") = nb::capsule(&kClaims, "bothost.GameEntry");
}

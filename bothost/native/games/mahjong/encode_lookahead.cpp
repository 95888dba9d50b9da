#include <algorithm>
#include <cmath>

#include "mahjong/encode.h"
#include "mahjong/planner.h"

namespace bothost::mahjong {
namespace {

constexpr int kDiscard = 0, kInReach = 1, kBestHand = 2, kBestFans = 4, kShapesInReach = 25,
              kFansInReach = 27;
static_assert(kFansInReach + (kFans + 3) / 4 == kLookAheadPlanes);

/// Row `row` of the planes that begin with `plane`.
float* row_of(float* out, int plane, int row) { return out + plane * kPlane + row * kKinds; }
void fill(float* row) { std::fill_n(row, kKinds, 1.0f); }

void encode_hand(const Prospect& p, float* out) {
  fill(row_of(out, kBestHand, static_cast<int>(p.shape)));
  fill(row_of(out, kBestHand, static_cast<int>(kShapes) + std::clamp(p.tiles_needed, 1, 3) - 1));
  for (std::size_t s = 0; s < kShapes; ++s)
    if (p.shapes[s]) fill(row_of(out, kShapesInReach, static_cast<int>(s)));
  p.fans.each([&](std::size_t f) { fill(row_of(out, kBestFans, static_cast<int>(f))); });
  p.all_fans.each([&](std::size_t f) { fill(row_of(out, kFansInReach, static_cast<int>(f))); });
}

/// `best`: the greatest worth and value among the actions that do not win.
void encode_prospect(const Option& o, const Option& best, float* out) {
  const auto& p = o.prospect;
  const auto ratio = [](double x, double most) {
    return static_cast<float>(most > 0 ? std::clamp(x / most, -1.0, 1.0) : 0.0);
  };
  out[0] = static_cast<float>(std::log1p(std::max(0.0, p.worth)) / 6);
  out[1] = ratio(p.worth, best.prospect.worth);
  out[2] = static_cast<float>(std::min(1.0, p.chance));
  if (p.worth > 0) {
    out[3 + std::min(p.tiles_needed, 6)] = 1.0f;
    out[10] = static_cast<float>(std::min(p.points, 48) / 24.0);
    out[11 + static_cast<int>(p.shape)] = 1.0f;
  }
  out[16] = static_cast<float>(std::min(4.0, o.danger / 4));
  out[17] = ratio(o.value(), best.value());
}

}  // namespace

void encode_look_ahead(const View& view, int depth, float* out) {
  std::fill_n(out, kLookAheadPlanes * kPlane, 0.0f);
  auto targets = targets_of(view);
  targets.find(depth);
  const auto ahead = look_ahead(targets, Arrivals(outlook_of(view), targets.unseen()), depth, true);
  if (!view.table().discards() || view.table().actor != view.seat()) {
    if (ahead.now.worth > 0) encode_hand(ahead.now, out);
    return;
  }
  for (int t = 0; t < kKinds; ++t) {
    const auto& p = ahead.after[at(t)];
    if (p.worth <= 0) continue;
    row_of(out, kInReach, 0)[t] = 1.0f;
    row_of(out, kInReach, std::clamp(p.tiles_needed, 1, 3))[t] = 1.0f;
  }
  const auto best = std::ranges::max_element(ahead.after, {}, &Prospect::worth);
  if (best->worth <= 0) return;
  row_of(out, kDiscard, 0)[best - ahead.after.begin()] = 1.0f;
  encode_hand(*best, out);
}

void encode_prospects(const View& view, Appraisal appraisal, std::span<const Action> actions, float* out) {
  std::fill_n(out, actions.size() * kProspectFloats, 0.0f);
  ActionList legal;
  view.legal(legal);
  for (const auto action : actions)
    if (!std::ranges::binary_search(legal, action))
      throw IllegalAction("prospects are those of legal actions");
  if (actions.empty()) return;
  auto targets = targets_of(view);
  const auto options = Planner(view, targets, appraisal).options(actions);
  Option best;
  best.prospect.worth = 0;
  for (const auto& o : options)
    if (o.action != kHu && o.value() > best.value()) best = o;
  for (const auto& o : options) {
    encode_prospect(o, best, out);
    out += kProspectFloats;
  }
}

}  // namespace bothost::mahjong

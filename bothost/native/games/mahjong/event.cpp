#include "mahjong/event.h"

#include <algorithm>
#include <array>

#include "core/words.h"

namespace bothost::mahjong {
namespace {

constexpr std::array<std::string_view, 14> kKindNames = {"deal", "draw",     "flower",    "play",   "answer",
                                                         "chi",  "peng",     "gang",      "angang", "bugang",
                                                         "hu",   "false-hu", "exhausted", "reveal"};

/// Words of one line, parted by single spaces.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  std::string_view next(char separator = ' ') {
    if (rest_.empty()) throw InvalidInput("the event ends too early");
    const auto end = rest_.find(separator);
    const auto word = rest_.substr(0, end);
    if (word.empty() || end == rest_.size() - 1) throw InvalidInput("the event has a gap");
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return word;
  }

 private:
  std::string_view rest_;
};

std::uint8_t parse_wind(std::string_view word) {
  for (int w = 0; w < 4; ++w)
    if (word == kWindNames[at(w)]) return static_cast<std::uint8_t>(w);
  reject(word, "is no wind");
}

FanCounts parse_fans(std::string_view text) {
  FanCounts out;
  for (Words words(text); !words.done();) {
    const auto word = words.next(',');
    const auto star = word.find('*');
    const auto id = word.substr(0, star);
    const auto it = std::ranges::find(kFanInfo, id, &FanInfo::id);
    if (it == kFanInfo.end()) reject(id, "is no fan");
    std::uint8_t times = 1;
    if (star != std::string_view::npos) {
      if (word.size() != star + 2 || word[star + 1] < '2' || word[star + 1] > '8')
        throw InvalidInput("a fan counts 1 to 8 times");
      times = static_cast<std::uint8_t>(word[star + 1] - '0');
    }
    const auto fan = static_cast<Fan>(it - kFanInfo.begin());
    if (!out.empty() && out.back().first >= fan)
      throw InvalidInput("fans are named in the order of the rule book");
    out.emplace_back(fan, times);
  }
  return out;
}

std::string fans_text(const FanCounts& fans) {
  std::string out;
  for (const auto& [fan, times] : fans) {
    if (!out.empty()) out += ',';
    out += kFanInfo[at(fan)].id;
    if (times > 1) (out += '*') += static_cast<char>('0' + times);
  }
  return out;
}

void parse_reveal(const Rules& rules, Words& words, Event& e) {
  e.wind = parse_wind(words.next());
  for (Words wall(words.next()); !wall.done();) e.tiles.push_back(parse_tile(wall.next(','), rules.flowers));
  if (words.done()) return;
  for (Words list(words.next()); !list.done();) {
    const auto word = list.next(',');
    if (word.size() < 3 || word[1] != ':') throw InvalidInput("a revealed action is SEAT:ACTION");
    e.actions.emplace_back(parse_seat(word.substr(0, 1), kSeats), parse_action(word.substr(2)));
  }
}

}  // namespace

FanCounts fan_counts(const FanResult& result) {
  FanCounts out;
  for (std::size_t f = 0; f < kFans; ++f)
    if (result.times[f]) out.emplace_back(static_cast<Fan>(f), result.times[f]);
  return out;
}

int total_points(const FanCounts& fans) {
  int sum = 0;
  for (const auto& [fan, times] : fans) sum += times * kFanInfo[at(fan)].points;
  return sum;
}

std::string Event::text() const {
  std::string out(kKindNames[at(kind)]);
  const auto put = [&out](char separator, std::string_view word) { (out += separator) += word; };
  const auto put_seat = [&out](char separator, Seat s) {
    (out += separator) += s == kNobody ? '-' : static_cast<char>('0' + s);
  };
  put_seat(' ', seat);
  switch (kind) {
    case Kind::deal:
      put(' ', kWindNames[wind]);
      for (const auto t : tiles) put(' ', tile_name(t));
      break;
    case Kind::answer: put(' ', notation(action)); break;
    case Kind::hu:
    case Kind::false_hu:
      put(' ', tile_name(tile));
      put_seat(' ', from);
      if (!fans.empty()) put(' ', fans_text(fans));
      break;
    case Kind::reveal:
      put(' ', kWindNames[wind]);
      for (std::size_t i = 0; i < tiles.size(); ++i) put(i ? ',' : ' ', tile_name(tiles[i]));
      for (std::size_t i = 0; i < actions.size(); ++i) {
        put_seat(i ? ',' : ' ', actions[i].first);
        put(':', notation(actions[i].second));
      }
      break;
    case Kind::exhausted: break;
    default:
      if (tile != kHidden) put(' ', tile_name(tile));
  }
  return out;
}

Event Event::parse(const Rules& rules, std::string_view text) {
  Words words(text);
  const auto name = words.next();
  const auto it = std::ranges::find(kKindNames, name);
  if (it == kKindNames.end()) reject(name, "is no mahjong event");
  Event e{};
  e.kind = static_cast<Kind>(it - kKindNames.begin());
  const auto seat = words.next();
  if (e.kind == Kind::exhausted || e.kind == Kind::reveal) {
    if (seat != "-") throw InvalidInput("an event without a seat has \"-\" for it");
  } else {
    e.seat = parse_seat(seat, kSeats);
  }
  switch (e.kind) {
    case Kind::deal:
      e.wind = parse_wind(words.next());
      for (int i = 0; i < kDealt; ++i) e.tiles.push_back(parse_tile(words.next(), rules.flowers));
      break;
    case Kind::draw:
    case Kind::angang:
      if (!words.done()) e.tile = parse_tile(words.next(), rules.flowers && e.kind == Kind::draw);
      break;
    case Kind::flower:
      e.tile = parse_tile(words.next(), rules.flowers);
      if (!is_flower(e.tile)) throw InvalidInput("only flowers are laid down");
      break;
    case Kind::answer: e.action = parse_action(words.next()); break;
    case Kind::hu:
    case Kind::false_hu:
      e.tile = parse_tile(words.next());
      e.from = parse_seat(words.next(), kSeats);
      if (e.kind == Kind::hu && !words.done()) e.fans = parse_fans(words.next());
      break;
    case Kind::reveal: parse_reveal(rules, words, e); break;
    case Kind::exhausted: break;
    default: e.tile = parse_tile(words.next());
  }
  if (!words.done()) throw InvalidInput("the event has too many words");
  return e;
}

}  // namespace bothost::mahjong

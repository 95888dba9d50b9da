"""A game at open_mahjong: its hands, who is online, and how we recover when the lobby contradicts itself.

Each event is reported once: frames that are not newer than the last tick are dropped. Flowers are laid down here and
not by the strategy, because the rules leave no choice. If our rules cannot follow (a robot discards a flower), the
lobby's position becomes a snapshot.
"""

from __future__ import annotations

from bothost import messages as m
from bothost import rules
from bothost.lobbies.frames import Mismatch
from bothost.lobbies.open_mahjong import moves
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.asking import Ask, Asking
from bothost.lobbies.open_mahjong.hand import FALSE_WIN, HandTracker
from bothost.lobbies.open_mahjong.options import ECHO, GAME, NEXT, RESYNC, TIMERS, OpenMahjongOptions, rules_of
from bothost.lobbies.open_mahjong.picture import SEATS, Picture
from bothost.lobbies.open_mahjong.presence import Attendance
from bothost.lobbies.open_mahjong.rooms import WaitingRoom, leave_room
from bothost.lobbies.open_mahjong.session import Session

MOST_MISMATCHES = 3
"""After this many contradictions in one game, we no longer reconnect for a snapshot."""
MOST_REPEATS = 2
"""The host may ask for the position this often without a frame of the lobby between. Then we look for the game."""
RESYNC_STEP_S = 3.0
"""Delay between the reconnects of a table's players. The lobby deletes a game when all players are offline."""


class Game:
    """Our seat in one game, over all its hands."""

    def __init__(
        self, session: Session, options: OpenMahjongOptions, info: wire.GameInfo, memo: m.Json, room: WaitingRoom | None
    ) -> None:
        """``room``: where we waited for the game; None if the match queue or an earlier process found it."""
        self.id = info.gamestate_id
        known = memo.get("gamestate") == self.id and isinstance(memo.get("table"), str)
        self.name: str = room.name if room is not None else memo["table"] if known else f"game-{self.id}"
        self.rules = rules_of(info.hepai_limit)
        self.asking = Asking(session, options.echo_s, self.name, self.id)
        self.over = False
        self._session = session
        self._options = options
        self._memo = memo
        self._attributes: m.Json = {} if room is None else room.attributes
        self._room = str(info.room_id) if self.name.startswith("room-") else ""
        """Empty for a game of the match queue."""
        self._attendance = Attendance()
        self._hand: HandTracker | None = None
        self._step_s = 0
        self._blind = False
        """Whether our view of the hand is invalid. Nothing is reported until the next snapshot."""
        self._mismatches = 0
        self._repeats = 0
        """How often the host asked for the position since the last frame of the game."""
        self._returned = False
        """Whether we have just returned, so that part of the time has passed."""
        self._next_tick: int | None = None
        """The tick of the result that we must answer with ``ready``."""
        self._ended: str = memo.get("ended", "") if known else ""
        """The last hand whose end we reported."""

    # ---------------------------------------------------------------------------------------------------- positions

    def start(self, info: wire.GameInfo, memo: m.Json, *, back: bool, seated: bool, seek: str | None) -> list[m.Output]:
        """Handle the whole position: a hand begins, or we have returned."""
        self._memo, self._step_s, self._returned = memo, max(info.step_time, 0), back
        self._attendance.read(info, self._session.user if back else None)
        self.asking.open, self._next_tick, self._blind, self._repeats = None, None, False, 0
        out: list[m.Output] = [m.CancelTimer(name) for name in TIMERS]
        before = self._hand
        try:
            picture = Picture.read(info, self._session.user)
            players = _players(picture, info)
            position = self._position(picture, info, players)
        except ValueError as error:  # a Mismatch, or a number that is no tile
            self._blind, self._hand = True, before
            return [*out, m.Notice(f"the position is invalid: {error}", "error")]
        if seated:
            out.append(m.Seated(self.name, GAME, self.rules, picture.seat, players, self._attributes, seek))
        return out + position + self._attendance.events(self.name, range(SEATS), picture.seat_of)

    def _position(self, picture: Picture, info: wire.GameInfo, players: tuple[m.PlayerInfo, ...]) -> list[m.Output]:
        name, tick = f"{self.id}.{info.current_round}", info.action_tick
        before = self._hand
        out: list[m.Output] = []
        if before is not None and before.name != name:
            scores = _scores_so_far(info, int(before.name.rpartition(".")[2]), before.picture)
            out.append(m.HandEnded(self.name, before.name, scores, "aborted" if scores is None else "normal"))
            before = self._hand = None
        if not any(picture.sizes):
            return out  # the next hand is not dealt yet
        if name == self._ended:  # the lobby may still wait until everybody is ready
            return [*out, self._ready_after(tick)]
        game = rules.game(GAME, **self.rules)
        if before is None and tick == 0 and picture.untouched:
            self._hand = hand = HandTracker.begin(name, game, picture, tick)
            started = m.HandStarted(self.name, name, hand.seat, players)
            return [*out, self._remember(hand), started, *hand.report(self.name)]
        if before is not None and before.tick == tick:
            agrees = before.picture.agrees(picture)
            if agrees and before.view is not None:
                before.take_lines()
                return [*out, m.Snapshot(self.name, name, before.seat, before.view.to_json())]
            if not agrees:
                text = f"table {self.name}: the lobby's position differs from ours: using the lobby's"
                out.append(m.Notice(text, "warning"))
        hand = HandTracker(name, game, picture, tick)
        hand.scores = _scores_so_far(info, info.current_round, picture) or hand.scores
        seq = None
        if before is not None:
            hand.reported = before.reported
        elif self._memo.get("hand") == name and isinstance(self._memo.get("seq"), int):
            hand.reported = self._memo["seq"]
            seq = hand.reported if self._memo.get("tick") == tick else None
        self._hand = hand
        view = hand.renew(seq)
        return out if view is None else [*out, m.Snapshot(self.name, name, hand.seat, view)]

    def _remember(self, hand: HandTracker) -> m.Remember:
        seq = hand.view.seq if hand.view is not None else hand.reported
        return m.Remember({"table": self.name, "gamestate": self.id, "hand": hand.name, "seq": seq, "tick": hand.tick})

    # ------------------------------------------------------------------------------------------------------- frames

    def frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        """Handle a frame of the running game."""
        self._repeats = 0
        try:
            return self._game_frame(frame) or self._hand_frame(frame, raw)
        except ValueError as error:  # a Mismatch, or a number that is no tile
            return self._contradicted(str(error))

    def _game_frame(self, frame: wire.Body) -> list[m.Output]:
        match frame:
            case wire.GameEnd():
                return self._end(m.TableEnded(self.name, "normal", _final_scores(frame)))
            case wire.VotedEnd():
                return self._end(m.TableEnded(self.name, "aborted", detail="the players voted to end the game"))
            case wire.SeatsSwitched():
                self._attendance.forget_seats()
            case wire.Tags():
                changed = self._attendance.tags(frame.player_to_tag_list)
                hand = self._hand
                return [] if hand is None else self._attendance.events(self.name, changed, hand.seat_of)
            case wire.ReadyStatus():
                index = self._attendance.index_of(self._session.user)
                waits = index is not None and frame.player_to_ready.get(str(index)) is False
                return self._ready_for_next() if waits else []
        return []

    def _hand_frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        hand = self._hand
        if hand is None or self._blind:
            return []
        match frame:
            case wire.HandAsk():
                return self._hand_asked(frame, hand, raw)
            case wire.ClaimAsk():
                return self._claim_asked(frame, hand, raw)
            case wire.Action():
                return self._acted(frame, hand)
            case wire.Result():
                return self._result(frame, hand)
        return []

    def _acted(self, action: wire.Action, hand: HandTracker) -> list[m.Output]:
        if action.is_claim or action.action_tick <= hand.done:
            return []  # only an announcement, or reported before
        self._returned = False
        seat = hand.seat_of(action.action_player)
        done = moves.notation_of(hand.picture, action) if seat == hand.seat else ""
        counted = hand.acted(action)
        out: list[m.Output] = []
        if action.is_timeout_action and seat != hand.seat:
            out.append(m.ServerActedFor(self.name, hand.name, seat))
        return out + hand.report(self.name) + self.asking.resolve(action, done, counted=counted)

    def _result(self, result: wire.Result, hand: HandTracker) -> list[m.Output]:
        if result.hu_fan and FALSE_WIN in result.hu_fan:
            hand.tick, hand.answer = max(hand.tick, result.action_tick), ""
            hand.count(result)
            return [
                m.Notice(f"table {self.name}: a false win; the hand continues"),
                *self.asking.withdraw("a false win"),
                self._ready_after(result.action_tick),
            ]
        hand.ended(result)
        scores = hand.scores if hand.count(result) else None
        out = [m.CancelTimer(ECHO), *hand.report(self.name)]
        winner = result.hepai_player_index
        we_won = winner is not None and hand.seat_of(winner) == hand.seat
        out += self.asking.hand_ended(we_won=we_won, other_won=winner is not None and not we_won)
        out.append(m.HandEnded(self.name, hand.name, scores))
        self._hand, self._ended = None, hand.name
        out.append(m.Remember({"table": self.name, "gamestate": self.id, "ended": hand.name}))
        if result.hu_class.startswith("hu") and result.next_status == "round_end_by_ready":
            out.append(self._ready_after(result.action_tick))
        return out

    def _ready_after(self, tick: int) -> m.SetTimer:
        """Say ready soon. After a win, also a false one, the lobby waits until everybody has read the fans."""
        self._next_tick = tick
        return m.SetTimer(NEXT, self._options.ready_after_s)

    def _ready_for_next(self) -> list[m.Output]:
        if self._next_tick is None:
            return []
        tick, self._next_tick = self._next_tick, None
        return [m.CancelTimer(NEXT), self._session.send_text(moves.action_frame("ready", None, self.id, tick))]

    def _end(self, end: m.TableEnded) -> list[m.Output]:
        self.over = True
        out: list[m.Output] = [m.CancelTimer(ECHO), m.CancelTimer(NEXT)]
        if self._hand is not None:
            out.append(m.HandEnded(self.name, self._hand.name, None, "aborted"))
        out.append(m.Remember({}))
        in_room = self._room and not self._attendance.left_room(self._session.user)
        return [*out, *leave_room(self._session, self._room, end)] if in_room else [*out, end]

    # -------------------------------------------------------------------------------------------------- being asked

    def _hand_asked(self, ask: wire.HandAsk, hand: HandTracker, raw: str | bytes) -> list[m.Output]:
        if ask.action_tick < hand.tick:
            return []
        hand.tick = ask.action_tick
        mine = hand.seat_of(ask.player_index) == hand.seat and bool(ask.action_list)
        if ask.opening_buhua_complete or (mine and "cut" in ask.action_list):
            hand.begin_play()
        if not mine:
            return hand.report(self.name)
        frame = ""
        if "buhua" in ask.action_list:
            frame = moves.action_frame("buhua", None, self.id, hand.tick)
        elif (flower := next(filter(wire.is_flower, hand.picture.own), None)) is not None:
            frame = moves.cut_frame(hand.picture, flower, self.id, hand.tick)  # no tile is left to replace it
        if frame:
            return [*hand.report(self.name), self._session.send_text(frame)]
        if ask.deal_tile_type == "deal_gang_tile" and hand.picture.phase == "turn" and not hand.picture.after_kong:
            hand.picture.after_kong, hand.view = True, None  # a snapshot does not show it
        return self._ask(hand, ask.action_list, ask.remaining_time, raw)

    def _claim_asked(self, ask: wire.ClaimAsk, hand: HandTracker, raw: str | bytes) -> list[m.Output]:
        if ask.action_tick < hand.tick or hand.seat_of(ask.player_index) != hand.seat or not ask.action_list:
            return []
        hand.tick = ask.action_tick
        robbing = all(action.startswith(("hu_", "pass", "force_pass")) for action in ask.action_list)
        if hand.asked_about(ask.cut_tile, robbing=robbing):
            hand.view = None
        return self._ask(hand, ask.action_list, ask.remaining_time, raw)

    def _ask(self, hand: HandTracker, actions: wire.Words, bank_s: int, raw: str | bytes) -> list[m.Output]:
        if self.asking.open is not None and self.asking.open.tick == hand.tick:
            return []  # repeated
        out = hand.report(self.name)
        claim = hand.picture.phase in ("claims", "robbing")
        if hand.view is None or not hand.view.asked:
            if not (claim and "pass" in actions):
                raise Mismatch("the lobby asks us, but by our rules it is not our turn")
            # The win may have too few points by our fans, or the lobby kept a flower in our hand while we were away.
            frame = moves.frame_of(hand.picture, "pass", actions, self.id, hand.tick)
            text = f"table {self.name}: the lobby offers {', '.join(actions)}, which our rules do not allow: passing"
            return [*out, m.Notice(text, "warning"), self._session.send_text(frame)]
        request, grant_ms, bank_ms = f"{hand.name}.{hand.tick}", self._step_s * 1000.0, max(bank_s, 0) * 1000.0
        self.asking.open = Ask(request, hand.tick, actions, grant_ms, bank_ms, claim, raw, repeated=self._returned)
        return [*out, self._remember(hand), *self.asking.request(hand)]

    # ------------------------------------------------------------------------------------------- commands and timers

    def act(self, act: m.Act) -> list[m.Output]:
        return [] if self._hand is None else self.asking.act(act, self._hand)

    def timer(self, name: str) -> list[m.Output]:
        if name == NEXT:
            return self._ready_for_next()
        if name == RESYNC:
            return self._reconnect()
        return self.asking.not_seen(self._hand) if name == ECHO and self._hand is not None else []

    def repeat(self) -> list[m.Output]:
        """Send the host a fresh snapshot, without a reconnect.

        But the lobby does not report that it deleted a game. So if nothing comes for long, connect again. It offers the
        return to a game that still exists.
        """
        self._repeats += 1
        if self._repeats > MOST_REPEATS and self._may_disconnect:
            return self._session.reconnect("nothing comes from the game: it may be gone")
        hand = self._hand
        if hand is None:
            return [m.Seated(self.name, GAME, self.rules, None, (), self._attributes)]
        if self._blind:
            return self._contradicted("the host asks for the position")
        hand.view = None
        if (ask := self.asking.open) is not None:
            ask.repeated = True
        return hand.report(self.name) + self.asking.request(hand)

    def _contradicted(self, reason: str) -> list[m.Output]:
        """Decide nothing in this hand until the lobby sends a snapshot."""
        out: list[m.Output] = [m.Notice(f"table {self.name}: {reason}", "warning"), *self.asking.withdraw(reason)]
        self._blind = True
        self._mismatches += 1
        if self._mismatches > MOST_MISMATCHES:
            return [
                *out,
                m.Notice("too many contradictions in this game: the lobby plays the rest of this hand for us"),
            ]
        return [*out, m.SetTimer(RESYNC, self._attendance.turn_of(self._session.user) * RESYNC_STEP_S)]

    @property
    def _may_disconnect(self) -> bool:
        """Whether we find the game again after a reconnect."""
        return not self._options.tourist and self._attendance.may_disconnect(self._session.user)

    def _reconnect(self) -> list[m.Output]:
        if not self._blind:
            return []
        if not self._may_disconnect:
            return [m.Notice("a reconnect would delete the game: the lobby plays the rest of this hand for us")]
        return self._session.reconnect("a fresh snapshot is needed")


def _final_scores(frame: wire.GameEnd) -> tuple[float, ...] | None:
    data = frame.player_final_data
    return tuple(float(data[str(i)].score) for i in range(SEATS)) if set(data) == {"0", "1", "2", "3"} else None


def _scores_so_far(info: wire.GameInfo, number: int, picture: Picture) -> tuple[float, ...] | None:
    """What each seat has won or lost in the hand of this number; None if the lobby shows nothing of that."""
    scores: dict[int, float] = {}
    for player in info.players_info:
        original = player.player_index if player.original_player_index is None else player.original_player_index
        for change, hand_number in zip(player.score_history, player.round_number_history, strict=False):
            if hand_number == number and change.lstrip("+-").isdecimal():
                scores[original] = scores.get(original, 0.0) + float(change)
    originals = picture.originals
    return tuple(scores[original] for original in originals) if scores.keys() >= set(originals) else None


def _players(picture: Picture, info: wire.GameInfo) -> tuple[m.PlayerInfo, ...]:
    order = sorted(info.players_info, key=lambda player: (player.player_index - picture.dealer) % SEATS)
    return tuple(
        m.PlayerInfo(str(player.user_id), seat, player.username, wire.is_robot(player.user_id))
        for seat, player in enumerate(order)
    )

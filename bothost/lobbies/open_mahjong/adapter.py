"""The adapter of xelnagamiao/open_mahjong_unity: Chinese Official mahjong with flowers, over a text websocket.

What this lobby leaves to its clients, and where it is dealt with:

- it is silent about moves that it does not take: a move must be seen made within ``echo_s``, otherwise another is asked
  for; of passes there is no echo at all, what happens next shows whether they were heard (``hand``);
- it tells the same thing twice after a reconnect: what is not newer than the last tick is dropped;
- seats change with every hand: we are found by our user id each time;
- flowers are laid down by us where it asks, not by the strategy: our rules leave no choice;
- what our rules cannot follow (a robot that discards a flower) becomes a snapshot of the lobby's picture;
- it deletes a game when all people are gone: we break the connection for a snapshot only where others stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from bothost import messages as m
from bothost import rules
from bothost.lobbies.base import Capabilities
from bothost.lobbies.frames import unknown
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.hand import FALSE_WIN, Hand, action_frame
from bothost.lobbies.open_mahjong.picture import Mismatch, Picture
from bothost.lobbies.open_mahjong.rooms import OpenMahjongRooms, rules_of
from bothost.lobbies.open_mahjong.session import (
    BEGIN,
    ECHO,
    GAME,
    LOOK,
    NEXT,
    RESYNC,
    WAIT,
    Ask,
    OpenMahjongOptions,
    Table,
)

MOST_ATTEMPTS = 8
"""Answers to one question that are refused before its clock decides."""
MOST_MISMATCHES = 3
"""Contradictions within one game after which we no longer reconnect for a snapshot."""
RESYNC_STEP_S = 3.0
"""Players of a table reconnect this far apart: the lobby deletes a game when all are offline."""


class OpenMahjong(OpenMahjongRooms):
    """One player of the lobby."""

    name: ClassVar[str] = "open_mahjong"
    capabilities: ClassVar[Capabilities] = Capabilities(
        games=(GAME,),
        tables_per_connection=1,
        connections_per_identity=1,
        acks_moves=True,
        rejects_illegal="silence",
        sends_turn=True,
        sends_legal_actions=True,
        takes_composites=False,
        clock="bank_and_step",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=None,
        on_rate_limit="none",
        plays_for_us=True,
        needs_secret=False,  # guests need none
    )
    Options: ClassVar[type[msgspec.Struct]] = OpenMahjongOptions

    def feed(self, item: m.Input) -> list[m.Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
        match item:
            case m.Frame():
                return self._frame(item)
            case m.Act():
                return self._act(item)
            case m.Ping():
                return self._ping()
            case m.TimerFired():
                return self._timer(item.name)
            case m.Authenticate() | m.Resume():
                return self._log_in(item)
            case m.SocketOpened():
                return self._opened(item)
            case m.SocketClosed() | m.SocketFailed():
                return self._lost(item)
            case m.Close():
                return self._close()
            case m.Seek() | m.Create() | m.Join():
                return self._begin_seek(item)
            case m.CancelSeek():
                return self._cancel(item) if self._stage == "ready" else []
            case _:
                return self._command(item) if self._stage == "ready" else []

    def _command(self, item: m.Input) -> list[m.Output]:
        table = self._table
        match item:
            case m.ListTables():
                self._listing = True
                return [self._send("room/get_room_list")]
            case m.Ready() | m.Start() if table is not None and table.name == item.table:
                return self._do_our_part()
            case m.Leave() if table is not None and table.name == item.table:
                return self._leave(table)
            case m.Resync() if table is not None and table.name == item.table:
                return self._tell_again(table)
            case _:
                return []  # Accept, Decline, Resign: the lobby has no such thing

    def _leave(self, table: Table) -> list[m.Output]:
        """A game cannot be left: the lobby plays on for who disconnects."""
        end = m.TableEnded(table.name, "left")
        if not table.gamestate:
            return self._leave_room(table, end)
        self._table, self._abandoned = None, True
        return [end, *self._reconnect("we left a game that goes on")]

    def _timer(self, name: str) -> list[m.Output]:
        if self._stage != "ready":
            return self._late(name)
        if name == BEGIN:
            return self._do_our_part()
        if name == LOOK:
            return self._look()
        if name == WAIT:
            return self._give_up_waiting()
        if name == NEXT:
            return self._ready_for_next()
        if name == RESYNC:
            return self._resync()
        table = self._table
        if name != ECHO or table is None or table.hand is None or table.ask is None or not table.ask.said:
            return []
        ask = table.ask
        spent = self.options.echo_s * 1000.0
        ask.bank_ms = max(ask.bank_ms - max(spent - ask.grant_ms, 0.0), 0.0)
        ask.grant_ms = max(ask.grant_ms - spent, 0.0)
        return self._refused(table, table.hand, ask, "silence: the lobby did not take it")

    # ------------------------------------------------------------------------------------------------------- frames

    def _frame(self, item: m.Frame) -> list[m.Output]:
        if item.conn != self._conn or self._stage in ("closed", "opening"):
            return []
        try:
            frame = wire.decode(item.data)
        except wire.BadFrame:
            return [unknown(item.data)]
        match frame:
            case wire.Pong():
                return [m.Alive()]
            case wire.Login():
                return self._logged_in(frame)
            case wire.Popup():
                return self._popup(frame)
            case wire.Tips():
                return self._tips(frame)
            case wire.GameStart():
                return self._game_start(frame.game_info)
        if self._stage != "ready":
            return []
        match frame:
            case wire.RoomTold():
                return self._room_told(frame)
            case wire.RoomList():
                return self._rooms(frame)
            case wire.RoomJoined():
                return [] if frame.success else self._tips(wire.Tips(False, frame.message))
        table = self._table
        if table is None or not table.gamestate:
            return []
        try:
            return self._game_frame(frame, table, item.data)
        except ValueError as error:  # a Mismatch, or a tile that is none
            return self._contradicted(table, str(error))

    def _game_frame(self, frame: wire.Body, table: Table, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.GameEnd():
                return self._game_end(frame, table)
            case wire.Tags():
                return self._tags(frame, table)
            case wire.ReadyTold():
                index = self._index(table)
                waits = index is not None and frame.ready_status_info.player_to_ready.get(str(index)) is False
                return self._ready_for_next() if waits else []
        hand = table.hand
        if hand is None or table.blind:
            return []
        match frame:
            case wire.HandAsked():
                return self._hand_asked(frame.ask_hand_action_info, table, hand, raw)
            case wire.ClaimAsked():
                return self._claim_asked(frame.ask_other_action_info, table, hand, raw)
            case wire.Acted():
                return self._acted(frame.do_action_info, table, hand)
            case wire.ResultShown():
                return self._result(frame.show_result_info, table, hand)
        return []

    def _tags(self, frame: wire.Tags, table: Table) -> list[m.Output]:
        tags = frame.refresh_player_tag_list_info.player_to_tag_list
        offline = frozenset(int(i) for i, tag in tags.items() if i in ("0", "1", "2", "3") and "offline" in tag)
        changed, table.offline = offline ^ table.offline, offline
        table.dropped |= {table.users[index] for index in offline if index < len(table.users)}
        return _present(table, sorted(changed))

    # ------------------------------------------------------------------------------------------------------ the game

    def _game_start(self, info: wire.GameInfo) -> list[m.Output]:
        """The whole position: a hand begins, or we have come back."""
        if self._stage not in ("settling", "returning", "ready"):
            return []
        back = self._stage != "ready"
        out: list[m.Output] = []
        table = self._table
        new = table is None or table.gamestate not in ("", info.gamestate_id)
        if new and table is not None and not back:
            out.append(m.TableEnded(table.name, "aborted", detail="the lobby began another game"))
        if table is None or new:
            table = self._new_table(info)
        if back:
            out += self._welcome(back=True, keep=table.name)
        self._table = table
        table.gamestate, table.step_s, table.returned = info.gamestate_id, max(info.step_time, 0), back
        by_index = sorted(info.players_info, key=lambda player: player.player_index)
        table.users = tuple(player.user_id for player in by_index)
        table.offline = frozenset(p.player_index for p in info.players_info if "offline" in p.tag_list)
        table.dropped |= {table.users[index] for index in table.offline}
        table.dropped |= {self._user} if back else frozenset()
        table.ask, table.next_tick, table.blind = None, None, False
        out += [m.CancelTimer(name) for name in (BEGIN, WAIT, LOOK, ECHO, NEXT, RESYNC)]
        try:
            picture = Picture.read(info, self._user)
        except ValueError as error:  # a Mismatch, or a tile that is none
            table.blind = True
            return [*out, m.Notice(f"the game cannot be understood: {error}", "error")]
        if back or new:
            out.append(self._seated(table, picture, info))
        out += self._position(table, picture, info)
        return out + _present(table, range(len(table.users)))

    def _new_table(self, info: wire.GameInfo) -> Table:
        """A game that we did not see begin: an earlier process was there, or the match queue found it."""
        known = self._memo.get("gamestate") == info.gamestate_id and isinstance(self._memo.get("table"), str)
        name = self._memo["table"] if known else f"game-{info.gamestate_id}"
        room = str(info.room_id) if known and name.startswith("room-") else ""
        return Table(name, room, rules_of(info.hepai_limit))

    def _seated(self, table: Table, picture: Picture, info: wire.GameInfo) -> m.Seated:
        seek, self._seek = self._seek, None
        players = _players(picture, info)
        return m.Seated(
            table.name,
            GAME,
            table.rules,
            picture.seat,
            players,
            table.attributes,
            seek.id if seek is not None else None,
        )

    def _position(self, table: Table, picture: Picture, info: wire.GameInfo) -> list[m.Output]:
        name = f"{info.gamestate_id}.{info.current_round}"
        before, tick = table.hand, info.action_tick
        out: list[m.Output] = []
        if before is not None and before.name != name:
            out.append(m.HandEnded(table.name, before.name, None, "aborted"))
            before = None
        if before is None and tick == 0 and picture.untouched:
            table.hand = hand = Hand.begin(name, rules.game(GAME, **table.rules), picture, tick)
            out += [self._remember(table, hand)]
            out.append(m.HandStarted(table.name, name, hand.seat, _players(picture, info)))
            return out + self._tell(table, hand)
        if before is not None and before.tick == tick:
            if before.view is not None and before.picture.agrees(picture):
                before.take_lines()
                return [*out, m.Snapshot(table.name, name, before.seat, before.view.to_json())]
            if not before.picture.agrees(picture):
                text = f"table {table.name}: the lobby's picture is not ours: taking the lobby's"
                out.append(m.Notice(text, "warning"))
        hand = Hand(name, rules.game(GAME, **table.rules), picture, tick)
        seq = None
        if before is not None:
            hand.told = before.told
        elif self._memo.get("hand") == name and isinstance(self._memo.get("seq"), int):
            hand.told = self._memo["seq"]
            seq = hand.told if self._memo.get("tick") == tick else None
        table.hand = hand
        view = hand.renew(seq)
        return out if view is None else [*out, m.Snapshot(table.name, name, hand.seat, view)]

    def _acted(self, action: wire.Action, table: Table, hand: Hand) -> list[m.Output]:
        if action.is_claim or action.action_tick <= hand.done:
            return []  # an announcement; or told before
        table.returned = False
        seat = hand.seat_of(action.action_player)
        done = hand.notation_of(action) if seat == hand.seat else ""
        counted = hand.acted(action)
        out: list[m.Output] = []
        if action.is_timeout_action and seat != hand.seat:
            out.append(m.ServerActedFor(table.name, hand.name, seat))
        return out + self._tell(table, hand) + self._resolve(table, counted, done, action)

    def _resolve(self, table: Table, counted: bool, done: str, action: wire.Action) -> list[m.Output]:
        """What became of the question that was open."""
        ask = table.ask
        if ask is None:
            return []
        table.ask = None
        out: list[m.Output] = [m.CancelTimer(ECHO)]
        if counted or (ask.said and ask.said == done and not action.is_timeout_action):
            return [*out, m.MoveAcknowledged(table.name, ask.request)]
        if ask.claim and not done and any(kind.startswith(("chi", "peng", "gang")) for kind in action.action_list):
            return [*out, m.RequestWithdrawn(table.name, ask.request, "another claim went first")]
        return [*out, m.ServerActedForUs(table.name, ask.request, done or "pass")]

    def _result(self, result: wire.Result, table: Table, hand: Hand) -> list[m.Output]:
        ask, table.ask = table.ask, None
        if result.hu_fan and FALSE_WIN in result.hu_fan:
            hand.tick, hand.said = max(hand.tick, result.action_tick), ""
            out: list[m.Output] = [m.Notice(f"table {table.name}: a false win; the hand goes on")]
            return out if ask is None else [*out, m.RequestWithdrawn(table.name, ask.request, "a false win")]
        scores = hand.ended(result)
        out = [m.CancelTimer(ECHO), *self._tell(table, hand)]
        if ask is not None and ask.said:
            won = result.hepai_player_index is not None and hand.seat_of(result.hepai_player_index) == hand.seat
            if won or (ask.claim and ask.said == "pass"):
                out.append(m.MoveAcknowledged(table.name, ask.request))
            else:
                out.append(m.RequestWithdrawn(table.name, ask.request, "the hand ended without our move"))
        elif ask is not None:
            out.append(m.ServerActedForUs(table.name, ask.request, "pass" if ask.claim else None))
        out.append(m.HandEnded(table.name, hand.name, scores))
        table.hand = None
        if result.hu_class.startswith("hu") and result.next_status == "round_end_by_ready":
            table.next_tick = result.action_tick
            out.append(m.SetTimer(NEXT, self.options.ready_after_s))
        return out

    def _ready_for_next(self) -> list[m.Output]:
        """After a win the lobby waits until everybody has read the fans."""
        table = self._table
        if table is None or table.next_tick is None:
            return []
        tick, table.next_tick = table.next_tick, None
        return [m.CancelTimer(NEXT), m.SendFrame(self._conn, action_frame("ready", None, table.gamestate, tick))]

    def _game_end(self, frame: wire.GameEnd, table: Table) -> list[m.Output]:
        out: list[m.Output] = [m.CancelTimer(ECHO), m.CancelTimer(NEXT)]
        if table.hand is not None:
            out.append(m.HandEnded(table.name, table.hand.name, None, "aborted"))
        data = frame.game_end_info.player_final_data
        told = set(data) == {"0", "1", "2", "3"}
        scores = tuple(float(data[str(index)].score) for index in range(4)) if told else None
        end = m.TableEnded(table.name, "normal", scores)
        out.append(m.Remember({}))
        if table.room:
            return [*out, *self._leave_room(table, end)]
        self._table = None
        return [*out, end]

    # -------------------------------------------------------------------------------------------------- being asked

    def _hand_asked(self, ask: wire.HandAsk, table: Table, hand: Hand, raw: str | bytes) -> list[m.Output]:
        if ask.action_tick < hand.tick:
            return []
        hand.tick = ask.action_tick
        mine = hand.seat_of(ask.player_index) == hand.seat and bool(ask.action_list)
        if ask.opening_buhua_complete or (mine and "cut" in ask.action_list):
            hand.begin_play()
        if not mine:
            return self._tell(table, hand)
        if "buhua" in ask.action_list:
            frame = action_frame("buhua", None, table.gamestate, ask.action_tick)
            return [*self._tell(table, hand), m.SendFrame(self._conn, frame)]
        flower = next((tile for tile in hand.picture.own if wire.is_flower(tile)), None)
        if flower is not None:  # no tile is left to replace it
            frame = hand.cut_frame(flower, table.gamestate, ask.action_tick)
            return [*self._tell(table, hand), m.SendFrame(self._conn, frame)]
        if ask.deal_tile_type == "deal_gang_tile" and hand.picture.phase == "turn" and not hand.picture.after_kong:
            hand.picture.after_kong, hand.view = True, None  # a snapshot does not tell it
        return self._question(table, hand, ask.action_list, ask.remaining_time, raw)

    def _claim_asked(self, ask: wire.ClaimAsk, table: Table, hand: Hand, raw: str | bytes) -> list[m.Output]:
        if ask.action_tick < hand.tick or hand.seat_of(ask.player_index) != hand.seat or not ask.action_list:
            return []
        hand.tick = ask.action_tick
        robbing = all(action.startswith(("hu_", "pass", "force_pass")) for action in ask.action_list)
        if hand.asked_about(ask.cut_tile, robbing=robbing):
            hand.view = None
        return self._question(table, hand, ask.action_list, ask.remaining_time, raw)

    def _question(self, table: Table, hand: Hand, actions: wire.Words, bank_s: int, raw: str | bytes) -> list[m.Output]:
        if table.ask is not None and table.ask.tick == hand.tick:
            return []  # told twice
        out = self._tell(table, hand)
        claim = hand.picture.phase in ("claims", "robbing")
        if hand.view is None or not hand.view.asked:
            if not (claim and "pass" in actions):
                raise Mismatch("we are asked, but our rules know of no question")
            # A claim that our fans do not allow; or a flower is in our hand still, which the lobby kept there while we
            # were away, and no rule of ours knows such a hand.
            frame = hand.frame_of("pass", actions, table.gamestate, hand.tick)
            text = f"table {table.name}: the lobby offers {', '.join(actions)}, which our rules do not know: passing"
            return [*out, m.Notice(text, "warning"), m.SendFrame(self._conn, frame)]
        grant_ms = table.step_s * 1000.0 * (0.5 if table.returned else 1.0)
        request = f"{hand.name}.{hand.tick}"
        table.ask = Ask(request, hand.tick, actions, grant_ms, max(bank_s, 0) * 1000.0, claim, raw)
        return [*out, self._remember(table, hand), self._request(table, hand, table.ask)]

    def _request(self, table: Table, hand: Hand, ask: Ask) -> m.ActionRequest:
        assert hand.view is not None
        legal = tuple(hand.legal(ask.actions))
        return m.ActionRequest(
            table.name, hand.name, ask.request, ask.grant_ms, ask.bank_ms, hand.view.seq, legal, ask.raw
        )

    def _act(self, act: m.Act) -> list[m.Output]:
        table = self._table
        if self._stage != "ready" or table is None or table.name != act.table or table.hand is None:
            return []
        ask, hand = table.ask, table.hand
        if ask is None or ask.said or act.request_id != ask.request:
            return []
        if len(act.actions) != 1:
            raise ValueError(f"open_mahjong takes one action at a time, not {len(act.actions)}")
        (action,) = act.actions
        try:
            frame = hand.frame_of(action, ask.actions, table.gamestate, ask.tick)
        except ValueError as error:
            return self._refused(table, hand, ask, str(error))
        ask.said = action
        if ask.claim:
            hand.said = action
            return [m.SendFrame(self._conn, frame)]  # the others may think longer than we did
        return [m.SendFrame(self._conn, frame), m.SetTimer(ECHO, self.options.echo_s)]

    def _refused(self, table: Table, hand: Hand, ask: Ask, reason: str) -> list[m.Output]:
        """The lobby says nothing of what it does not take: ask for another action, a few times."""
        out: list[m.Output] = [m.Rejected(table.name, ask.request, reason)]
        ask.attempt += 1
        ask.said = hand.said = ""
        if ask.attempt >= MOST_ATTEMPTS or hand.view is None:
            table.ask = None
            return out
        ask.request = f"{hand.name}.{ask.tick}.{ask.attempt}"
        return [*out, self._request(table, hand, ask)]

    # ------------------------------------------------------------------------------------------ keeping the host right

    def _tell(self, table: Table, hand: Hand) -> list[m.Output]:
        """Events since the last time; or, where the view was lost, the lobby's picture as soon as it can be told."""
        if hand.view is not None:
            first, lines = hand.take_lines()
            return [m.Delta(table.name, hand.name, first, lines)] if lines else []
        out: list[m.Output] = []
        if hand.trouble:
            out.append(m.Notice(f"table {table.name}: {hand.trouble}: taking the lobby's picture", "info"))
            hand.trouble = ""
        view = hand.renew()
        return out if view is None else [*out, m.Snapshot(table.name, hand.name, hand.seat, view)]

    def _tell_again(self, table: Table) -> list[m.Output]:
        """The host does not trust its view: the picture is told anew, without breaking the connection."""
        hand = table.hand
        if hand is None:
            return [m.Seated(table.name, GAME, table.rules, None, (), table.attributes)]
        if table.blind:
            return self._contradicted(table, "the host asks for the position")
        hand.view = None
        out = self._tell(table, hand)
        ask = table.ask
        if ask is None or ask.said or hand.view is None or not hand.view.asked:
            return out
        return [*out, self._request(table, hand, ask)]

    def _contradicted(self, table: Table, reason: str) -> list[m.Output]:
        """Nothing more is decided in this hand until the lobby has told the position anew."""
        out: list[m.Output] = [m.Notice(f"table {table.name}: {reason}", "warning")]
        ask, table.ask, table.blind = table.ask, None, True
        if ask is not None:
            out.append(m.RequestWithdrawn(table.name, ask.request, reason))
        table.mismatches += 1
        if table.mismatches > MOST_MISMATCHES:
            return [*out, m.Notice("too many contradictions in this game: the lobby's clock plays this hand")]
        people = [user for user in table.users if user >= wire.ROBOTS_BELOW]
        place = people.index(self._user) if self._user in people else 0
        return [*out, m.SetTimer(RESYNC, place * RESYNC_STEP_S)]

    def _resync(self) -> list[m.Output]:
        """Reconnect for a snapshot, unless the lobby would delete the game.

        It does so when all people are offline, and when the last one of the room disconnects. Whoever disconnected
        once is no longer in the room.
        """
        table = self._table
        if table is None or not table.blind:
            return []
        others = {
            user: index for index, user in enumerate(table.users) if user >= wire.ROBOTS_BELOW and user != self._user
        }
        online = any(index not in table.offline for index in others.values())
        last_in_room = self._user not in table.dropped and table.dropped >= others.keys()
        if not online or last_in_room or self.options.tourist:
            return [m.Notice("the lobby would delete the game if we reconnected: its clock plays this hand")]
        return self._reconnect("a fresh snapshot is needed")

    def _index(self, table: Table) -> int | None:
        return table.users.index(self._user) if self._user in table.users else None

    def _remember(self, table: Table, hand: Hand) -> m.Remember:
        seq = hand.view.seq if hand.view is not None else hand.told
        memo = {"table": table.name, "gamestate": table.gamestate, "hand": hand.name, "seq": seq, "tick": hand.tick}
        self._memo = memo
        return m.Remember(memo)


def _present(table: Table, indices: Iterable[int]) -> list[m.Output]:
    """Who of these is there, of those who play the running hand."""
    hand = table.hand
    if hand is None:
        return []
    return [m.Presence(table.name, hand.seat_of(index), index not in table.offline) for index in indices]


def _players(picture: Picture, info: wire.GameInfo) -> tuple[m.PlayerInfo, ...]:
    order = sorted(info.players_info, key=lambda player: (player.player_index - picture.dealer) % 4)
    return tuple(
        m.PlayerInfo(str(player.user_id), seat, player.username, player.user_id < wire.ROBOTS_BELOW)
        for seat, player in enumerate(order)
    )

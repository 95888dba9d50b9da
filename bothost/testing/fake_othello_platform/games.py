"""The games of the fake of othello-platform: moves, clocks, and reconnects."""

from __future__ import annotations

import asyncio
import time

from bothost.testing.fake_othello_platform.parts import COLORS, Game, Json, Line, Lobby, Room

PASS = 64
RECONNECT_S = 30.0
"""A player who disconnected loses after this time."""


class Games:
    """All running games."""

    def __init__(self, owner: Lobby) -> None:
        self.running: dict[str, Game] = {}
        self.ended: list[tuple[str, str, str]] = []
        self.moves = 0
        self._owner = owner

    def begin(self, room: Room) -> None:
        game = Game(f"g_{next(self._owner.numbers)}", room)
        room.game, room.status = game.id, "playing"
        self.running[game.id] = game
        self._start_clock(game)
        for user in game.seats:
            self._owner.tell(user, "game_start", self.start_frame(game))
        self._owner.show(room)
        room.ready = [False, False]

    def start_frame(self, game: Game) -> Json:
        level = (3, "WHITE") if game.room.against_ai else (None, None)
        return {**self._position(game), "aiLevel": level[0], "aiColor": level[1]}

    def again(self, game: Game) -> Json:
        """What a player who enters the room again is sent."""
        shown = ("seq", "color", "pos", "isPass")
        return {**self.start_frame(game), "moves": [{name: move[name] for name in shown} for move in game.moves]}

    def _position(self, game: Game) -> Json:
        black, white = game.seats
        name = self._owner.accounts.name
        names = {"blackName": name(black), "whiteName": "AI" if game.room.against_ai else name(white)}
        ids = {"gameId": game.id, "blackId": black, "whiteId": white}
        return {**ids, **names, "turn": game.turn(), "board": game.board(), "remainingMs": game.remaining_ms()}

    # ---------------------------------------------------------------------------------------------------------- moves

    def move(self, line: Line, payload: Json) -> None:
        game = self.running.get(payload["gameId"])
        if game is None:
            return self._owner.error(line, "GAME_NOT_FOUND")
        if payload["seq"] < 1:
            return self._owner.error(line, "VALIDATION_ERROR")
        seat, pos = game.seats.index(line.user), payload["pos"]
        if payload["color"] != COLORS[seat] or game.turn() != COLORS[seat]:
            return self._owner.error(line, "NOT_YOUR_TURN")
        self.moves += 1
        action, legal = pos["y"] * 8 + pos["x"], game.state.legal(seat)
        if action not in legal or self._unfair(game, len(legal)):
            self._owner.error(line, "ILLEGAL_MOVE")
        else:
            self._place(game, seat, action)
            if self._every("drop"):
                self._owner.drop(line.user)

    def _every(self, name: str) -> bool:
        return self._owner.every(getattr(self._owner.traps, f"{name}_every"), self.moves, name)

    def _unfair(self, game: Game, legal: int) -> bool:
        """Whether to refuse a legal move: at most once at a position, and only if there is another legal move."""
        if legal < 2 or game.refused_at == len(game.moves) or not self._every("refuse"):
            return False
        game.refused_at = len(game.moves)
        return True

    def _place(self, game: Game, seat: int, action: int) -> None:
        before = game.board()
        game.restored_turn = None
        game.state.apply(seat, action)
        passed = False
        while not game.state.terminal and list(game.state.legal(game.state.to_act[0])) == [PASS]:
            game.state.apply(game.state.to_act[0], PASS)
            passed = True
        self._show_move(game, seat, action, before)
        if game.state.terminal:
            board = game.board()
            lead = board.count(1) - board.count(2)
            return self.end(game, "BLACK" if lead > 0 else "WHITE" if lead else "DRAW", "normal")
        self._start_clock(game)  # also if the next player is offline
        soon = asyncio.get_running_loop().call_soon
        if passed and self._owner.traps.restart_on_pass and "restart" not in self._owner.struck:
            self._owner.struck.append("restart")
            soon(self._owner.restart)
        if game.room.against_ai and game.state.to_act[0] == 1:
            soon(self._play, game)

    def _show_move(self, game: Game, seat: int, action: int, before: list[int]) -> None:
        board = game.board()
        pos = {"x": action % 8, "y": action // 8}
        flipped = [{"x": i % 8, "y": i // 8} for i in range(64) if before[i] and before[i] != board[i]]
        move = {"seq": len(game.moves) + 1, "color": COLORS[seat], "pos": pos, "flipped": flipped}
        game.moves.append({**move, "isPass": False})
        shown = list(board)
        if self._every("lie"):
            shown[flipped[0]["y"] * 8 + flipped[0]["x"]] = 2 - seat
        frame = {
            **move, "gameId": game.id, "nextTurn": game.turn(), "board": shown,
            "blackCount": board.count(1), "whiteCount": board.count(2),
            "remainingMs": int(self._move_s(game) * 1000),
        }  # fmt: skip
        twice, noise = self._every("repeat"), self._every("noise")
        for user in game.seats:
            if noise:
                self._owner.tell(user, "chat", {"from": 0, "text": "你好"})
                self._owner.tell(user, "game_over", {"gameId": "g_0", "result": "WHITE", "endReason": "disconnect"})
            for _ in range(1 + twice):
                self._owner.tell(user, "move", frame)

    def _play(self, game: Game) -> None:
        """The lobby's own player."""
        if not game.state.terminal:
            self._place(game, 1, int(self._owner.rng.choice(list(game.state.legal(1)))))

    # ------------------------------------------------------------------------------------------ clocks and their end

    def _move_s(self, game: Game) -> float:
        """The time for a move."""
        return self._owner.move_s * (4 if game.room.against_ai else 1)

    def _start_clock(self, game: Game, seconds: float | None = None) -> None:
        self._freeze(game)
        seconds = self._move_s(game) if seconds is None else seconds
        game.left_ms, game.since = seconds * 1000.0, time.monotonic()
        game.timer = self._owner.later(seconds, self._late, game)

    def _freeze(self, game: Game) -> None:
        if game.timer is not None:
            game.left_ms = game.remaining_ms()
            game.timer.cancel()
            game.timer = None

    def _late(self, game: Game) -> None:
        self.end(game, COLORS[1 - COLORS.index(game.turn() or "BLACK")], "timeout")

    def _stop(self, game: Game) -> None:
        self._freeze(game)
        for timer in game.windows.values():
            timer.cancel()

    def restore(self) -> None:
        """Rebuild the games from their moves, as after a restart of the server."""
        for game in self.running.values():
            self._stop(game)
            game.windows.clear()
            game.restore()
            self._start_clock(game)

    def resign(self, line: Line, payload: Json) -> None:
        game = self.running.get(payload["gameId"])
        if game is not None:
            self.end(game, COLORS[1 - game.seats.index(line.user)], "resign")

    def end(self, game: Game, result: str, reason: str) -> None:
        self._stop(game)
        self.running.pop(game.id, None)
        self.ended.append((game.id, result, reason))
        board = game.board()
        over = {"gameId": game.id, "result": result, "endReason": reason}
        for user in game.seats:
            self._owner.tell(user, "game_over", {**over, "blackCount": board.count(1), "whiteCount": board.count(2)})
        game.room.status = "finished"
        self._owner.show(game.room)

    def closed(self, user: int) -> None:
        """Handle the end of any socket of a player, even if another one is open."""
        for game in self.running.values():
            if user in game.seats and user not in game.windows:
                self._freeze(game)
                winner = COLORS[1 - game.seats.index(user)]
                game.windows[user] = self._owner.later(RECONNECT_S, self.end, game, winner, "disconnect")

    def reconnect(self, line: Line, payload: Json) -> None:
        game = self.running.get(payload["gameId"])
        if game is None or line.user not in game.seats:
            return self._owner.error(line, "GAME_NOT_FOUND")
        window = game.windows.pop(line.user, None)
        if window is not None:
            window.cancel()
        if game.timer is None:
            self._start_clock(game, game.left_ms / 1000.0)  # even if the other player is still away
        board, moves = game.board(), [move for move in game.moves if move["seq"] > payload["lastSeq"]]
        counts = {"blackCount": board.count(1), "whiteCount": board.count(2)}
        line.say("state_sync", {**self._position(game), **counts, "status": "playing", "moves": moves})

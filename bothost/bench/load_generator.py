"""The load of the host benchmark, in its own process: a lobby that is much cheaper than a real one.

It speaks the embedded lobby's protocol to any number of accounts and plays real hands of the game that a seek names:
native states, with random play of the other seats. It has no clocks and no checks, and a minimal frame parser: frames
are small, whole and correct. In closed loop a table is asked again as soon as it has answered. In open loop requests
are due at a fixed rate, and their latency counts from the due time.

It prints ``{"port": …}`` when it listens and a JSON object of figures at the end. ``--report`` adds a JSON object for
every window of that many seconds. ``--hands`` ends a table after that many hands; its seat is then requested again.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import struct
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from websockets.utils import accept_key, apply_mask

from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.rules.game import Game, State

GRANT_MS = 30_000
TICK_S = 0.0005
STAGGER = 45
"""Most moves of a first hand before the host joins. Hands of Dou Dizhu have about 60."""


@dataclass(slots=True, eq=False)
class LoadTable:
    """A table that plays one hand after another, with one seat for the host."""

    peer: Peer
    name: str
    game: Game
    state: State = field(init=False)
    hand: int = 0
    asked: int = 0
    since: int = 0
    due: float = 0.0
    waiting: bytes = b""
    """The next frame. In open loop it is kept until it is due."""


class Load:
    """The shared state of all connections: phase, counters and schedule."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.game = cache(rules.game)
        self.tables_wanted = args.tables
        self.hands_per_table = args.hands
        self.opened = 0
        self.rate = args.rate
        self.echo = args.echo
        self.random = random.Random(1)
        self.tables: dict[str, LoadTable] = {}
        self.echoes: list[Peer] = []
        """The connections that echo."""
        self.ready: deque[LoadTable] = deque()
        self.late: deque[float] = deque()
        """Due times at which no table was ready."""
        self.answers = 0
        self.in_flight = 0
        self.stopped = False
        self.latencies: list[float] = []
        self.lags: list[float] = []
        """Lateness of sent requests: the machine's share of the latency."""
        self.measuring = False
        self.in_bytes = self.out_bytes = 0
        self.frames: list[bytes] = []
        """Some sent frames, for the echo."""

    # ---------------------------------------------------------------------------------------------------- the game

    def open(self, peer: Peer, seek: wire.Seek) -> None:
        name = f"t{self.opened}"
        self.opened += 1
        game = self.game(seek.game)
        table = self.tables[name] = LoadTable(peer, name, game)
        frame = wire.Seated(name, game.name, game.rules, 0, (), {}, seek.seek)
        peer.send(wire.encode(frame))
        self.deal(table, None)

    def deal(self, table: LoadTable, done: str | None) -> None:
        """Start a hand, and ask the host's seat."""
        table.hand += 1
        table.since = 0
        table.state = table.game.new_state(self.random.getrandbits(63))
        table.peer.send(wire.encode(wire.HandStarted(table.name, str(table.hand), 0, ())))
        if table.hand == 1:
            self.play_into(table.state, self.random.randrange(STAGGER))
        self.go_on(table, done)

    def play_into(self, state: State, moves: int) -> None:
        """Join each first hand at a random point. Otherwise all tables would end their hands together."""
        for _ in range(moves):
            if state.terminal:
                return
            seat = state.to_act[0]
            state.apply(seat, int(self.random.choice(state.legal(seat).tolist())))

    def go_on(self, table: LoadTable, done: str | None) -> None:
        """Play the other seats until seat 0 is asked. Returns the frame with all events and the request."""
        state = table.state
        draw = self.random.random
        while 0 not in (seats := state.to_act) and seats:
            legal = state.legal(seats[0])
            state.apply(seats[0], int(legal[int(draw() * len(legal))]))
        events = tuple(state.events(0, table.since))
        hand = str(table.hand)
        seq, table.since = table.since, table.since + len(events)
        if not seats:
            table.peer.send(wire.encode(wire.Events(table.name, hand, seq, events, done)))
            table.peer.send(wire.encode(wire.HandEnded(table.name, hand, tuple(state.returns))))
            if table.hand == self.hands_per_table:
                del self.tables[table.name]
                table.peer.send(wire.encode(wire.TableEnded(table.name, "normal", None)))
            else:
                self.deal(table, None)
            return
        table.asked += 1
        ask = wire.Ask(f"{table.name}-{table.asked}", GRANT_MS, 0)
        frame = wire.encode(wire.Events(table.name, hand, seq, events, done, ask))
        if len(self.frames) < 4096:
            self.frames.append(frame)
        if self.rate:
            table.waiting = frame
            if self.late:
                self.ask(table, self.late.popleft())
            else:
                self.ready.append(table)
        elif not self.stopped:
            self.in_flight += 1
            table.peer.send(frame)

    def ask(self, table: LoadTable, due: float) -> None:
        self.in_flight += 1
        table.due = due
        if self.measuring:
            self.lags.append(time.monotonic() - due)
        table.peer.send(table.waiting)

    def answered(self, act: wire.Act) -> None:
        table = self.tables[act.table]
        self.in_flight -= 1
        self.answers += 1
        if self.measuring and self.rate:
            self.latencies.append(time.monotonic() - table.due)
        table.state.apply(0, table.game.parse(act.action))
        self.go_on(table, act.id)

    # ------------------------------------------------------------------------------------------------------ phases

    async def run(self, warm_s: float, seconds: float, report_s: float) -> dict[str, Any]:
        while len(self.tables) < self.tables_wanted or len(self.echoes) < self.echo:  # noqa: ASYNC110 (they come by frames)
            await asyncio.sleep(0.05)
        schedule = asyncio.create_task(self.schedule()) if self.rate else None
        await asyncio.sleep(warm_s)
        self.measuring = True
        before, started, in_bytes, out_bytes = self.answers, time.monotonic(), self.in_bytes, self.out_bytes
        if report_s:
            await self.report(started, seconds, report_s)
        else:
            await asyncio.sleep(seconds)
        answers, elapsed = self.answers - before, time.monotonic() - started
        self.measuring, self.stopped = False, True
        in_bytes, out_bytes = self.in_bytes - in_bytes, self.out_bytes - out_bytes
        if schedule is not None:
            schedule.cancel()
        while self.in_flight:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return {
            "per_s": answers / elapsed,
            "answers": self.answers,
            "opened": self.opened,
            "p50_ms": quantile_ms(self.latencies, 0.5),
            "p99_ms": quantile_ms(self.latencies, 0.99),
            "lag_p99_ms": quantile_ms(self.lags, 0.99),
            "bytes_to_host": out_bytes / max(1, answers),
            "bytes_from_host": in_bytes / max(1, answers),
            "never_ready": len(self.late),
        }

    async def report(self, started: float, seconds: float, window_s: float) -> None:
        """Print the figures of every window, and forget its latencies."""
        number, answers = 1, self.answers
        while number * window_s <= seconds + 1e-6:
            await asyncio.sleep(started + number * window_s - time.monotonic())
            latencies, self.latencies, self.lags = self.latencies, [], []
            window = {
                "at_s": round(number * window_s, 3),
                "answers": self.answers - answers,
                "p50_ms": quantile_ms(latencies, 0.5),
                "p99_ms": quantile_ms(latencies, 0.99),
                "tables": len(self.tables),
                "opened": self.opened,
            }
            print(json.dumps(window), flush=True)
            number, answers = number + 1, self.answers

    async def schedule(self) -> None:
        """Open loop: send every request at its time, even if earlier ones are unanswered."""
        started, number = time.monotonic(), 0
        while True:
            due = started + number / self.rate
            now = time.monotonic()
            while due <= now:
                if self.echoes:
                    self.echoes[number % len(self.echoes)].echo(due)
                elif self.ready:
                    self.ask(self.ready.popleft(), due)
                else:
                    self.late.append(due)
                number += 1
                due = started + number / self.rate
            await asyncio.sleep(min(max(TICK_S, 0.5 / self.rate), 4 * TICK_S))


class Peer(asyncio.Protocol):
    """One connection: a minimal websocket server for correct clients."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.open = False
        self.out: list[bytes] = []
        self.dues: deque[float] = deque()
        """Due times of the frames that are being echoed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data
        if not self.open:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self.buffer = head
                return
            self.shake_hands(head)
        position, size = 0, len(data)
        while size - position >= 6:
            length = data[position + 1] & 127
            start = position + 2
            if length == 126:
                if size - position < 8:
                    break
                (length,) = struct.unpack_from(">H", data, start)
                start += 2
            end_of_frame = start + 4 + length
            if end_of_frame > size:
                break
            mask = data[start : start + 4]
            body = data[start + 4 : end_of_frame]
            opcode = data[position] & 15
            position = end_of_frame
            if opcode == 1:
                self.load.in_bytes += length
                self.message(apply_mask(body, mask))
            elif opcode == 8:
                self.transport.close()
                return
        self.buffer = data[position:]

    def shake_hands(self, head: bytes) -> None:
        key = next(
            line.split(b":", 1)[1].strip()
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key:")
        )
        self.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept_key(key.decode()).encode() + b"\r\n\r\n"
        )
        self.open = True
        if self.load.echo:
            self.load.echoes.append(self)
            for _ in range(0 if self.load.rate else max(1, self.load.tables_wanted // self.load.echo)):
                self.echo(time.monotonic())

    def message(self, text: bytes) -> None:
        load = self.load
        if load.echo:
            load.answers += 1
            load.in_flight -= 1
            due = self.dues.popleft()
            if load.measuring and load.rate:
                load.latencies.append(time.monotonic() - due)
            if not (load.stopped or load.rate):
                self.echo(due)
            return
        message = wire.decode_client(text)
        if type(message) is wire.Act:
            load.answered(message)
        elif type(message) is wire.Seek:
            if len(load.tables) < load.tables_wanted:
                load.open(self, message)
        elif type(message) is wire.Hello:
            limits = wire.Limits(1 << 20, 1e6, 1_000_000, 1_000_000)
            self.send(wire.encode(wire.Welcome(1, message.token, message.token, limits)))
        elif type(message) is wire.Ping:
            self.send(wire.encode(wire.Pong()))

    def echo(self, due: float) -> None:
        load = self.load
        load.in_flight += 1
        self.dues.append(due)
        if load.measuring and load.rate:
            load.lags.append(time.monotonic() - due)
        self.send(load.frames[load.answers % len(load.frames)])

    def send(self, frame: bytes) -> None:
        """Queue a text frame. It is sent with all others of this turn of the loop."""
        length = len(frame)
        self.load.out_bytes += length
        if not self.out:
            asyncio.get_running_loop().call_soon(self.flush)
        self.out.append(b"\x81" + (bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length)))
        self.out.append(frame)

    def flush(self) -> None:
        out, self.out = self.out, []
        self.transport.write(b"".join(out))


def quantile_ms(seconds: list[float], q: float) -> float | None:
    seconds.sort()
    return seconds[int(q * (len(seconds) - 1))] * 1000.0 if seconds else None


async def main(args: argparse.Namespace) -> None:
    load = Load(args)
    if args.echo:
        load.frames = [bytes(line, "utf-8") for line in json.load(sys.stdin)]
        load.tables = {str(n): None for n in range(args.tables)}  # type: ignore[misc]
    server = await asyncio.get_running_loop().create_server(lambda: Peer(load), "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    figures = await load.run(args.warm, args.seconds, args.report)
    print(json.dumps({**figures, "frames": [frame.decode() for frame in load.frames[:1000]]}), flush=True)
    if not args.echo:
        await asyncio.to_thread(sys.stdin.read)  # keep the connections until the parent has seen the host end
    server.close()


if __name__ == "__main__":
    import os

    import uvloop

    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--echo", type=int, default=0, help="number of echoing connections")
    parser.add_argument("--warm", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--hands", type=int, default=0, help="hands of a table; 0: it never ends")
    parser.add_argument("--report", type=float, default=0.0, help="seconds of a window; 0: no windows")
    parser.add_argument("--core", type=int, default=-1)
    arguments = parser.parse_args()
    if arguments.core >= 0:
        os.sched_setaffinity(0, {arguments.core})
    gc.disable()  # its objects have no cycles, and pauses of the collector would count against the host
    uvloop.run(main(arguments))

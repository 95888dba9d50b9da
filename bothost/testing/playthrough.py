"""Golden playthroughs: one hand of a game in readable text, compared with a new run.

::

    python -m bothost.testing.playthrough                  # compare every golden file
    python -m bothost.testing.playthrough doudizhu         # print one
    python -m bothost.testing.playthrough doudizhu:botzone --write

A file shows the deal, then for each step who is asked, the legal actions, the action, the events of each seat, and a
hash of every seat's view. So any change of rules, events or formats is a readable difference. The files are in
``tests/rules/playthroughs``: ``GAME.txt`` for the default preset and ``GAME-PRESET.txt`` for others.
"""

from __future__ import annotations

import argparse
import difflib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bothost.errors import UsageError
from bothost.rules import Game, State, game, games, presets

FOLDER = Path("tests/rules/playthroughs")
LEGAL_SHOWN = 12
SEED = 1


def file_name(name: str, preset: str) -> str:
    return f"{name}.txt" if preset == presets(name)[0] else f"{name}-{preset}.txt"


def playthrough(name: str, preset: str, seed: int = SEED) -> str:
    """The text of one hand of random play. It depends on the arguments only, and not on the machine."""
    settled = game(name, preset=preset)
    return "\n".join(_lines(settled, f"{name}:{preset}", seed)) + "\n"


def _lines(game: Game, title: str, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    state = game.new_state(seed)
    yield f"# One hand of random play. Made by: python -m bothost.testing.playthrough {title} --write"
    yield f"rules    {_json(game.rules)}"
    yield f"format   {game.format_version}"
    yield f"deal     {_json(state.deal)}"
    received = [0] * game.num_seats
    yield from _events(state, received)
    step = 0
    while not state.terminal:
        yield ""
        yield f"step {step}"
        for seat in state.to_act:
            view = state.view(seat)
            yield f"asked    {seat}: seq {view.seq}, {view.phase}: {_legal(game, state, seat)}"
        # Only random() is guaranteed to return the same numbers in every version of Python.
        seat = state.to_act[int(rng.random() * len(state.to_act))]
        legal = state.legal(seat)
        action = int(legal[int(rng.random() * len(legal))])
        yield f"action   {seat}: {game.notation(action)} ({action})"
        state.apply(seat, action)
        yield from _events(state, received)
        step += 1
    yield ""
    yield f"returns  {' '.join(f'{r:g}' for r in state.returns)}"


def _events(state: State, received: list[int]) -> Iterator[str]:
    """Lines for the new events, each with the seats that received it, and the hashes of all views."""
    news = [state.events(seat, since) for seat, since in enumerate(received)]
    for seat, events in enumerate(news):
        received[seat] += len(events)
    while heads := [events[0] for events in news if events]:
        # Choose an event that is not behind another one in any seat's list.
        event = next((h for h in heads if all(h not in events[1:] for events in news)), heads[0])
        seats = [seat for seat, events in enumerate(news) if events and events[0] == event]
        for seat in seats:
            news[seat].pop(0)
        yield f"event    {','.join(map(str, seats))}: {event}"
    yield "views    " + " ".join(f"{state.view(seat).hash() % 2**64:016x}" for seat in range(len(received)))


def _legal(game: Game, state: State, seat: int) -> str:
    legal = state.legal(seat)
    words = " ".join(game.notation(int(action)) for action in legal[:LEGAL_SHOWN])
    return words if len(legal) <= LEGAL_SHOWN else f"{words} … ({len(legal)} in all)"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def differences(name: str, preset: str, folder: Path = FOLDER) -> str:
    """A unified diff between the golden file and the present playthrough; empty if they are equal."""
    path = folder / file_name(name, preset)
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    now = playthrough(name, preset)
    lines = difflib.unified_diff(golden.splitlines(), now.splitlines(), str(path), "now", lineterm="", n=1)
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bothost.testing.playthrough", description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="?", help="GAME or GAME:PRESET; all games when absent")
    parser.add_argument("--write", action="store_true", help="make the golden file anew, after reading the difference")
    args = parser.parse_args(argv)
    try:
        chosen = _chosen(args.name)
    except UsageError as e:
        print(f"{e}. {e.advice}", file=sys.stderr)
        return e.exit_code
    wrong = 0
    for name, preset in chosen:
        path = FOLDER / file_name(name, preset)
        if args.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(playthrough(name, preset), encoding="utf-8")
            print(f"wrote {path}")
        elif args.name:
            print(playthrough(name, preset), end="")
        elif diff := differences(name, preset):
            wrong += 1
            print(diff)
    return 1 if wrong else 0


def _chosen(name: str | None) -> list[tuple[str, str]]:
    if name is None:
        return [(n, p) for n in games(testing=True) for p in presets(n)]
    base, _, preset = name.partition(":")
    known = presets(base)
    if preset and preset not in known:
        raise UsageError(f"{base} has no preset {preset!r}", advice=f"it has: {', '.join(known)}")
    return [(base, preset or known[0])]


if __name__ == "__main__":
    sys.exit(main())

"""A hand in the terminal as people write one down: who sat where, the deal, and the moves in order.

Beside each move of ours stands what the bot considered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from bothost import rules
from bothost.cli.output import printable
from bothost.cli.reasons import explanation, remarks
from bothost.cli.show_hand import Out, chat, problems, put
from bothost.errors import StoreError
from bothost.messages import Json
from bothost.store.hand_report import report
from bothost.store.reader import Timeline
from bothost.web.hands import seat_names
from bothost.web.replay import Position, positions

WIDE = 100
"""Longer parts of the deal are left out, and longer remarks: a wall of 144 tiles helps no one."""


def render(timelines: Sequence[Timeline], *, top: int) -> bool:
    """Print a hand from the logs of our seats. False if it was never revealed: the log lacks the others' cards."""
    reports = [report(timeline) for timeline in timelines]
    first = reports[0]
    if first["deal"] is None or first["problems"]:
        return False
    game = rules.game(first["game"], **first["rules"])
    try:
        steps = positions(game, timelines[0])
    except (StoreError, ValueError):
        return False
    if len(steps) < 2 or steps[-1].mover is None:
        return False
    out = Out()
    names = [printable(name) for name in seat_names(timelines[0].hand, game)]
    _head(reports, names, out)
    _moves(steps, names, _considered(reports, steps, top), out)
    chat(_said(reports), out)
    for item in reports:
        problems(item, out)
    return True


def _head(reports: Sequence[Json], names: Sequence[str], out: Console) -> None:
    first = reports[0]
    out.print(Text(f"{first['game']}  {first['id']}", style="bold"))
    when = first["started"][:19].replace("T", " ")
    out.print(Text(printable(f"{first['lobby']}/{first['table']}, hand {first['hand']}, {when} UTC, {first['state']}")))
    played_by = {item["seat"]: item for item in reports}
    scores = first["scores"] or [None] * len(names)
    dealt = [value for value in first["deal"].values() if isinstance(value, list) and len(value) == len(names)]
    for seat, name in enumerate(names):
        item = played_by.get(seat)
        by = "" if item is None else f"  ({item['strategy']} {item['strategy_version']})"
        score = "" if scores[seat] is None else f"  {scores[seat]:+g}"
        out.print(Text(printable(f"  seat {seat}: {name}{by}{score}")))
        for value in dealt:
            if isinstance(value[seat], list | str):
                cards = value[seat] if isinstance(value[seat], str) else " ".join(map(str, value[seat]))
                put(out, "    ", Text(printable(cards), style="dim"))
    for name, value in first["deal"].items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        if not any(value is cards for cards in dealt) and len(text) <= WIDE:
            put(out, "  ", Text(printable(f"{name}: {text}"), style="dim"))
    out.print()


def _considered(reports: Sequence[Json], steps: Sequence[Position], top: int) -> dict[int, list[Text]]:
    """Number of a move → what its bot considered, in lines."""
    found: dict[int, list[Text]] = {}
    for item in reports:
        seat = item["seat"]
        live = [decision for decision in item["decisions"] if decision["role"] == "live"]
        made = {(decision["seq"], decision["notation"]): decision for decision in live}
        for number, (before, after) in enumerate(pairwise(steps), start=1):
            decision = made.get((before.seqs.get(seat, -1), after.notation or ""))
            if after.mover == seat and decision is not None:
                found[number] = _lines(decision, top)
    return found


def _lines(decision: Json, top: int) -> list[Text]:
    weighed = [action for action in decision["actions"] if _weight(action)]
    chosen = next((action for action in weighed if action["chosen"]), None)
    others = [action for action in weighed if not action["chosen"]]
    parts = []
    if chosen is not None and decision["legal"] > 1:
        parts.append(_weight(chosen))
        also = ", ".join(f"{action['notation']} {_weight(action)}" for action in others[:top])
        more = f", {len(others) - top} more" if len(others) > top else ""
        parts.append(f"also {also}{more}")
    elif decision["legal"] == 1:
        parts.append("the only legal action")
    elif decision["value"] is not None:
        parts.append(f"value {decision['value']:+.2f}")
    said = remarks(decision["stats"] or {})
    if said and len(said) <= WIDE:
        parts.append(said)
    lines = [Text(printable("; ".join(parts)), style="dim")]
    if decision["fallback"]:
        lines.append(Text(f"fallback: {printable(decision['fallback'])}", style="yellow"))
    lines += [Text(line, style="italic") for line in explanation(decision["stats"], top)]
    return lines


def _weight(action: Mapping[str, Any]) -> str:
    """The bot's probability of an action, else its value, else ""."""
    if action["probability"] is not None:
        return f"{action['probability']:.0%}"
    return "" if action["value"] is None else f"{action['value']:+.2f}"


def _moves(steps: Sequence[Position], names: Sequence[str], considered: Mapping[int, list[Text]], out: Console) -> None:
    wide = max(map(cell_len, names))
    long = min(16, max(len(step.notation or "") for step in steps))
    for number, step in enumerate(steps[1:], start=1):
        mover = names[step.mover] if step.mover is not None and step.mover < len(names) else ""
        line = Text(f"{number:4}  {set_cell_size(mover, wide)}  ")
        line.append(f"{printable(step.notation or ''):<{long}}", style="bold")
        line.append("  ")
        for text in considered.get(number) or [Text()]:
            put(out, line, text)
            line = Text(" " * line.cell_len)


def _said(reports: Sequence[Json]) -> list[Json]:
    """What was said at the table; each of our seats heard it."""
    said = {(line["player"], line["text"], line["at"][:19]): line for item in reports for line in item["chat"]}
    return sorted(said.values(), key=lambda line: line["at"])

"""A hand in the terminal, as a person follows it: events as they came, and between them our decisions."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from bothost.cli.output import printable
from bothost.cli.reasons import explanation, remarks
from bothost.messages import Json

INSET = " " * 9
"""What stands before the lines about a decision."""
LEAST = 20
"""Least width of text that continues on the next line."""


class Out(Console):
    """Prints on stdout."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Let ``bothost.cli.main`` end the command: rich would end it with exit code 1."""
        raise


def render(report: Json, *, top: int = 5) -> None:
    """Print a report of :func:`bothost.store.hand_report.report`."""
    out = Out()
    _head(report, out)
    decisions = list(report["decisions"])
    for event in report["events"]:
        seq, line = event["seq"], event["event"]
        while decisions and decisions[0]["seq"] <= seq:
            _decision(decisions.pop(0), out, top)
        put(out, f"{seq:5}  ", Text(printable(line), style="dim" if not _is_own(line, report["seat"]) else ""))
    for decision in decisions:
        _decision(decision, out, top)
    _tail(report, out)


def put(out: Console, head: str | Text, text: Text) -> None:
    """Print a line. On a terminal that is narrower, the text continues to the right of the head."""
    head = Text(head) if isinstance(head, str) else head
    if out.is_terminal and head.cell_len + text.cell_len > out.width:
        lines = text.wrap(out, max(LEAST, out.width - head.cell_len))
        text = Text("\n" + " " * head.cell_len).join(lines)
    out.print(head + text)


def _head(report: Json, out: Console) -> None:
    out.print(Text(f"{report['game']}  {report['id']}", style="bold"))
    table = f"{report['lobby']}/{report['table']}, hand {report['hand']}"
    out.print(Text(printable(f"{table}, {report['started'][:19].replace('T', ' ')} UTC, {report['state']}")))
    by = f"{report['strategy']} {report['strategy_version']}"
    if report["model_sha256"]:
        by += f", model {report['model_sha256'][:12]}"
    out.print(Text(printable(f"{report['account']} at seat {report['seat']}, played by {by}")))
    for player in report["players"]:
        mark = "*" if player.get("seat") == report["seat"] else " "
        named = player.get("name") or player.get("player")
        away = ", away: the lobby may have moved" if player.get("seat") in report["away"] else ""
        out.print(Text(printable(f" {mark} seat {player.get('seat')}: {named}{away}")))
    for name, value in (report["deal"] or {}).items():
        if isinstance(value, list) and len(value) == len(report["scores"] or report["players"]):
            for seat, item in enumerate(value):
                put(out, "   ", Text(printable(f"{name} {seat}: {_plain(item)}")))
        else:
            put(out, "   ", Text(printable(f"{name}: {_plain(value)}")))
    out.print()


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _is_own(line: str, seat: int) -> bool:
    words = line.split(" ", 2)
    return len(words) > 1 and words[1] == str(seat)


def _decision(decision: Json, out: Console, top: int) -> None:
    style = "yellow" if decision["fallback"] else "green"
    head = Text(printable(decision["notation"]), style=f"bold {style}")
    facts = [printable(decision["phase"]), f"{decision['legal']} legal", f"{decision['elapsed_ms']:.1f} ms"]
    if decision["budget_ms"] is not None:
        facts[-1] += f" of {decision['budget_ms']:.0f}"
    if decision["value"] is not None:
        facts.append(f"value {decision['value']:+.3f}")
    facts.append(f"{decision['strategy']} {decision['strategy_version']}")
    if decision["attempt"]:
        facts.append(f"attempt {decision['attempt'] + 1}")
    if decision["role"] != "live":
        facts.append(decision["role"])
    head.append("  " + ", ".join(facts), style=style)
    put(out, Text("       ▸ ", style=style), head)
    if decision["fallback"]:
        put(out, INSET, Text(f"fallback: {printable(decision['fallback'])}", style="yellow"))
    if decision["legal"] > 1:
        _actions(decision["actions"], out, top)
    for line in explanation(decision["stats"], top):
        put(out, INSET, Text(line, style="italic"))
    if text := remarks(decision["stats"] or {}):
        put(out, INSET, Text(text, style="italic"))
    for outcome in decision["outcomes"]:
        if outcome["kind"] not in ("sent", "acknowledged"):
            detail = f": {outcome['detail']}" if outcome["detail"] else ""
            put(out, INSET, Text(f"{outcome['kind']}{printable(detail)}", style="red"))


def _actions(actions: list[Json], out: Console, top: int) -> None:
    weighed = [a for a in actions if a["probability"] is not None or a["value"] is not None]
    shown = weighed[:top] + [a for a in weighed[top:] if a["chosen"]]
    for action in shown:
        parts = [f"         {'→' if action['chosen'] else ' '} {printable(action['notation']):<16}"]
        if action["probability"] is not None:
            parts.append(f"{100 * action['probability']:6.2f} %  {'█' * round(20 * max(0.0, action['probability']))}")
        if action["value"] is not None:
            parts.append(f"value {action['value']:+.3f}")
        out.print(Text("  ".join(parts).rstrip(), style="dim" if not action["chosen"] else ""))
    if len(weighed) > len(shown):
        out.print(Text(f"           … {len(weighed) - len(shown)} more", style="dim"))


def chat(lines: list[Json], out: Console) -> None:
    """What was said at the table, as text: nothing in it is executed or interpreted."""
    for line in lines:
        put(out, f"{line['at'][11:19]}  ", Text(printable(f"{line['player']}: {line['text']}"), style="cyan"))


def _tail(report: Json, out: Console) -> None:
    out.print()
    if report["scores"] is not None:
        scores = ", ".join(f"seat {seat} {score:+g}" for seat, score in enumerate(report["scores"]))
        out.print(Text(f"{report['state']}: {scores}", style="bold"))
    else:
        out.print(Text(printable(report["state"]), style="bold"))
    chat(report["chat"], out)
    problems(report, out)


def problems(report: Json, out: Console) -> None:
    """What is wrong with the log of the hand."""
    for problem in report["problems"]:
        put(out, "", Text(f"warning: {printable(problem)}", style="red"))

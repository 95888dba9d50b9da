"""Read outcomes of arena matches from their journals, one per deal.

All lineups of a deal share its cards, so a deal is one outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bothost import rules
from bothost.arena.figures import figures_for
from bothost.arena.journal import read
from bothost.arena.lineup import Lineup, lineups
from bothost.arena.match import DealResult
from bothost.errors import BothostError, UsageError
from bothost.ladder.outcome import Outcome
from bothost.rules.game import Game
from bothost.store.ratings import Contestant, key_of

_CONTESTANT = re.compile(r"(?P<address>.+?)@(?P<made>[0-9a-f]{64}|[^@ ]*)(?P<options> \{.*\})?")
_LEVEL = re.compile(r"level-\d+")


def files(paths: list[Path]) -> list[Path]:
    """Return the journals in these files and folders. Raises UsageError."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            journals = sorted(path.rglob("*.jsonl"))
            if not journals:
                raise UsageError(f"{path} has no journal", advice="name the --out of a tournament")
            found += journals
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"there is no file or folder {path}")
    return found


def outcomes(path: Path) -> Iterator[Outcome]:
    """Yield the deals of a journal, without a truncated last line. Raises UsageError for other files."""
    with path.open("rb") as file:
        try:
            header, deals = read(file)
            game = rules.game(header.game, **json.loads(header.rules))
            seats = lineups(game, len(header.contestants))
        except (BothostError, ValueError, TypeError) as error:
            raise UsageError(f"{path} is not a readable match journal: {error}") from None
        at_us = path.stat().st_mtime_ns // 1000
        contestants = [contestant(text) for text in header.contestants]
        if len(set(contestants)) < len(contestants):
            return
        identity = header.game, header.rules, *header.contestants, header.seed, header.ms
        for deal, _ in deals:
            if len(deal.hands) != len(seats):
                raise UsageError(f"{path}: deal {deal.deal} does not have the {len(seats)} hands of its lineups")
            scores = _scores(game, deal, seats, len(contestants))
            teams = tuple((who,) for who in contestants)
            yield Outcome(game.name, teams, scores, at_us, (key_of("deal", *identity, deal.deal),))


def contestant(described: str) -> Contestant:
    """Parse a contestant of a journal's header: address, version or model sha256, and options."""
    match = _CONTESTANT.fullmatch(described)
    if match is None:
        return Contestant("strategy", described)
    address, made, options = match["address"], match["made"], match["options"] or ""
    name, _, alias = address.partition(":")
    if name == "exec":
        name, alias = address, ""
    version = (made[:8] if len(made) == 64 else made) + options
    return Contestant("strategy", name, version=version, level=alias if _LEVEL.fullmatch(alias) else "")


def _scores(game: Game, deal: DealResult, seats: tuple[Lineup, ...], contestants: int) -> tuple[float, ...]:
    if contestants == 2:
        share = figures_for(game.name, seats)[0](deal, seats)
        return share, 1.0 - share
    totals = [0.0] * contestants
    for hand, lineup in zip(deal.hands, seats, strict=True):
        for seat, who in enumerate(lineup):
            totals[who] += hand.returns[seat]
    return tuple(totals)

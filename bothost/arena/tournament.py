"""A tournament: rounds of matches on duplicate deals. It is resumable and has standings at any time."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from bothost.arena.crew import Crew, Finished, Work, missing, play_here, spread
from bothost.arena.figures import figures_for
from bothost.arena.journal import Header, Journal
from bothost.arena.lineup import letter, lineups
from bothost.arena.match import DealResult
from bothost.arena.pairings import Format, Group, Round, advancing, gauntlet, knockout, round_robin, swiss
from bothost.arena.run import describe
from bothost.arena.spec import Build, MatchSpec
from bothost.arena.standings import Estimate, MatchResult, match_result, points, scores
from bothost.errors import UsageError
from bothost.rules.game import Game

PLAYOFFS = 3
"""How often an even knockout match is extended by as many deals. Then the favourite wins."""
OPEN_MATCHES = 256
"""Most matches with an open journal: below the limit on open files."""
ROUNDS = 1024
"""Most rounds of a tournament. Seeds of rounds are spaced so that tournaments with other seeds share no deals."""


class TournamentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of a tournament."""

    match: MatchSpec
    """All contestants, and how each match is played."""
    format: Format
    table: int = 2
    """Contestants of a match: 2, or as many as the game has seats."""
    rounds: int | None = None
    """Rounds of the Swiss system; None: as many as are needed for a single winner."""

    def check(self, game: Game) -> None:
        """Raise UsageError if the tournament is impossible with this game."""
        entered = len(self.match.contestants)
        if self.table not in (2, game.num_seats):
            raise UsageError(
                f"{game.name} has no matches of {self.table} contestants",
                advice=f"use --table 2, or {game.num_seats}: one contestant per seat",
            )
        if entered < self.table:
            raise UsageError(
                f"contestants do not fill a table of {self.table}: there are {entered}", advice="name more"
            )
        if self.rounds is not None and self.format != "swiss":
            raise UsageError(f"--rounds is for --format swiss, not {self.format}", advice="leave it out")
        if self.rounds is not None and self.rounds > ROUNDS:
            raise UsageError(f"--rounds {self.rounds} are more than {ROUNDS}", advice="play more deals in each")

    @property
    def swiss_rounds(self) -> int:
        return self.rounds or max(1, (len(self.match.contestants) - 1).bit_length())


class Standing(msgspec.Struct, frozen=True):
    """One contestant's place."""

    rank: int
    who: int
    score: Estimate | None
    """Share of wins over its opponents; None before its first match."""
    points: Estimate | None
    """The game's points per hand."""
    matches: int
    tournament_points: float
    """Swiss: opponents beaten, a bye counts as one won match. Knockout: rounds survived."""
    buchholz: float
    """Swiss: the opponents' tournament points, which break ties."""


class Tournament:
    """The state of a tournament, without playing: the next round and the standings."""

    def __init__(self, spec: TournamentSpec) -> None:
        self.spec = spec
        self.entered = len(spec.match.contestants)
        self.rounds: list[Round] = []
        self.results: list[MatchResult] = []
        self._alive = list(range(self.entered))

    def next_round(self) -> Round | None:
        """Return the next round; None after the last. Add all matches of the previous round first."""
        size, played = self.spec.table, len(self.rounds)
        made: Round | None = None
        if self.spec.format == "round-robin":
            made = round_robin(self.entered, size) if not played else None
        elif self.spec.format == "gauntlet":
            made = gauntlet(self.entered, size) if not played else None
        elif self.spec.format == "swiss":
            if played < self.spec.swiss_rounds:
                met = Counter(frozenset(pair) for result in self.results for pair in result.wins)
                byes = Counter(who for earlier in self.rounds for who in earlier.byes)
                made = swiss([standing.who for standing in self.standings()], met, byes, size)
        else:
            if played:
                self._alive = self._survivors()
            made = knockout(self._alive, size) if len(self._alive) > 1 else None
        if made is not None:
            self.rounds.append(made)
        return made

    def add(self, result: MatchResult) -> None:
        """Add a finished match of the current round."""
        self.results.append(result)

    def seed(self, round_: int) -> int:
        return self.spec.match.seed * ROUNDS + round_

    def is_even(self, result: MatchResult) -> bool:
        """Whether a knockout match has not decided who advances."""
        order = self._by_score(result)
        last_in = advancing(len(result.group)) - 1
        return (
            self.spec.format == "knockout" and result.score(order[last_in]) - result.score(order[last_in + 1]) < 1e-12
        )

    @staticmethod
    def _by_score(result: MatchResult) -> list[int]:
        return sorted(result.group, key=lambda who: (-round(result.score(who), 12), who))

    def _survivors(self) -> list[int]:
        ended = [result for result in self.results if result.round == len(self.rounds) - 1]
        through = [who for result in ended for who in self._by_score(result)[: advancing(len(result.group))]]
        return sorted([*self.rounds[-1].byes, *through])

    def _tournament_points(self) -> dict[int, float]:
        found = dict.fromkeys(range(self.entered), 0.0)
        for round_ in self.rounds:
            for who in round_.byes:
                found[who] += 1.0
        for result in self.results:
            if self.spec.format == "knockout":
                for who in self._by_score(result)[: advancing(len(result.group))]:
                    found[who] += 1.0
                continue
            for (a, b), shares in result.wins.items():
                share = sum(shares) / len(shares)
                win = 0.5 if abs(share - 0.5) < 1e-12 else float(share > 0.5)
                found[a] += win / (len(result.group) - 1)
                found[b] += (1.0 - win) / (len(result.group) - 1)
        return found

    def standings(self) -> list[Standing]:
        """Return all contestants, best first.

        Swiss ranks by tournament points, then Buchholz. Knockout ranks by rounds survived. Then, and in the other
        formats, the score decides, and last the order of entry.
        """
        earned = self._tournament_points()
        rows = []
        for who in range(self.entered):
            mine = [result for result in self.results if who in result.group]
            opponents = [other for result in mine for other in result.group if other != who]
            rows.append(
                Standing(
                    0,
                    who,
                    scores(self.results, who),
                    points(self.results, who),
                    len(mine),
                    earned[who],
                    sum(earned[other] for other in opponents),
                )
            )
        ranked = self.spec.format in ("swiss", "knockout")
        rows.sort(
            key=lambda row: (
                -row.tournament_points if ranked else 0.0,
                -row.buchholz if self.spec.format == "swiss" else 0.0,
                -row.score.mean if row.score is not None else 1.0,
                row.who,
            )
        )
        return [msgspec.structs.replace(row, rank=rank) for rank, row in enumerate(rows, 1)]


class Progress(msgspec.Struct, frozen=True):
    """Progress of the current round."""

    round: int
    done: int
    """Finished deals of the round."""
    total: int
    note: str = ""


OnDeal = Callable[[Progress], None]


class TournamentRun:
    """Plays a tournament."""

    def __init__(self, spec: TournamentSpec, build: Build) -> None:
        """Raises UsageError."""
        self.tournament = Tournament(spec)
        self.spec = spec.match
        self.deals = 0
        """Deals of all matches so far."""
        self.earlier = 0
        """How many of them an earlier run played."""
        self.game, self._strategies = build(spec.match)
        spec.check(self.game)
        sides = zip(spec.match.contestants, self._strategies, spec.match.options, strict=True)
        self.described = tuple(describe(*side) for side in sides)
        if len(set(self.described)) < len(self.described):
            twice = next(one for one in self.described if self.described.count(one) > 1)
            raise UsageError(f"{twice} entered twice", advice="name it once, or give one of them different options")

    @property
    def key(self) -> str:
        """Name of the tournament's folder. It depends on contestants, models, rules, seed and format."""
        spec = self.tournament.spec
        identity = [self.described, self.game.rules, self.spec.seed, self.spec.ms, spec.table, spec.rounds]
        text = json.dumps(identity, sort_keys=True, default=str)
        return f"{self.game.name}-{spec.format}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def play(
        self,
        folder: Path,
        crew: Crew | None = None,
        on_deal: OnDeal = lambda progress: None,
        on_round: Callable[[], None] = lambda: None,
    ) -> None:
        """Play all rounds. Each match has a journal in ``folder``; a second run continues.

        ``crew``: the workers; None: play in this process. ``on_round``: called after every round.
        """
        self._folder, self._crew = folder, crew
        while (round_ := self.tournament.next_round()) is not None:
            number = len(self.tournament.rounds) - 1
            pending, deals = list(round_.matches), self.spec.deals
            for attempt in range(PLAYOFFS + 1):
                results = []
                for start in range(0, len(pending), OPEN_MATCHES):
                    results += self._play_matches(number, pending[start : start + OPEN_MATCHES], deals, on_deal)
                undecided = [result for result in results if attempt < PLAYOFFS and self.tournament.is_even(result)]
                for result in results:
                    if result not in undecided:
                        self.tournament.add(result)
                pending, deals = [result.group for result in undecided], deals + self.spec.deals
                if not pending:
                    break
            on_round()

    def close(self) -> None:
        """End the strategies of this process."""
        for strategy in self._strategies:
            strategy.close()

    def _play_matches(self, number: int, groups: Sequence[Group], deals: int, on_deal: OnDeal) -> list[MatchResult]:
        found: list[dict[int, DealResult]] = []
        works: list[Work] = []
        seed = self.tournament.seed(number)
        with ExitStack() as stack:
            books: list[Journal] = []
            for match, group in enumerate(groups):
                book = stack.enter_context(closing(self._journal(number, group, seed)))
                done = {result.deal: result for result in book.open() if result.deal < deals}
                books.append(book)
                found.append(done)
                works.append(Work(match, group, seed, missing(deals, done)))
            total, ended = deals * len(groups), sum(map(len, found))
            fresh = deals - self.spec.deals  # a playoff finds the deals that this run has counted
            self.deals += self.spec.deals * len(groups)
            self.earlier += sum(deal >= fresh for done in found for deal in done)
            on_deal(Progress(number, ended, total))
            for match, result in stack.enter_context(closing(self._stream([work for work in works if work.deals]))):
                books[match].append(result)
                found[match][result.deal] = result.for_figures()
                ended += 1
                on_deal(Progress(number, ended, total, " against ".join(map(letter, groups[match]))))
        seats = lineups(self.game, len(groups[0]))  # the matches of a round have equally many contestants
        score, _ = figures_for(self.game.name, seats)
        return [
            match_result(number, group, seats, score, list(done.values()))
            for group, done in zip(groups, found, strict=True)
        ]

    def _stream(self, works: Sequence[Work]) -> Finished:
        if self._crew is None:
            return play_here(self.spec, self.game, self._strategies, works)
        return spread(self._crew, works, self.spec.batch)

    def _journal(self, number: int, group: Group, seed: int) -> Journal:
        header = Header.of(self.spec, self.game, tuple(self.described[who] for who in group), seed)
        name = f"round-{number + 1}-{'-'.join(map(letter, group))}.jsonl"
        return Journal(self._folder / "matches" / name, header)

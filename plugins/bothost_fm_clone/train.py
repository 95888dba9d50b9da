"""``bothost train fm-clone``: a clone of the players given with --player, or otherwise a model of the crowd."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import torch
from msgspec import Meta

from bothost import LoggedGames, Model, PlayerLog, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.training import checkpoint
from bothost.training.factorization import Samples
from bothost.training.logistic import Linear
from bothost.training.publish import lineage_of, version_of, write_manifest
from bothost_fm_clone.alone import player_alone
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.crowd import SharedGrowth, SharedOptions, crowd_of, directed
from bothost_fm_clone.encode import Encoding, encoding
from bothost_fm_clone.files import AnyClone, load_any
from bothost_fm_clone.fit import CROWD_PENALTIES, PLAYER_PENALTIES, adapt, brier, score
from bothost_fm_clone.grow import GrowOptions, Growth, grow
from bothost_fm_clone.mixed import player_after
from bothost_fm_clone.model import Clone, file_of
from bothost_fm_clone.samples import Decisions, decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.tempo import FILE as TEMPO
from bothost_fm_clone.tempo import NEEDED, Tempo

CURVE = (5, 10, 20, 50, 200, 1000)
"""Numbers of hands of the learning curve."""
WEIGHTS = Path(__file__).parent / "weights"
PACKAGE = WEIGHTS / json.loads((WEIGHTS / "manifest.json").read_text())["aliases"]["champion"]
"""The model of the crowd in the package."""


class TrainOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    game: Literal["doudizhu", "othello", "mahjong"] = "doudizhu"
    """The game that the clone plays."""
    crowd: Literal["package", "log", "none"] | None = None
    """Start of a clone. package: the package's crowd, or in a retraining the champion. log: a crowd trained on all
    other consenting players in the log. none: nothing, the player's own hands alone. None: package for a player, log
    without one."""
    hands: Annotated[int, Meta(ge=1)] | None = None
    """Learn from so many hands of the player, the first ones. None: all."""
    curve: bool = False
    """Whether to also fit the player on the first 5, 10, 20, 50 … hands, and measure each on the held-out hands."""
    tempo: bool = False
    """Whether the clone also takes as long for its moves as the player. The times are known of hands at which everybody
    else was a bot of ours."""
    most: Annotated[int, Meta(ge=1)] = 60_000
    """Most decisions of the crowd for growing features. The last layer is fitted to all decisions."""
    afterstates: bool = True
    """Whether the last layer also sees the afterstates of the classes. False: only the position, as in the source,
    unless the model that it starts from sees them."""
    method: Literal["shared", "per-class"] = "shared"
    """``shared``: one machine that scores every candidate by its features. ``per-class``: a machine that grows features
    of the position, and one linear layer with weights of each class, as in the source; Dou Dizhu and Othello only. A
    clone of a player is of the same method as the model that it starts from."""
    grow: GrowOptions = GrowOptions()
    """Options of the method ``per-class``."""
    shared: SharedOptions = SharedOptions()
    """Options of the method ``shared``."""

    def __post_init__(self) -> None:
        if self.game == "mahjong" and self.method == "per-class":
            raise ValueError("clones of mahjong players are made by the method shared")
        if self.crowd == "none" and self.method == "per-class":
            raise ValueError("clones without a crowd are made by the method shared")
        if self.crowd == "none" and self.hands == 1:
            raise ValueError("a clone without a crowd needs two hands, not one")


class FmCloneTrainer(Trainer):
    """Learns from logged players. Hands of the split ``test`` are held out for measurements."""

    name = "fm-clone"
    learns_from_log = True
    Options: ClassVar[type[msgspec.Struct]] = TrainOptions

    options: TrainOptions

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        return self._learn(run, None, report)

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Retrain the champion on the decisions of all consenting players.

        Its features grow; if none are added, it stays close to the old model. If players are named, its features stay
        and it is fitted to these players. Models of other games stay as they are.
        """
        return self._learn(run, None if start is None or start.path is None else Path(start.path), report)

    def gains(
        self, log: PlayerLog, lineage: Mapping[str, Any], challenger: Model, champion: Model
    ) -> Iterator[float] | None:
        """How much better the challenger predicts each held-out hand of the players that it imitates.

        Yields half the difference of the Brier scores (the squared distances of the probabilities from the decisions),
        averaged over the hand. A champion that does not play the game counts as uniform. Returns None if the lineage
        does not name the imitated players, or the challenger does not play that game.
        """
        imitated = _imitated(lineage)
        if imitated is None or challenger.path is None:
            return None
        game, players = imitated
        found = clone_in(Path(challenger.path), game)
        if found is None:
            return None
        before = clone_in(Path(champion.path), game) if champion.path is not None else None
        held_out = decisions(log.moves(game, players, split="test"), found.encoding)
        return _hand_gains(found, before or _blank(found.encoding), held_out)

    def _learn(self, run: TrainingRun, start: Path | None, report: ReportProgress) -> dict[str, Any]:
        """``start``: the folder of the model to start from. None: the package's, or a blank one."""
        torch.set_num_threads(1)  # with several threads, the order of sums differs between runs
        options, log = self.options, run.log
        if log is None:
            raise UsageError("fm-clone needs a log to learn from", advice="run it with: bothost train fm-clone")
        _check_folder(run)
        own = encoding(options.game)
        from_log = (options.crowd or ("package" if run.players else "log")) == "log"
        player = decisions(log.moves(options.game, run.players), own) if run.players else None
        if player is not None and player.held_out.all():
            raise UsageError(
                f"the log has no decision of {', '.join(run.players)} at {options.game} to learn from",
                advice="list the player's hands with: bothost games list --player NAME; some are held out for tests",
            )
        tempo = self._tempo(run, log) if options.tempo else None
        figures: dict[str, Any] = {}
        begin = None if start is None else clone_in(start, own.game)
        clone: AnyClone
        if options.crowd == "none":
            if player is None or player.where(~player.held_out).number_of_hands < 2:
                raise UsageError(
                    "a clone without a crowd needs a player with two hands to learn from",
                    advice="name a player with more hands, or leave out the option crowd",
                )
            clone = SharedClone.blank(own, 0, 0, run.seed)
        elif from_log:
            clone = self._crowd(run, log, begin, player, report, figures)
        else:
            clone = begin or load_any(PACKAGE / file_of(own.game), own.game)
        if player is not None:
            clone = self._player(clone, player, run.seed, report, figures)
        if tempo is not None:
            figures["tempo_ms"] = {
                "median": round(tempo.quantiles_ms[len(tempo.quantiles_ms) // 2]),
                "longest": round(tempo.quantiles_ms[-1]),
            }
        return self._publish(run, log, clone, tempo, figures, others=start or (PACKAGE if player is None else None))

    def _tempo(self, run: TrainingRun, log: PlayerLog) -> Tempo:
        if not run.players:
            raise UsageError("the crowd has no tempo", advice="name a player: --player NAME")
        times = list(log.thinking_ms(self.options.game, run.players))
        if len(times) < NEEDED:
            known = f"the log knows how long {len(times)} moves of {', '.join(run.players)} took, of {NEEDED} needed"
            raise UsageError(known, advice="play more against bots of this host, or leave out the option tempo")
        return Tempo.of(times)

    def _crowd(
        self,
        run: TrainingRun,
        log: PlayerLog,
        begin: AnyClone | None,
        player: Decisions | None,
        report: ReportProgress,
        figures: dict[str, Any],
    ) -> AnyClone:
        """A clone of all players, beginning with a clone if it is of the same method.

        The player to clone is left out if there are others. Otherwise the distance of the player to the crowd would be
        underestimated.
        """
        own = encoding(self.options.game)
        report(0, "reading the log")
        everybody = decisions(log.moves(own.game), own)
        others = ~np.isin(everybody.players, [] if player is None else np.unique(player.players))
        if not (others & ~everybody.held_out).any():
            others[:] = True
        learnt, held_out = (everybody.where(others & part) for part in (~everybody.held_out, everybody.held_out))
        del everybody  # may be gigabytes
        if not len(learnt):
            raise UsageError(
                f"the log has no decision at {own.game} of a player who consents to imitation",
                advice="see: bothost games consent --help",
            )
        figures["crowd"] = {"hands": learnt.number_of_hands, "decisions": len(learnt)}
        made: AnyClone
        before: AnyClone | None
        if self.options.method == "shared":
            before = shared = begin if isinstance(begin, SharedClone) else None
            made = self._shared_crowd(run, learnt, shared, report, figures)
        else:
            before = begin if isinstance(begin, Clone) and len(begin.combinations.pairs) else None
            made = self._linear_crowd(run, learnt, begin if isinstance(begin, Clone) else _blank(own), report, figures)
        figures["crowd"] |= measured(made, held_out)
        if before is not None:
            figures["before"] = measured(before, held_out)
        return made

    def _shared_crowd(
        self,
        run: TrainingRun,
        learnt: Decisions,
        before: SharedClone | None,
        report: ReportProgress,
        figures: dict[str, Any],
    ) -> SharedClone:
        options = self.options.shared
        start = before or SharedClone.blank(encoding(self.options.game), options.quadratic, options.rectified, run.seed)
        growth = SharedGrowth(start, self._some(learnt, run.seed), options, run.seed)
        grow(growth, run, msgspec.to_builtins(self.options), report)
        fresh = before is None or len(growth) > len(before.pairs)
        made = crowd_of(
            growth.clone if fresh else start,
            learnt,
            options,
            run.seed,
            fresh=fresh,
            on_pass=lambda done, loss: report(done, f"fitting the crowd: loss {loss:.4f}", options.passes),
        )
        figures["combinations"] = len(made.pairs)
        report(options.passes, "finding the directions in which players differ", options.passes)
        return directed(made.rounded, learnt, options, run.seed)

    def _linear_crowd(
        self, run: TrainingRun, learnt: Decisions, begin: Clone, report: ReportProgress, figures: dict[str, Any]
    ) -> Clone:
        own, options = begin.encoding, self.options
        some = self._some(learnt, run.seed)
        growth = Growth(some, begin.combinations, len(own.classes), options.grow, run.seed)
        grow(growth, run, msgspec.to_builtins(options), report)
        report(len(growth), "fitting the crowd", growth.limit)
        start = begin.linear.widened(len(growth), self._leaves(own))
        linear, chosen = adapt(extended(learnt, growth.combinations), start, own.groups, CROWD_PENALTIES)
        figures["features"] = len(growth)
        figures["crowd"] |= chosen
        return Clone(own, growth.combinations, linear).rounded

    def _some(self, learnt: Decisions, seed: int) -> Samples:
        """At most ``most`` decisions, drawn in their order, to grow features on."""
        count, most = len(learnt), self.options.most
        if count <= most:
            return learnt.samples
        return learnt.samples.take(np.sort(np.random.default_rng(seed).choice(count, most, replace=False)))

    def _player(
        self, crowd: AnyClone, player: Decisions, seed: int, report: ReportProgress, figures: dict[str, Any]
    ) -> AnyClone:
        learnt = player.where(~player.held_out)
        if self.options.hands is not None:
            learnt = learnt.first_hands(self.options.hands)
        held_out, hands = player.where(player.held_out), learnt.number_of_hands
        sizes = [size for size in CURVE if size < hands] if self.options.curve else []
        before = measured(crowd, held_out)
        curve = [{"hands": 0, **before}]
        for done, size in enumerate(sizes):
            report(done, f"learning from {size} hands", len(sizes) + 1)
            made, _ = self._fitted(crowd, learnt.first_hands(size), seed)
            curve.append({"hands": size, **measured(made, held_out)})
        report(len(sizes), f"learning from {hands} hands", len(sizes) + 1)
        clone, chosen = self._fitted(crowd, learnt, seed)
        after = measured(clone, held_out)
        figures["player"] = {"hands": hands, "decisions": len(learnt), **chosen, **after}
        if self.options.crowd != "none":
            figures["crowd_on_player"] = before
        if self.options.curve:
            figures["curve"] = [*curve, {"hands": hands, **after}]
        return clone

    def _fitted(self, crowd: AnyClone, learnt: Decisions, seed: int) -> tuple[AnyClone, Mapping[str, float | str]]:
        """The crowd's model fitted to these decisions, and the chosen learning rate, penalty or method."""
        if self.options.crowd == "none":
            alone, how = player_alone(crowd.encoding, learnt, seed)
            return alone.rounded, how
        if isinstance(crowd, SharedClone):
            made, told = player_after(crowd, learnt, seed)
            return made.rounded, told
        more = extended(learnt, crowd.combinations)
        start = crowd.linear.widened(len(crowd.combinations), self._leaves(crowd.encoding))
        linear, chosen = adapt(more, start, crowd.encoding.groups, PLAYER_PENALTIES)
        return Clone(crowd.encoding, crowd.combinations, linear).rounded, chosen

    def _leaves(self, own: Encoding) -> int:
        return len(own.leaves) if self.options.afterstates else 0

    def _publish(
        self,
        run: TrainingRun,
        log: PlayerLog,
        clone: AnyClone,
        tempo: Tempo | None,
        figures: dict[str, Any],
        *,
        others: Path | None,
    ) -> dict[str, Any]:
        """Write the version. For other games it gets the files in the folder ``others``."""
        game, place = clone.encoding.game, run.out / "weights" / "v1"
        place.mkdir(parents=True, exist_ok=True)
        clone.save(place / file_of(game))
        for other in () if others is None else others.glob("*.safetensors"):
            if other.name != file_of(game):
                (place / other.name).write_bytes(other.read_bytes())
        progress = checkpoint.Progress(seed=run.seed, options=msgspec.to_builtins(self.options))
        told = {"game": game, "players": list(run.players), **figures, "log": log.lineage()}
        lineage = lineage_of(run, progress, clone.version, told)
        files = sorted(path.name for path in place.glob("*.safetensors"))
        newest = max(load_any(place / name, name.removesuffix(".safetensors")).version for name in files)
        if tempo is not None:
            tempo.save(place)
            files.append(TEMPO)
        version = version_of(place, files, newest)
        write_manifest(run.out / "weights", {"v1": version}, {"champion": "v1"}, lineage)
        return {"out": str(run.out), "game": game, **figures}


def _imitated(lineage: Mapping[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """The game and the imitated players in a model's lineage, or None. No players: all consenting ones.

    An imported model has the lineage of its training under ``training``.
    """
    try:
        log = lineage.get("training", lineage)["log"]
        read = [(str(each["game"]), tuple(map(str, each["players"]))) for each in log["read"]]
    except (KeyError, TypeError):
        return None
    # A clone of a player may start with a crowd from the same log.
    return max(read, key=lambda each: len(each[1]), default=None)


def _hand_gains(challenger: AnyClone, champion: AnyClone, held_out: Decisions) -> Iterator[float]:
    if not len(held_out):
        return
    samples = held_out.samples
    before, after = (brier(clone.probabilities_of(samples), samples) for clone in (champion, challenger))
    gains = (before - after) / 2
    for hand in np.unique(held_out.hands):
        yield float(gains[held_out.hands == hand].mean())


def clone_in(folder: Path, game: str) -> AnyClone | None:
    """A model's clone for a game, or None if it does not play it."""
    path = folder / file_of(game)
    return load_any(path, game) if path.exists() else None


def _blank(own: Encoding) -> Clone:
    """A clone without combinations, with weights 0."""
    base = len(own.features)
    return Clone(own, Combinations(base), Linear.zeros(base, len(own.classes)))


def extended(some: Decisions, combinations: Combinations) -> Decisions:
    """Decisions with all features, including combinations."""
    samples = some.samples
    return replace(some, samples=replace(samples, features=combinations.extend(samples.features)))


def measured(clone: AnyClone, held_out: Decisions) -> dict[str, float | int]:
    """A clone's scores on held-out decisions."""
    if not len(held_out):
        return {"held_out_decisions": 0}
    found = score(clone.probabilities_of(held_out.samples), held_out.samples)
    return {
        "held_out_decisions": found.decisions,
        "held_out_top1": round(found.top1, 4),
        "held_out_log_loss": round(found.log_loss, 4),
    }


def _check_folder(run: TrainingRun) -> None:
    if run.resume:
        checkpoint.last(run.out)
    else:
        checkpoint.check_empty(run.out)

"""``bothost train NAME [STAGE]``: make models of a strategy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost.cli import hand_query as hands
from bothost.cli import options, output
from bothost.cli.train_help import TrainCommand, trainer_of
from bothost.config import nearest
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.store.query import HandQuery
    from bothost.strategy import PlayerLog, Trainer

Player = Annotated[
    list[str] | None,
    typer.Option("--player", help="Player to imitate: an account or the lobby's id of a player. May be repeated."),
]
OfTrainer = Annotated[
    list[str] | None,
    typer.Option(help="Option of the trainer: --option ppo.epochs=4 is --ppo.epochs 4; NAME --help lists them."),
]
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Allows the trainer's options by their own names."""
COMMAND = TrainCommand


def command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Strategy, as in: phase-ppo.")],
    stage: Annotated[
        str | None, typer.Argument(help="Stage, if the training has several; NAME --help lists them.")
    ] = None,
    minutes: options.Minutes = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of parameters, deals and play.")] = 0,
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to write to; default: runs/NAME-TIME.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in --out.")] = False,
    player: Player = None,
    since: hands.Since = None,
    until: hands.Until = None,
    lobby: hands.Lobby = None,
    option: OfTrainer = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Train a strategy's models. OUT/weights gets them with a manifest, as packages ship them.

    Strategies that imitate players choose hands of the log by --player, --since, --until and --lobby.
    """
    from bothost.plugins import check_options, checked_figures, start_of, trainer_evaluators
    from bothost.strategy import TrainingRun

    stage, own = _own(stage, context.args)
    texts = [*(option or []), *own]
    plugins = options.plugins(config)
    options.choose_trackers(config)
    trainer = trainer_of(plugins, name, stage)
    _check_names(own, trainer, [option.name for option in context.command.params if option.name])
    if resume and out is None:
        raise UsageError("--resume needs --out", advice="name the folder of the training to continue")
    folder = out or Path("runs") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    query = hands.hand_query(since, until, lobby, None, player, None)
    of_log = _words({"--player": player, "--lobby": lobby, "--since": since, "--until": until})
    if of_log and not trainer.learns_from_log:
        raise UsageError(f"{name} does not learn from logged players", advice=f"leave out {of_log[0]}")
    words = _words({"--minutes": None if minutes is None else f"{minutes:g}", "--seed": str(seed)}) + of_log
    settled = check_options(trainer, options.nested(texts))
    with (
        options.alone_in(folder),
        _log(trainer, plugins, query, config) as log,
        output.progress(None, f"train {name}" if stage is None else f"{stage} for {name}") as advance,
    ):
        run = TrainingRun(
            out=folder,
            seed=seed,
            minutes=minutes,
            resume=resume,
            command=options.command_line("train", name, stage, *words, option=texts),
            log=log,
            players=tuple(player or ()),
            evaluators=trainer_evaluators(plugins, trainer, settled),
            start=start_of(plugins, trainer, settled),
        )
        figures = checked_figures(trainer, trainer(settled).train(run, advance))
    output.emit(figures, as_json, _told(figures, name, folder / "weights"))


def _told(figures: Mapping[str, Any], name: str, weights: Path) -> str:
    """The figures as a table, and the next command if there is a model."""
    text = output.table([(key, _shown(value)) for key, value in figures.items()])
    if (weights / "manifest.json").is_file():
        text += f"\nnext: bothost model import {name} {quote(str(weights))}"
    return text


def _words(given: Mapping[str, str | list[str] | None]) -> list[str]:
    """Options as the words of a command line."""
    lists = {key: [value] if isinstance(value, str) else value or [] for key, value in given.items()}
    return [word for key, texts in lists.items() for text in texts for word in (key, text)]


@contextmanager
def _log(trainer: type[Trainer], plugins: Plugins, query: HandQuery, config: Path | None) -> Iterator[PlayerLog | None]:
    """The log, for trainers that read it. Raises UsageError for a lobby or a player that it does not know."""
    if not trainer.learns_from_log:
        yield None
        return
    from bothost.retrain.players import Players
    from bothost.store import Store

    settings = options.settings(config)
    with Store.open(settings.store) as store:
        hands.check_names(store, settings, plugins, query)
        hands.check_players(store, settings, query)
        yield Players(store, query)


def _own(stage: str | None, words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The stage, and the trainer's options under their own names as KEY=VALUE: ``--records 1000``, ``--records=1000``.

    Without a stage, the first of these options comes in its place.
    """
    texts, rest = [], list(words)
    if stage is not None and stage.startswith("--"):
        rest, stage = [stage, *rest], None
    while rest:
        word = rest.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not key:
            raise UsageError(f"unexpected argument {word!r}", advice="see bothost train --help")
        if not equals and (not rest or rest[0].startswith("--")):
            raise UsageError(f"{word} needs a value", advice=f"{word} VALUE")
        texts.append(f"{key}={value if equals else rest.pop(0)}")
    return stage, texts


def _check_names(own: Sequence[str], trainer: type[Trainer], of_command: Sequence[str]) -> None:
    """Raise UsageError for an option that the trainer does not have. ``of_command``: options that it may stand for."""
    names = [field.encode_name for field in msgspec.structs.fields(trainer.Options)]
    for text in own:
        name = re.split("[.=]", text)[0]
        if name not in names:
            raise UsageError(f"there is no option --{name}", advice=nearest(name, [*names, *of_command]))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        if any(isinstance(item, dict) for item in value.values()):
            return "; ".join(f"{name}: {_shown(item)}" for name, item in value.items())
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)

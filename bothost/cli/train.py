"""``bothost train NAME``: make models of a strategy."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bothost.cli import options, output
from bothost.errors import UsageError


def command(
    name: Annotated[str, typer.Argument(help="Strategy, as in: phase-ppo.")],
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Time to train, earlier runs included.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of parameters, deals and play.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: runs/NAME-TIME.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")] = False,
    option: Annotated[list[str] | None, typer.Option(help="Option of the trainer, as in ppo.epochs=4.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Train a strategy's models; they come with their manifest, as a package ships them, in OUT/weights."""
    from bothost.plugins import check_options, require
    from bothost.strategy import Strategy, TrainingRun

    plugins = options.plugins(config)
    strategy: type[Strategy] = require(plugins, plugins.strategies, "strategy", name)
    try:
        trainer = strategy.trainer()
    except ImportError as error:
        raise UsageError(f"training {name} needs {error.name}", advice='pip install "bothost[torch]"') from error
    if trainer is None:
        able = sorted(other for other, cls in plugins.strategies.items() if "trainer" in vars(cls))
        raise UsageError(f"{name} learns nothing", advice=f"strategies that do: {', '.join(able) or 'none'}")
    if resume and out is None:
        raise UsageError("--resume needs --out", advice="name the folder of the training to go on with")
    folder = out or Path("runs") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    run = TrainingRun(
        out=folder, seed=seed, minutes=minutes, resume=resume, command=_line(name, minutes, seed, option or [])
    )
    settled = check_options(trainer, _nested(option or []))
    with output.progress(None, f"train {name}") as advance:
        figures = trainer(settled).train(run, advance)
    output.emit(figures, as_json, output.table([(key, _shown(value)) for key, value in figures.items()]))


def _nested(texts: list[str]) -> dict[str, Any]:
    """Options as nested objects: ``ppo.epochs=4`` → ``{"ppo": {"epochs": 4}}``."""
    nested: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--option {text!r} is not KEY=VALUE")
        *outer, last = path.split(".")
        place = nested
        for key in outer:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise UsageError(f"--option {text!r}: {key} has a value already", advice="give one of the two")
        try:
            place[last] = json.loads(value)
        except json.JSONDecodeError:
            place[last] = value
    return nested


def _line(name: str, minutes: float | None, seed: int, texts: list[str]) -> str:
    """The command line that does the same again, without what is of this machine alone."""
    words = ["bothost", "train", name]
    words += [] if minutes is None else ["--minutes", f"{minutes:g}"]
    words += ["--seed", str(seed)]
    for text in texts:
        words += ["--option", text]
    return shlex.join(words)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else json.dumps(value) if isinstance(value, dict) else str(value)

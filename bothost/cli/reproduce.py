"""``bothost reproduce NAME``: run an experiment of the checkout, or the one that a plugin's strategy brings."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bothost
from bothost.cli import options, output
from bothost.cli.generate import Recordings
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.reproduction import Contestant, Reproduced, Reproduction, ReproductionRun

RESULTS = "results.json"


def command(
    name: Annotated[str, typer.Argument(help="Experiment, as in: phase-ppo.")],
    full: Annotated[bool, typer.Option("--full", help="At the source's size: days, or a cluster.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn.")] = 0,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=256, help="Processes to use.")] = 1,
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to write to; default: runs/reproduce-NAME[-full].")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of the reproduction, KEY=VALUE.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Run an experiment small, or in --full. It writes tables and plots. Run again, it continues."""
    from bothost.plugins import check_options
    from bothost.reproduction import ReproductionRun

    plugins = options.plugins(config)
    reproduction = _reproduction(plugins, name)
    settled = check_options(reproduction, options.nested(option or []))
    folder = out or Path("runs") / f"reproduce-{name}{'-full' if full else ''}"
    words = options.command_line("reproduce", name, "--full" * full, "--seed", seed, option=option or [])
    with (
        options.alone_in(folder),
        closing(Recordings(plugins, folder / "games")) as recordings,
        output.progress(None, f"reproduce {name}") as advance,
    ):
        run = ReproductionRun(
            out=folder,
            play=Matches(plugins, folder / "matches", workers, config),
            record=recordings,
            full=full,
            seed=seed,
            workers=workers,
            command=words,
        )
        began = time.monotonic()
        made = reproduction(settled).run(run, advance)
        record = _record(run, made, time.monotonic() - began)
        (folder / RESULTS).write_text(json.dumps(record, indent=2) + "\n")
        (folder / "results.md").write_text(_markdown(name, record, made))
    output.emit(record, as_json, _readable(folder, made))


class Matches:
    """Plays the matches of a reproduction; each keeps a journal in ``folder``, from which it continues."""

    def __init__(self, plugins: Plugins, folder: Path, workers: int, config: Path | None) -> None:
        self._plugins = plugins
        self._folder = folder
        self._workers = workers
        self._config = config

    def __call__(
        self,
        game: str,
        contestants: Sequence[Contestant],
        *,
        deals: int,
        seed: int = 0,
        ms: float | None = None,
        rules: Mapping[str, Any] | None = None,
        each_deal: bool = False,
    ) -> dict[str, Any]:
        """See :class:`bothost.PlayMatch`."""
        from bothost.arena.run import run_match
        from bothost.arena.spec import MatchSpec
        from bothost.cli.arena import build

        spec = MatchSpec(
            game=game,
            rules=dict(rules or {}),
            contestants=tuple(side.address for side in contestants),
            options=tuple(dict(side.options) for side in contestants),
            weights=tuple(None if side.weights is None else str(side.weights) for side in contestants),
            deals=deals,
            seed=seed,
            ms=ms,
            workers=self._workers,
            config=str(self._config) if self._config is not None else None,
        )
        journal = self._folder / f"{self._key(game, contestants, seed, ms, spec.rules)}.jsonl"
        return run_match(spec, build, journal=journal, each_deal=each_deal)

    def _key(
        self, game: str, contestants: Sequence[Contestant], seed: int, ms: float | None, rules: Mapping[str, Any]
    ) -> str:
        """Name of the match: another for other rules, options or models, the same for more deals of the same."""
        sides = []
        for side in contestants:
            model = self._plugins.resolve(side.address, side.options, side.weights).model
            sides.append([side.address, dict(side.options), None if model is None else model.sha256])
        text = json.dumps([game, dict(rules), sides, seed, ms], sort_keys=True, default=str)
        return f"{game}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _reproduction(plugins: Plugins, name: str) -> type[Reproduction]:
    """Return the experiment with this name. Raises UsageError if there is none."""
    from bothost.plugins import import_failed

    shipped = _experiments()
    own = {other for other, strategy in plugins.strategies.items() if "reproduction" in vars(strategy)}
    try:
        if name in own and (found := plugins.strategies[name].reproduction()) is not None:
            return found
        if name in shipped:
            module, attribute = shipped[name].split(":")
            experiment: type[Reproduction] = getattr(importlib.import_module(module), attribute)
            return experiment
    except ImportError as error:
        raise import_failed(f"reproducing {name}", error) from error
    known = sorted(own | set(shipped))
    advice = f"known experiments: {', '.join(known) or 'none'}"
    if not shipped:
        advice += " Those of bothost are in its repository, folder experiments/: run the command in a checkout."
    raise UsageError(f"no experiment is called {name!r}", advice=advice)


def _experiments() -> Mapping[str, str]:
    """Return name → ``module:class`` of the experiments in the checkout. An installed wheel has none."""
    root = Path(bothost.__file__).resolve().parents[1]
    if not (root / "experiments" / "__init__.py").is_file() or not (root / "pyproject.toml").is_file():
        return {}
    if str(root) not in sys.path:
        sys.path.append(str(root))
    found: Mapping[str, str] = importlib.import_module("experiments").EXPERIMENTS
    return found


def _record(run: ReproductionRun, made: Reproduced, seconds: float) -> dict[str, Any]:
    from bothost import __version__

    return {
        "command": run.command,
        "full": run.full,
        "seed": run.seed,
        "version": __version__,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
        "figures": dict(made.figures),
        "plots": list(made.plots),
        "notes": list(made.notes),
    }


def _markdown(name: str, record: Mapping[str, Any], made: Reproduced) -> str:
    parts = [f"# {name}: reproduction", f"`{record['command']}`, {record['machine']}, {record['seconds']} s"]
    for table in made.tables:
        rows = [table.header, tuple("---" for _ in table.header), *table.rows]
        parts.append(f"## {table.title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows))
    parts += [f"![{Path(plot).stem}]({plot})" for plot in made.plots]
    parts += [f"- {note}" for note in made.notes]
    return "\n\n".join(parts) + "\n"


def _readable(folder: Path, made: Reproduced) -> str:
    parts = [f"{table.title}\n{output.table(table.rows, table.header)}" for table in made.tables]
    parts += [note for note in made.notes]
    parts.append(f"{folder / 'results.md'}, {folder / RESULTS}")
    return "\n\n".join(parts)

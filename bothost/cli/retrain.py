"""``bothost retrain NAME``: a challenger from the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import hand_query as hands
from bothost.cli import options, output
from bothost.cli.train_help import RetrainCommand
from bothost.config import find
from bothost.errors import BothostError, StoreUnavailable, UsageError

if TYPE_CHECKING:
    from bothost.retrain.job import Tools
    from bothost.retrain.task import Learn, Request

COMMAND = RetrainCommand
AFTER = 100_000
"""New decisions after which ``--watch`` retrains."""
LOOK_S = 30.0
"""Seconds between two checks of ``--watch``."""


def command(
    name: Annotated[str, typer.Argument(help="Strategy, as in: phase-ppo.")],
    since: hands.Since = None,
    until: hands.Until = None,
    lobby: hands.Lobby = None,
    player: hands.PlayerName = None,
    minutes: options.Minutes = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the training.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Option of the trainer, as in ppo.epochs=4; retrain NAME --help lists them."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin with fresh parameters, not with the champion.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Folder of the job. An unfinished job continues. Default: under data_dir."),
    ] = None,
    promote: Annotated[bool, typer.Option("--promote", help="Then play the match against the champion.")] = False,
    deals: options.MostDeals = 2000,
    alpha: options.Alpha = 0.05,
    watch: Annotated[bool, typer.Option("--watch", help="Retrain again whenever the conditions are met.")] = False,
    after: Annotated[
        int | None, typer.Option(min=1, help="For --watch: new decisions to learn from; default: 100,000.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="For --watch: not before this time of the day (UTC), HH:MM.")] = None,
    ray: options.Ray = None,
    ray_cores: Annotated[int, typer.Option(min=1, help="Cores that the training requests from Ray.")] = 1,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Make a challenger from the log: dataset, training, registration. One job at a time on a database."""
    from bothost.retrain.job import Tools
    from bothost.retrain.on_ray import learn_on_ray
    from bothost.retrain.task import trainer_of

    minute = _minute(at)
    _check_watch(watch, after, at, out)
    options.choose_trackers(config)
    settings, plugins = options.settings(config), options.plugins(config)
    trainer = trainer_of(plugins, name)
    # Trainers that imitate learn from the hands of all players, whichever strategy was logged there.
    chosen = since, until, lobby, None, player, None if trainer.learns_from_log else [name]
    asked = partial(_request, name, chosen, seed=seed, minutes=minutes, option=option or [], fresh=fresh)
    request = asked()
    with options.opened_registry(settings) as registry:
        hands.check_names(registry.store, settings, plugins, request.query)
        hands.check_players(registry.store, settings, request.query)
        tools = Tools(plugins, registry.store, registry)
        elsewhere = None if ray is None else partial(learn_on_ray, ray, find(config), ray_cores)
        match = (lambda: promoted(tools, name, deals, alpha, config)) if promote else None
        folder = settings.host.data_dir / "retrain"
        if watch:
            return watch_log(tools, asked, folder, after or AFTER, minute, match, elsewhere, as_json=as_json)
        result = once(tools, request, out or job_folder(folder, request, promotes=promote), match, elsewhere)
    output.emit(result, as_json, _text(result))


def _request(name: str, chosen: tuple[Any, ...], *, option: list[str], **how: Any) -> Request:
    """The request as of now: the ages of --since and --until count from here. ``chosen``: see ``hand_query``."""
    from bothost.retrain.task import Request

    query = hands.hand_query(*chosen, closed=True, scored=True)
    line = options.command_line("retrain", name, "--seed", how["seed"], option=option)
    return Request(strategy=name, query=query, options=options.nested(option), command=line, **how)


def _check_watch(watch: bool, after: int | None, at: str | None, out: Path | None) -> None:
    """Raise UsageError for options that do not go together."""
    if not watch and (after is not None or at is not None):
        given = "--at" if after is None else "--after"
        raise UsageError(f"{given} is for --watch", advice=f"add --watch, or leave out {given}")
    if watch and out is not None:
        raise UsageError("--out is the folder of one job", advice="leave it out: --watch makes a folder for each job")


def once(
    tools: Tools,
    request: Request,
    out: Path,
    promote: Callable[[], dict[str, Any]] | None = None,
    elsewhere: Learn | None = None,
) -> dict[str, Any]:
    """Run one retraining, and then ``promote``. Shows its progress on the terminal."""
    from bothost.retrain.job import PENDING, retrain

    with output.progress(None, f"retrain {request.strategy}") as advance:
        result = retrain(tools, request, out, advance, elsewhere, promotes=promote is not None)
    if promote is not None:
        try:
            result["promotion"] = promote()
        except StoreUnavailable:
            raise  # it is tried again
        except BothostError:
            (out / PENDING).unlink(missing_ok=True)
            raise
        (out / PENDING).unlink(missing_ok=True)
    return result


def promoted(tools: Tools, name: str, deals: int, alpha: float, config: Path | None) -> dict[str, Any]:
    """Play the match against the champion. A refusal is a result, not an error."""
    from bothost.cli.model import promoted as promote
    from bothost.retrain.gate import GateRefused, GateSettings

    try:
        match = GateSettings(deals=deals, alpha=alpha)
        pointer, verdict = promote(tools.plugins, tools.registry, name, "champion", match, config=config)
    except GateRefused as refused:
        return {"promoted": False, "reason": str(refused)}
    return {"promoted": True, "reason": pointer.reason, "p_better": None if verdict is None else verdict.p_better}


def watch_log(
    tools: Tools,
    asked: Callable[[], Request],
    folder: Path,
    after: int,
    minute: int | None,
    promote: Callable[[], dict[str, Any]] | None,
    elsewhere: Learn | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Retrain whenever the conditions are met. A job of another host that watches too is not repeated.

    A job that was interrupted, by a kill or because the database was away, continues at once, its promotion too. One
    that failed in its training does not keep new decisions waiting. Old jobs are removed.
    """
    from bothost.retrain.job import interrupted, new_decisions, remove_old
    from bothost.store.leases import LeaseHeld

    resumes = True  # False after an error that would come again
    while True:
        request = asked()
        try:
            count, last_us = new_decisions(tools.store, request)
            begun = resumes and interrupted(folder, request, promotes=promote is not None) is not None
            if begun or (count >= after and due(last_us, minute, time.time())):
                out = job_folder(folder, request, promotes=promote is not None, failed=not resumes)
                remove_old(folder, request, out)
                result = once(tools, request, out, promote, elsewhere)
                output.emit(result, as_json, _text(result))
        except LeaseHeld:
            resumes = True  # another host runs this job, or the lease was lost
        except (BothostError, OSError) as error:
            resumes = isinstance(error, StoreUnavailable)
            advice = getattr(error, "advice", "")
            output.warn(f"{error}; {advice}" if advice else str(error))
        time.sleep(LOOK_S)


def due(last_us: int, minute: int | None, now: float) -> bool:
    """Whether this time of the day (minutes after midnight, UTC) has passed since the last job. None: always."""
    if minute is None:
        return True
    midnight = now - now % 86_400
    moment = midnight + minute * 60
    return now >= moment and last_us / 1e6 < moment


def _minute(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        when = datetime.strptime(text, "%H:%M")
    except ValueError as error:
        raise UsageError(f"--at {text!r} is not a time of the day", advice="for example: --at 03:30") from error
    return when.hour * 60 + when.minute


def job_folder(folder: Path, request: Request, *, promotes: bool = False, failed: bool = False) -> Path:
    """The folder of an interrupted job with the same request, otherwise a new one.

    ``failed``: the interrupted job failed, and a training would fail again.
    """
    from bothost.retrain.dataset import is_made
    from bothost.retrain.job import interrupted
    from bothost.retrain.task import DATASET

    found = interrupted(folder, request, promotes=promotes)
    if found is not None and failed and is_made(found / DATASET):
        found = None
    return found or folder / f"{request.strategy}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _text(result: dict[str, Any]) -> str:
    lines = [f"{result['strategy']}:{result['version']} is the challenger, from {result['rows']:,} decisions"]
    if left_out := result["figures"].get("left_out_hands"):
        lines.append(f"  left out: {output.counted(left_out, 'hand')} of other rules than the training's")
    if "promotion" in result:
        lines.append(result["promotion"]["reason"])
    else:
        lines.append(f"  to play the match against the champion: bothost model promote {result['strategy']}")
    return "\n".join(lines)

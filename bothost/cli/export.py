"""``bothost export``: logged decisions as Parquet, JSONL or a Minari dataset, and hands as Botzone's records."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost.cli import hand_query as hands
from bothost.cli import options, output
from bothost.cli.output import counted
from bothost.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bothost.store import Store
    from bothost.store.query import HandQuery

DEFAULT_SPLIT = "0.8,0.1,0.1"
WHOLE = ("botzone", "minari")
"""Formats of whole hands, which have no rows of decisions."""


def command(
    out: Annotated[
        Path, typer.Option(help="Folder to write to: new, empty, or with the same export unfinished.")
    ] = Path("exports"),
    format_: Annotated[
        str, typer.Option("--format", "-f", help="parquet, jsonl, botzone, minari, or a plugin's.")
    ] = "parquet",
    since: hands.Since = None,
    until: hands.Until = None,
    lobby: hands.Lobby = None,
    game: hands.GameName = None,
    player: hands.PlayerName = None,
    strategy: hands.StrategyName = None,
    aborted: Annotated[bool, typer.Option(help="Include hands that ended without a score.")] = False,
    split: Annotated[str, typer.Option(help="Shares of train, val and test, by hand.")] = DEFAULT_SPLIT,
    view_json: Annotated[bool, typer.Option(help="Decode views into a JSON column.")] = True,
    rllib: Annotated[bool, typer.Option("--rllib", help="Add RLlib's columns: obs, new_obs, rewards, …")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Add the frames with the requests.")] = False,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Replace players' names; key: $BOTHOST_PSEUDONYM_KEY, else random.")
    ] = False,
    block: Annotated[
        list[str] | None,
        typer.Option(help="Encoder block of Minari's observations; may be repeated; default: all of the game."),
    ] = None,
    hands_per_file: Annotated[int, typer.Option(min=1, help="Closed hands in one file.")] = 20_000,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Export the decisions of closed hands. Run the same command again to continue after an interruption."""
    from bothost.export.job import export
    from bothost.export.options import ExportOptions, new_pseudonym_key
    from bothost.store import Store

    settings = options.settings(config)
    plugins = options.plugins(config)
    exporters = plugins.exporters
    rows_alone = rllib or raw or aborted or split != DEFAULT_SPLIT
    _check_format(format_, [*exporters, *WHOLE], blocks=bool(block), rows_alone=rows_alone)
    chosen = ExportOptions(
        split=_shares(split),
        view_json=view_json,
        rllib=rllib,
        raw=raw,
        pseudonym_key=(os.environ.get("BOTHOST_PSEUDONYM_KEY") or new_pseudonym_key()) if pseudonyms else None,
        hands_per_file=hands_per_file,
    )
    query = hands.hand_query(since, until, lobby, game, player, strategy, closed=True, scored=not aborted)
    with Store.open(settings.store) as store:
        hands.check_names(store, settings, plugins, query)
        hands.check_players(store, settings, query)
        if format_ in WHOLE:
            _whole(format_, store, query, out, block or [], chosen.name_of, json)
            return
        request = {**msgspec.to_builtins(query), "since_us": since, "until_us": until}
        with output.bar("export") as bar:
            info = export(store, query, out, exporters[format_](), chosen, request=request, progress=bar)
    output.emit({**info, "out": str(out)}, json, _summary(out, info))


def _check_format(name: str, known: list[str], *, blocks: bool, rows_alone: bool) -> None:
    """Raise UsageError for an unknown format, and for options of other formats.

    ``blocks``: --block is given; ``rows_alone``: an option that only formats of decisions have.
    """
    if name not in known:
        raise UsageError(f"there is no format {name!r}", advice=f"formats: {', '.join(sorted(known))}")
    if blocks and name != "minari":
        raise UsageError("--block is for the format minari", advice="leave out --block, or add --format minari")
    if rows_alone and name in WHOLE:
        raise UsageError(f"--rllib, --raw, --aborted and --split are not for the format {name}")


def _whole(
    format_: str,
    store: Store,
    query: HandQuery,
    out: Path,
    blocks: list[str],
    name_of: Callable[[str], str],
    json: bool,
) -> None:
    from bothost.export.botzone import export_matches
    from bothost.export.minari import export_episodes

    with output.progress(None, "export") as advance:
        if format_ == "botzone":
            info = export_matches(store, query, out, name_of=name_of, progress=advance)
        else:
            info = export_episodes(store, query, out, blocks=blocks, progress=advance)
    if format_ == "botzone":
        lines = [f"{counted(count, 'match')} of {game}" for game, count in info["matches"].items()]
        lines += [f"  in {info['file']}"] if lines else []
    else:
        lines = [
            f"{name}: {counted(d['episodes'], 'episode')}, {counted(d['steps'], 'step')}"
            for name, d in info["datasets"].items()
        ]
        if lines:
            code = f'import minari; minari.load_dataset("{next(iter(info["datasets"]))}")'
            lines.append(f"  read it: MINARI_DATASETS_PATH={shlex.quote(str(out))} python -c {shlex.quote(code)}")
    if not lines:
        lines = ["no hands"]
    unit = "hand" if format_ == "botzone" else "episode"
    lines += [f"  {counted(count, unit)} {why} left out" for why, count in info["left_out"].items()]
    output.emit({**info, "out": str(out)}, json, "\n".join(lines))


def _shares(text: str) -> tuple[float, float, float]:
    try:
        train, val, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--split {text!r} is not three numbers", advice="for example: --split 0.8,0.1,0.1") from error
    return train, val, test


def _summary(out: Path, info: dict[str, Any]) -> str:
    size = sum(file["bytes"] for file in info["files"])
    lines = [
        f"{counted(info['rows'], 'decision')} at {counted(info['hands'], 'seat')}, {size:,} bytes in {out / 'data'}"
    ]
    if not info["hands"]:
        lines.append("  no hand that has ended matches: see bothost games list")
    if info["splits"]:
        lines.append("  " + ", ".join(f"{name} {rows:,}" for name, rows in info["splits"].items()))
    if info["views_not_decoded"]:
        views = counted(info["views_not_decoded"], "view")
        lines.append(f"  {views} could not be decoded: their game or its version is not installed")
    if info["format"] == "parquet" and info["rows"]:
        lines.append(f"  read it: pandas.read_parquet({str(out / 'data')!r})")
    return "\n".join(lines)

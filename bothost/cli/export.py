"""``bothost export``: logged decisions as Parquet or JSONL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bothost.cli import hand_query as hands
from bothost.cli import options, output
from bothost.errors import UsageError


def command(
    out: Annotated[
        Path, typer.Option(help="Folder to write to: new, empty, or with the same export unfinished.")
    ] = Path("exports"),
    format_: Annotated[str, typer.Option("--format", "-f", help="parquet, jsonl, or a plugin's.")] = "parquet",
    since: hands.Since = None,
    until: hands.Until = None,
    lobby: hands.Lobby = None,
    game: hands.GameName = None,
    player: hands.PlayerName = None,
    strategy: hands.StrategyName = None,
    aborted: Annotated[bool, typer.Option(help="Include hands that ended without a score.")] = False,
    split: Annotated[str, typer.Option(help="Shares of train, val and test, by hand.")] = "0.8,0.1,0.1",
    view_json: Annotated[bool, typer.Option(help="Decode views into a JSON column.")] = True,
    rllib: Annotated[bool, typer.Option("--rllib", help="Add RLlib's columns: obs, new_obs, rewards, …")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Add the frames that asked for the decision.")] = False,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Replace players' names; key: $BOTHOST_PSEUDONYM_KEY, else random.")
    ] = False,
    hands_per_file: Annotated[int, typer.Option(min=1, help="Closed hands in one file.")] = 20_000,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Export the decisions of closed hands. Run the same command again to continue after an interruption."""
    from bothost import rules
    from bothost.export.job import export
    from bothost.export.options import ExportOptions, new_pseudonym_key
    from bothost.store import Store

    settings = options.settings(config)
    plugins = options.plugins(config)
    exporters = plugins.exporters
    if format_ not in exporters:
        raise UsageError(f"there is no format {format_!r}", advice=f"Formats: {', '.join(sorted(exporters))}.")
    chosen = ExportOptions(
        split=_shares(split),
        view_json=view_json,
        rllib=rllib,
        raw=raw,
        pseudonym_key=(os.environ.get("BOTHOST_PSEUDONYM_KEY") or new_pseudonym_key()) if pseudonyms else None,
        hands_per_file=hands_per_file,
    )
    query = hands.hand_query(since, until, lobby, game, player, strategy, closed=True, scored=not aborted)
    _ = plugins.games  # the games of plugins are known from here on
    with Store.open(settings.store) as store, output.bar("export") as progress:
        info = export(
            store,
            query,
            out,
            exporters[format_](),
            chosen,
            make_game=rules.game,
            request={**msgspec.to_builtins(query), "since_us": since, "until_us": until},
            progress=progress,
        )
    output.emit({**info, "out": str(out)}, json, _summary(out, info))


def _shares(text: str) -> tuple[float, float, float]:
    try:
        train, val, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"--split {text!r} is not three numbers", advice="For instance: --split 0.8,0.1,0.1"
        ) from error
    return train, val, test


def _summary(out: Path, info: dict[str, Any]) -> str:
    size = sum(file["bytes"] for file in info["files"])
    lines = [f"{info['rows']:,} decisions of {info['hands']:,} hands, {size:,} bytes in {out / 'data'}"]
    if info["splits"]:
        lines.append("  " + ", ".join(f"{name} {rows:,}" for name, rows in info["splits"].items()))
    if info["views_not_decoded"]:
        lines.append(
            f"  {info['views_not_decoded']:,} views could not be decoded: their game or its version is not here"
        )
    if info["format"] == "parquet" and info["rows"]:
        lines.append(f"  read it: pandas.read_parquet({str(out / 'data')!r})")
    return "\n".join(lines)

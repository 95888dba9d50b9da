"""``bothost plugin list|new|check|release``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import options, output
from bothost.cli.scaffold import Kind
from bothost.config import FILE_NAME, HostSettings
from bothost.errors import PluginError, StrategyNotFound, UsageError

if TYPE_CHECKING:
    from bothost.plugins import Failure, Plugins
    from bothost.strategy import Strategy
    from bothost.testing.check_lobby import LobbyReport
    from bothost.testing.check_strategy import Report as StrategyReport

app = typer.Typer(help="List, scaffold and check plugins.", no_args_is_help=True)


@app.command("list")
def list_plugins(
    name: Annotated[str | None, typer.Argument(help="A strategy, adapter or plugin: show all of it.")] = None,
    config_file: options.Config = None,
    json: options.Json = False,
) -> None:
    """List strategies and what else plugins bring, and what failed to load, with its cause."""
    plugins = options.plugins(config_file)
    failures = plugins.failures
    strategies = [_strategy(plugins, cls) for cls in plugins.strategies.values()]
    others = _others(plugins)
    if name is not None:
        strategies = [s for s in strategies if name in (s["name"], s["plugin"])]
        others = [_whole(plugins, o) for o in others if name in (o["name"], o["plugin"])]
        failures = [f for f in failures if f.plugin == name]
        if not (strategies or others or failures):
            from bothost.plugins.address import why_missing

            raise StrategyNotFound(name, advice=why_missing(plugins.failures, name, plugins.strategies))
    data = {"strategies": strategies, "others": others, "failures": failures}
    output.emit(data, json, _listing(strategies, others, failures, whole=name is not None))


def _strategy(plugins: Plugins, cls: type[Strategy]) -> dict[str, Any]:
    from bothost import config

    plugin = plugins.origins[f"strategy {cls.name}"]
    found, models = plugins.sources[plugin], _models(cls)
    return {
        "name": cls.name,
        "version": cls.version,
        "plugin": plugin,
        "source": found.source,
        "games": list(cls.games),
        "levels": list(cls.levels),
        "aliases": list(models),
        "models": models,
        "execution": cls.execution,
        "deterministic": cls.deterministic,
        "about": (cls.__doc__ or "").strip().partition("\n")[0],
        "options": config.describe(cls.Options),
    }


def _models(cls: type[Strategy]) -> dict[str, str]:
    from bothost.errors import ModelError
    from bothost.plugins import weights

    try:
        return dict(weights.aliases(cls))
    except ModelError as error:
        return {f"({error})": ""}


def _others(plugins: Plugins) -> list[dict[str, Any]]:
    kinds: dict[str, Mapping[str, Any]] = {
        "game": plugins.games,
        "board": plugins.boards,
        "lobby": plugins.lobbies,
        "exporter": plugins.exporters,
        "command": plugins.commands,
    }
    return [
        {"kind": kind, "name": name, "plugin": plugins.origins[f"{kind} {name}"]}
        for kind, named in kinds.items()
        for name in named
    ]


def _whole(plugins: Plugins, other: dict[str, Any]) -> dict[str, Any]:
    """All that there is to say: of a lobby adapter, its ``[lobby.options]`` and the attributes of its wishes too."""
    from bothost import config

    if other["kind"] != "lobby":
        return other
    adapter = plugins.lobbies[other["name"]]
    attributes = getattr(adapter, "Attributes", None)  # an adapter need not derive from the base class
    described = {"attributes": config.describe(attributes)} if attributes is not None else {}
    return {**other, "options": config.describe(adapter.Options), **described}


def _listing(strategies: list[dict[str, Any]], others: list[Any], failures: list[Failure], *, whole: bool) -> str:
    parts: list[str] = []
    if whole:
        parts += [_details(strategy) for strategy in strategies]
    elif strategies:
        header = ("STRATEGY", "VERSION", "GAMES", "LEVELS", "EXECUTION", "SOURCE")
        rows = [
            (s["name"], s["version"], ", ".join(s["games"]), ", ".join(s["levels"]) or "-", s["execution"], s["source"])
            for s in strategies
        ]
        parts.append(output.table(rows, header))
    if others:
        rows_ = [(o["kind"], o["name"], o["plugin"]) for o in others]
        parts.append(output.table(rows_, ("KIND", "NAME", "PLUGIN")))
        for key, what in (("options", "[lobby.options]"), ("attributes", "attributes of a wish")):
            parts += [f"{what} of {o['name']}:{_options(o[key])}" for o in others if key in o]
    if failures:
        lines = ["failed:"]
        for failure in failures:
            lines.append(f"  {failure.plugin} ({failure.source}): {failure.cause}")
            if failure.advice:
                lines.append(f"    fix: {failure.advice}")
            if whole and failure.traceback:
                lines += [f"    {line}" for line in failure.traceback.rstrip().splitlines()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "there are no plugins"


def _details(strategy: dict[str, Any]) -> str:
    keys = ("source", "games", "levels", "aliases", "execution", "deterministic")
    values = ((key, strategy[key]) for key in keys)
    facts = [(key, (", ".join(value) or "-") if isinstance(value, list) else value) for key, value in values]
    models: dict[str, str] = {}  # what it is → its first name: an alias and its version are one model
    for model, about in strategy["models"].items():
        if about:
            models.setdefault(about, f"{strategy['name']}:{model}")
    parts = [
        f"{strategy['name']} {strategy['version']}: {strategy['about']}",
        output.table(facts),
        output.table([(name, about) for about, name in models.items()]),
        f"options:{_options(strategy['options'])}",
    ]
    return "\n\n".join(filter(None, parts))


def _options(described: list[dict[str, Any]]) -> str:
    """Options or attributes, a line for each."""
    rows = [
        (
            option["name"],
            f"{option['type']}, " + ("required" if option["required"] else f"default {option['default']!r}"),
            option["about"].replace("``", ""),
        )
        for option in described
    ]
    return f"\n{output.table(rows)}" if rows else " none"


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name: lower-case words joined by hyphens.")],
    kind: Annotated[Kind, typer.Option(help="What the plugin brings.")] = "strategy",
    folder: Annotated[Path | None, typer.Option("--dir", help="Where to write it; default: ./bothost-NAME.")] = None,
    game: Annotated[str | None, typer.Option(help="The game that a strategy plays; default: doudizhu.")] = None,
    from_sb3: Annotated[
        Path | None, typer.Option(help="model.zip of Stable-Baselines3 (PPO, MaskablePPO) that the strategy plays.")
    ] = None,
    block: Annotated[str | None, typer.Option(help="The encoder block that the model observes.")] = None,
    json: options.Json = False,
) -> None:
    """Write a working plugin package with a test, ready to be changed."""
    from bothost.cli.scaffold import write

    target = folder if folder is not None else Path(f"bothost-{name}")
    if kind != "strategy" and game is not None:
        raise UsageError("--game is the game of a strategy", advice=f"leave it out: NAME is the name of the {kind}")
    if block is not None and from_sb3 is None:
        raise UsageError("--block is what a model observes", advice="leave it out, or add --from-sb3")
    game = game or "doudizhu"
    _check_free(options.plugins_for_help(), kind, name)
    policy = None
    if from_sb3 is not None:
        from bothost import rules
        from bothost.cli.from_sb3 import read_policy

        if kind != "strategy":
            raise UsageError(f"a model makes no {kind}", advice="leave out --kind")
        policy = read_policy(from_sb3, rules.game(game), block)
    files = write(name, target, game, kind, policy)
    check = {"strategy": f"bothost plugin check {name}", "lobby": f"bothost plugin check --lobby {name}"}
    text = "\n".join(
        [
            *(f"wrote {file}" for file in files),
            f"next: edit {files[2]}, then",
            _how_to_install(target),
            f"  {check.get(kind, f'pytest {quote(str(target))}')}",
        ]
    )
    output.emit({"name": name, "path": str(target.absolute()), "files": [str(file) for file in files]}, json, text)


def _check_free(plugins: Plugins, kind: Kind, name: str) -> None:
    """Raise UsageError if something that is installed has the name."""
    from bothost import rules

    named = {"strategy": plugins.strategies, "game": rules.games(), "lobby": plugins.lobbies}[kind]
    module = f"bothost_{name.replace('-', '_')}"
    if name in named or any(found.module == module for found in plugins.sources.values()):
        what = kind if name in named else "plugin"
        raise UsageError(f"a {what} {name!r} exists already", advice=f"choose another name, for example my-{name}")


def _how_to_install(target: Path) -> str:
    loose = options.plugins_dir()
    if loose is not None and target.resolve().parent == loose.resolve():
        return f"  (bothost finds it: {loose.name} is the plugins_dir)"
    default = HostSettings().plugins_dir
    if loose is None and default is not None and target.resolve().parent == default.resolve():
        return f"  bothost init       (with its {FILE_NAME}, bothost finds {default})"
    return f"  pip install -e {quote(str(target))}       (or put the folder into plugins_dir)"


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Address of a strategy: NAME, NAME:ALIAS or exec:COMMAND.")] = None,
    lobby: Annotated[str | None, typer.Option(help="Check this lobby adapter at its fake lobby.")] = None,
    kit: Annotated[
        str | None, typer.Option(help="MODULE:NAME of the LobbyKit; default: the one that the adapter names.")
    ] = None,
    game: Annotated[list[str] | None, typer.Option(help="Only this game; may be repeated.")] = None,
    games: Annotated[int, typer.Option(min=1, max=10**6, help="Hands to play of each game.")] = 1000,
    budget_ms: Annotated[float, typer.Option(min=1, callback=options.finite, help="Time for each decision.")] = 1000.0,
    seed: options.Seed = 0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the strategy, KEY=VALUE.")] = None,
    config_file: options.Config = None,
    json: options.Json = False,
) -> None:
    """Run the conformance kit of a strategy or a lobby adapter. Exit code 1 when it fails."""
    from bothost.testing.check_strategy import check_strategy

    if (name is None) == (lobby is None):
        raise UsageError("name one thing to check", advice="a strategy, or --lobby with an adapter")
    plugins = options.plugins(config_file)
    if lobby is not None:
        _check_lobby(plugins, lobby, kit, seed, json)
        return
    assert name is not None
    broken = [failure for failure in plugins.failures if failure.plugin == name]
    if broken and name not in plugins.strategies:
        raise PluginError(name, broken[0].cause, advice=broken[0].advice)
    if name in plugins.games and name not in plugins.strategies:
        advice = "check it in a test: assert bothost.testing.check_game.check_game(game, n=50) == []"
        raise UsageError(f"{name} is a game, not a strategy", advice=advice)
    resolved = plugins.resolve(name, options.nested(option or []))

    def checked() -> StrategyReport:
        return check_strategy(resolved, games=game or (), hands=games, budget_ms=budget_ms, seed=seed)

    report = _in_a_child(checked, name) if resolved.strategy.execution == "process" else checked()
    _conclude(report, report.address, output.counted(report.decisions, "decision"), json)


def _in_a_child(checked: Callable[[], StrategyReport], address: str) -> StrategyReport:
    """The report of a kit that runs in a child process, which the strategy may end."""
    import multiprocessing

    import msgspec

    from bothost.testing.check_strategy import Finding, Report

    context = multiprocessing.get_context("fork")  # the child has the plugins already
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send_bytes(msgspec.json.encode(checked())))
    child.start()
    sender.close()
    with receiver, contextlib.suppress(EOFError):
        return msgspec.json.decode(receiver.recv_bytes(), type=Report)
    child.join()
    detail, advice = f"the process ended with code {child.exitcode}", "no call of a strategy may end its process"
    return Report(address, (Finding("stays alive", "", False, detail, advice),), 0, 0, 0.0, 0.0)


def _check_lobby(plugins: Plugins, name: str, kit: str | None, seed: int, json: bool) -> None:
    """Play the adapter at its fake lobby. Raises Exit where it does not conform."""
    import asyncio

    from bothost import logs
    from bothost.plugins.manager import require
    from bothost.testing.check_lobby import check_lobby, find_kit

    adapter = require(plugins, plugins.lobbies, "adapter", name)
    found = find_kit(adapter, kit)
    logs.configure(level="critical")
    report = asyncio.run(check_lobby(found, seed=seed))
    counts = (output.counted(report.requests, "request"), output.counted(report.hostile, "hostile input"))
    _conclude(report, name, ", ".join(counts), json)


def _conclude(report: StrategyReport | LobbyReport, name: str, counts: str, json: bool) -> None:
    """Print what a kit found. Raises Exit where something does not conform."""
    import msgspec

    verdict = "conforms" if report.ok else "does not conform"
    lines = [*map(str, report.findings), f"{name}: {verdict} ({counts})"]
    output.emit({"ok": report.ok, **msgspec.to_builtins(report)}, json, "\n".join(lines))
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def release(
    strategy: Annotated[str, typer.Argument(help="Address of the strategy, as bothost status prints it.")],
    config_file: options.Config = None,
    json: options.Json = False,
) -> None:
    """End the quarantine of a strategy in the running host: it gets new tables again."""
    from bothost.cli.status import ask_host

    found = ask_host(config_file, "release", strategy=strategy)
    output.emit(found, json, f"{strategy} gets new tables again")

"""``bothost model``: versions and aliases of models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost.cli import options, output
from bothost.errors import ModelError, UsageError, VersionNotFound
from bothost.store.records import iso_time

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.retrain.gate import GateSettings, Verdict
    from bothost.store.registry import Pointer, Registry
    from bothost.strategy import Model, Strategy

app = typer.Typer(no_args_is_help=True, help="The model registry.")

Name = Annotated[str, typer.Argument(help="Strategy, as in: phase-ppo.")]
Address = Annotated[str, typer.Argument(help="NAME:VERSION or NAME:ALIAS, as in: phase-ppo:r2.")]


@app.command("list")
def list_(
    strategy: Annotated[str | None, typer.Argument(help="Only this strategy.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """List versions of the registry and of the strategies' packages."""
    plugins = options.plugins(config)
    with options.opened_registry(options.settings(config)) as registry:
        listed = _listed(registry, plugins, strategy)
    rows = [
        (
            item["strategy"],
            item["version"],
            " ".join(item["aliases"]),
            item["sha256"][:12],
            "-" if item["encoder_version"] is None else item["encoder_version"],
            (item["created"] or "packaged")[:16].replace("T", " "),
        )
        for item in listed
    ]
    header = ("STRATEGY", "VERSION", "ALIASES", "SHA256", "ENCODER", "CREATED (UTC)")
    output.emit(listed, json, output.table(rows, header, optional=("ENCODER",)) if rows else "no models")


@app.command()
def show(address: Address, config: options.Config = None, json: options.Json = False) -> None:
    """Show a version with its lineage and the history of its aliases."""
    from bothost.plugins.weights import play_options

    plugins = options.plugins(config)
    strategy, _ = _named(plugins, address)
    with options.opened_registry(options.settings(config)) as registry:
        model = _model(plugins, address)
        known = registry.version(strategy.name, model.version)
        pointers = registry.pointers(strategy.name)
        history = [p for _, alias in sorted(pointers) for p in registry.history(strategy.name, alias)]
    shown: dict[str, Any] = {
        "strategy": strategy.name,
        "version": model.version,
        "sha256": model.sha256,
        "encoder_version": model.encoder_version,
        "files": dict(model.files),
        "play": play_options(model),
        "path": model.path,
        "created": None if known is None else iso_time(known.created_us),
        "lineage": None if known is None else known.lineage,
        "history": [
            {**msgspec.to_builtins(p), "at": iso_time(p.at_us)} for p in sorted(history, key=lambda p: p.at_us)
        ],
    }
    rows = [
        (key.partition("_")[0], _short(value))
        for key, value in shown.items()
        if key not in ("history", "lineage", "files")
    ]
    rows += [("file", f"{name}  {sha}") for name, sha in shown["files"].items()]
    rows += [(f"lineage: {key}", _short(value)) for key, value in (shown["lineage"] or {}).items()]
    rows += [(f"{p['at'][:19]}", _moved(p)) for p in shown["history"]]
    output.emit(shown, json, output.table(rows))


def _share(value: float) -> float:
    """Callback of --share, also for NaN. Raises BadParameter."""
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


@app.command()
def promote(
    address: Annotated[str, typer.Argument(help="NAME:VERSION; NAME alone is its challenger.")],
    to: Annotated[str, typer.Option(help="champion, challenger, shadow, canary, level-1 …")] = "champion",
    share: Annotated[float, typer.Option(callback=_share, help="Share of new tables, for --to canary.")] = 0.1,
    force: Annotated[bool, typer.Option("--force", help="Promote without a match; the history says so.")] = False,
    game: Annotated[str | None, typer.Option(help="Game of the match, if the strategy plays several.")] = None,
    deals: options.MostDeals = 2000,
    alpha: options.Alpha = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the match.")] = 0,
    workers: options.Workers = 1,
    option: Annotated[list[str] | None, typer.Option(help="Option of play of both, as in iterations=100.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Point an alias at a version. A new champion must beat the old one. Running hosts follow in seconds."""
    from bothost.retrain.gate import GateSettings

    play = options.nested(option or [])
    match = GateSettings(deals=deals, alpha=alpha, seed=seed, workers=workers, game=game, options=play)
    plugins = options.plugins(config)
    with options.opened_registry(options.settings(config)) as registry:
        pointer, verdict = promoted(plugins, registry, address, to, match, share=share, force=force, config=config)
    found = {**msgspec.to_builtins(pointer), "match": None if verdict is None else msgspec.to_builtins(verdict)}
    output.emit(found, json, _moved(found))


@app.command()
def rollback(
    strategy: Name,
    alias: Annotated[str, typer.Option(help="Which alias.")] = "champion",
    reason: Annotated[str, typer.Option(help="For the history.")] = "by hand",
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Undo the last promotion; run it again to undo the one before."""
    plugins = options.plugins(config)
    cls, _ = _named(plugins, strategy)
    with options.opened_registry(options.settings(config)) as registry:
        pointer = registry.back(cls, alias, reason=reason)
    found = msgspec.to_builtins(pointer)
    output.emit(found, json, _moved(found))


def _alias(value: str) -> str:
    """Callback of --alias. Raises UsageError and InvalidName before anything is registered."""
    from bothost.store.registry import CANARY, check_alias

    if value == CANARY:  # it needs a share of the tables
        advice = "leave out --alias, then: bothost model promote NAME:VERSION --to canary"
        raise UsageError("an import cannot be the canary", advice=advice)
    if value:
        check_alias(value)
    return value


Alias = Annotated[str, typer.Option(callback=_alias, help='Alias for it; "" for none.')]


@app.command("import")
def import_(
    strategy: Name,
    folder: Annotated[Path, typer.Argument(help="Folder with manifest.json, as training writes: OUT/weights.")],
    of: Annotated[str, typer.Option(help="Version or alias of the folder's manifest.")] = "champion",
    version: Annotated[str | None, typer.Option(help="Name in the registry; default: r1, r2, …")] = None,
    alias: Alias = "challenger",
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Check a model from elsewhere and register it."""
    cls, _ = _named(options.plugins(config), strategy)
    with options.opened_registry(options.settings(config)) as registry:
        lineage = {"kind": "import", "from": str(folder)}
        made = _register(registry, cls, folder, of, lineage, version, alias, f"imported from {folder}")
    output.emit(made, json, _registered(made))


def _not_empty(url: str) -> str:
    if not url.strip():
        raise typer.BadParameter("it is empty; . is this folder")
    return url


Url = Annotated[
    str, typer.Argument(callback=_not_empty, help="Folder, s3://BUCKET/PATH or hf://OWNER/REPOSITORY/PATH.")
]


@app.command()
def push(
    address: Address,
    url: Url,
    sign: Annotated[Path | None, typer.Option(help="Private Ed25519 key, PEM, that signs it.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Publish a model version. Prints the sha256 that `pull --sha256` checks."""
    from bothost.plugins.weights import Version
    from bothost.store import hub

    model = _model(options.plugins(config), address)
    assert model.path is not None
    entry = Version(files=dict(model.files), encoder_version=model.encoder_version)
    sha256 = hub.push(url, Path(model.path), model.version, entry, sign)
    found = {"strategy": model.strategy, "version": model.version, "url": url, "manifest_sha256": sha256}
    output.emit(found, json, f"{model.strategy}:{model.version} → {url}, manifest sha256 {sha256}")


@app.command()
def pull(
    strategy: Name,
    url: Url,
    sha256: Annotated[str | None, typer.Option(help="Sha256 of the manifest, as push printed it.")] = None,
    verify: Annotated[Path | None, typer.Option(help="Public Ed25519 key, PEM, of who signed it.")] = None,
    version: Annotated[str | None, typer.Option(help="Name in the registry; default: r1, r2, …")] = None,
    alias: Alias = "challenger",
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Download a published model, check it, and register it."""
    import tempfile

    from bothost.store import hub

    if sha256 is None and verify is None:
        output.warn("without --sha256 or --verify, everyone who can write to this address can replace the model")
    settings = options.settings(config)
    cls, _ = _named(options.plugins(config), strategy)
    with tempfile.TemporaryDirectory(prefix="bothost-pull-") as folder, options.opened_registry(settings) as registry:
        found = hub.pull(url, Path(folder), sha256=sha256, public_key=verify)
        lineage = {"kind": "pull", "from": url, "manifest_sha256": found, "signed": verify is not None}
        made = _register(registry, cls, Path(folder), "champion", lineage, version, alias, f"pulled from {url}")
    output.emit(made, json, _registered(made))


def _register(
    registry: Registry,
    strategy: type[Strategy],
    folder: Path,
    of: str,
    lineage: dict[str, Any],
    version: str | None,
    alias: str,
    reason: str,
) -> dict[str, Any]:
    """Add a version of a foreign manifest to the registry, and point ``alias`` at it unless that is empty."""
    root, entry, trained = _entry(folder, of)
    made = registry.add(
        strategy,
        root,
        entry.files,
        encoder_version=entry.encoder_version,
        lineage={**lineage, **trained},
        version=version,
        foreign=True,
    )
    pointer = registry.pointers(strategy.name).get((strategy.name, alias))
    if alias and (pointer is None or pointer.version != made.version):  # else a rollback would change nothing
        registry.point(strategy, alias, made.version, reason=reason)
    return {**msgspec.to_builtins(made), "alias": alias or None}


def _registered(made: dict[str, Any]) -> str:
    alias = f", {made['alias']}" if made["alias"] else ""
    return f"{made['strategy']}:{made['version']} ({made['sha256'][:12]}){alias}"


def promoted(
    plugins: Plugins,
    registry: Registry,
    address: str,
    to: str,
    match: GateSettings,
    *,
    share: float | None = None,
    force: bool = False,
    config: Path | None = None,
) -> tuple[Pointer, Verdict | None]:
    """Move an alias, after the gate where it is the champion's. Raises GateRefused with the numbers of the match."""
    from bothost.retrain.gate import GateRefused
    from bothost.store.registry import CANARY, CHALLENGER, CHAMPION, trial

    strategy, version = _named(plugins, address, CHALLENGER)
    pointers = registry.pointers(strategy.name)
    challenger = pointers.get((strategy.name, CHALLENGER))
    if address == strategy.name and (challenger is None or challenger.version is None):
        _model(plugins, address)  # a strategy without models needs other advice
        raise ModelError(f"{strategy.name} has no challenger", advice=f"make one: bothost retrain {strategy.name}")
    model = _model(plugins, f"{strategy.name}:{version}")
    trial(strategy, model)  # before a match of minutes
    before = pointers.get((strategy.name, to))
    verdict, reason = None, "by hand"
    if to == CHAMPION:
        reason = "forced, without a match"
        if not force:
            verdict = _judged(plugins, registry, strategy, model, match, config)
            reason = "there was no champion" if verdict is None else str(verdict)
        if verdict is not None and not verdict.better:
            more = "let the player play more hands" if "gain" in verdict.figures else "play more deals (--deals)"
            raise GateRefused(f"not promoted: {verdict}", advice=f"train on, {more}, or --force")
    pointer = registry.promote(
        strategy,
        to,
        model.version,
        reason=reason,
        share=share if to == CANARY else None,
        after=before.number if before is not None else 0,
    )
    return pointer, verdict


def _judged(
    plugins: Plugins,
    registry: Registry,
    strategy: type[Strategy],
    model: Model,
    match: GateSettings,
    config: Path | None,
) -> Verdict | None:
    """Compare challenger and champion in a match or on logged hands; None if there is no champion."""
    from bothost.cli.arena import build
    from bothost.retrain import gate
    from bothost.retrain.players import Players

    champion = plugins.resolve(strategy.name).model
    if champion is None:
        return None
    if champion.sha256 == model.sha256:
        raise UsageError(f"{strategy.name}:{model.version} is the champion already")
    contestants = [f"{strategy.name}:{version}" for version in (model.version, champion.version)]
    made = registry.version(strategy.name, model.version)
    log = Players(registry.store)
    found = gate.gains(strategy, log, made.lineage if made is not None else {}, model, champion)
    if found is not None:
        return gate.weigh(found, contestants[0], contestants[1], match)
    game = gate.game_of(strategy, match)
    folder = registry.folder.parent / "gate"
    journal = gate.journal_in(folder, (contestants[0], model), (contestants[1], champion), match, game)
    with output.progress(match.deals, " against ".join(contestants)) as advance:
        return gate.play(
            contestants[0],
            contestants[1],
            build,
            match,
            game=game,
            config=None if config is None else str(config),
            journal=journal,
            on_deal=lambda done, mean: advance(done, f"challenger {mean:.3f}"),
        )


def _listed(registry: Registry, plugins: Plugins, only: str | None) -> list[dict[str, Any]]:
    from bothost.plugins import weights

    if only is not None:
        _named(plugins, only)
    pointers = registry.pointers(only)
    listed = []
    for name, cls in sorted(plugins.strategies.items()):
        if only not in (None, name):
            continue
        try:
            packaged = weights.manifest(cls) or weights.Manifest({})
        except ModelError as error:
            if only is not None:
                raise
            output.warn(f"{name}: {error}")
            packaged = weights.Manifest({})
        moved = {alias: to for (owner, alias), to in pointers.items() if owner == name and to.version is not None}
        stands = [(version, alias) for alias, version in packaged.aliases.items() if alias not in moved]
        stands += [
            (str(to.version), alias if to.share is None else f"{alias}={to.share:g}") for alias, to in moved.items()
        ]
        found: list[tuple[str, str, int | None, str | None]] = [
            (version, weights.model_sha256(entry.files), entry.encoder_version, None)
            for version, entry in packaged.versions.items()
        ]
        found += [(v.version, v.sha256, v.encoder_version, iso_time(v.created_us)) for v in registry.versions(name)]
        for version, sha256, encoder, created in found:
            aliases = sorted(alias for at, alias in stands if at == version)
            item = {"strategy": name, "version": version, "aliases": aliases, "sha256": sha256}
            listed.append({**item, "encoder_version": encoder, "created": created})
    return listed


def _named(plugins: Plugins, address: str, default: str = "champion") -> tuple[type[Strategy], str]:
    from bothost.plugins import require

    name, _, version = address.partition(":")
    strategy: type[Strategy] = require(plugins, plugins.strategies, "strategy", name)
    return strategy, version or default


def _model(plugins: Plugins, address: str) -> Model:
    from bothost.plugins import learners

    found = plugins.resolve(address)
    if found.model is not None:
        return found.model
    able = learners(plugins.strategies)
    if (name := found.strategy.name) not in able:
        raise ModelError(f"{name} has no models: it does not learn", advice=f"strategies that do: {', '.join(able)}")
    advice = f"name one of bothost model list {name}, or make one: bothost train {name}, then bothost model import"
    raise ModelError(f"{address} has no {'model' if ':' in address else 'champion'}", advice=advice)


def _entry(folder: Path, of: str) -> tuple[Path, Any, dict[str, Any]]:
    """The folder of a manifest's version, its entry, and the lineage beside the manifest."""
    from bothost.config import nearest
    from bothost.plugins.weights import MANIFEST, Manifest

    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, ValueError, RecursionError) as error:
        advice = "name the folder that holds it, as in runs/NAME/weights"
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ModelError(f"{folder / MANIFEST} cannot be read: {why}", advice=advice) from error
    name = manifest.aliases.get(of, of)
    if name not in manifest.versions:
        stands = "" if name == of else f", for which its alias {of!r} stands"
        known = manifest.versions if stands else [*manifest.aliases, *manifest.versions]
        kind = ModelError if stands else VersionNotFound  # a manifest that contradicts itself is no wrong name
        raise kind(f"{folder / MANIFEST} has no version {name!r}{stands}", advice=nearest(name, known))
    if "/" in name or "\\" in name or name.startswith("."):
        raise ModelError(f"{folder / MANIFEST}: {name!r} is not a valid version name")
    root = folder / name if (folder / name).is_dir() else folder
    lineage: dict[str, Any] = {"manifest_version": name}
    try:
        lineage["training"] = msgspec.json.decode((folder / "lineage.json").read_bytes(), type=dict[str, Any])
    except (OSError, ValueError, RecursionError):
        lineage["training"] = None
    return root, manifest.versions[name], lineage


def _moved(pointer: dict[str, Any]) -> str:
    """One change of an alias, in words."""
    from bothost.store.registry import CANARY, CHALLENGER, SHADOW

    unset = "none" if pointer["alias"] in (CANARY, CHALLENGER, SHADOW) else "what the package says"
    what = pointer["version"] or unset
    share = f" on {pointer['share']:.0%} of new tables" if pointer["share"] else ""
    return f"{pointer['strategy']}:{pointer['alias']} → {what}{share} ({pointer['kind']}: {pointer['reason']})"


def _short(value: Any) -> str:
    if isinstance(value, str):
        text = value
    else:
        text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=0).decode()
    return text if len(text) <= 160 else text[:157] + "…"

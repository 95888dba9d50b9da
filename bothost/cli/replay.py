"""``bothost replay``: make logged decisions again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost.cli import hand_list, options, output
from bothost.cli import hand_query as hands
from bothost.cli.reasons import explanation
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.retrain.replay import Replayed
    from bothost.store import Store


def command(
    what: Annotated[str | None, typer.Argument(help="Id of a decision or a hand, or the beginning of one.")] = None,
    model: Annotated[str | None, typer.Option(help="Use this model instead: NAME, NAME:VERSION or NAME:ALIAS.")] = None,
    all_since: Annotated[
        str | None, typer.Option(help="Replay all hands since then, and list where --model disagrees most.")
    ] = None,
    strategy: hands.StrategyName = None,
    top: Annotated[int, typer.Option(min=1, help="How many disagreements, or reasons of a decision, to list.")] = 10,
    option: Annotated[list[str] | None, typer.Option(help="Option of the strategy, KEY=VALUE.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Make logged decisions again, by the same model or another, and show what differs.

    The exit code is 1 if the same model decides differently.
    """
    from bothost.retrain.replay import Replayer
    from bothost.store.reader import iter_hands, iter_timelines

    if (what is None) == (all_since is None):
        raise UsageError("name a decision or a hand, or --all-since", advice="see bothost games list")
    if all_since is not None and model is None:
        raise UsageError("--all-since needs --model", advice="as in --model phase-ppo:challenger")
    settings, plugins = options.settings(config), options.plugins(config)
    given = options.nested(option or [])
    routed = {route.strategy.partition(":")[0]: {**route.options} for route in reversed(settings.routes)}
    chosen = {name: {**routed.get(name, {}), **given} for name in plugins.strategies}
    with options.opened_registry(settings) as registry:
        replayer = Replayer(plugins, registry, chosen)
        try:
            if what is not None:
                found = _of(registry.store, what, replayer, model)
                output.emit([_plain(item) for item in found], json, _table(found, model) + _why(found, top))
                exact = all(item.exact for item in found if item.again is not None)
                if model is None and not exact:
                    raise typer.Exit(1)
                return
            name = (model or "").partition(":")[0]
            query = hands.hand_query(all_since, None, None, None, None, strategy or [name], closed=True)
            timelines = iter_timelines(registry.store, iter_hands(registry.store, query))
            with output.progress(None, f"replay by {model}") as advance:
                figures, farthest = replayer.disagreements(timelines, model or "", top, lambda done: advance(done))
            if not figures["decisions"]:
                hands.check_names(registry.store, settings, plugins, query)
        finally:
            replayer.close()
    text = _figures(figures, model) + ("\n" + _table(farthest, model) if farthest else "")
    output.emit({**figures, "farthest": [_plain(item) for item in farthest]}, json, text)


def _of(store: Store, what: str, replayer: Any, model: str | None) -> list[Replayed]:
    """The decisions of a game, or one decision. Its hand is replayed from the start, for players that keep state."""
    from bothost.store.reader import decisions_within, iter_timelines, read_hands

    if found := hand_list.named(store, what):
        return [item for timeline in iter_timelines(store, iter(found)) for item in replayer.hand(timeline, model)]
    keys = decisions_within(store, *hands.ids_from(what), 3)
    if not keys:
        raise UsageError(f"no hand and no decision begins with {what}", advice="see bothost games list")
    if len(keys) > 1:
        names = ", ".join(key[0].hex() for key in keys[:2]) + (", …" if len(keys) > 2 else "")
        raise UsageError(f"several decisions begin with {what}: {names}", advice="give more characters of the id")
    decision_id, hand = keys[0]
    for timeline in iter_timelines(store, iter(read_hands(store, [hand]))):
        return [item for item in replayer.hand(timeline, model) if item.id == decision_id.hex()]
    raise UsageError(f"the hand of decision {what} is not in the log")


def _plain(item: Replayed) -> dict[str, Any]:
    return {**msgspec.to_builtins(item), "exact": item.exact}


def _figures(figures: dict[str, Any], model: str | None) -> str:
    if not figures["decisions"]:
        return "no decisions"
    return (
        f"{figures['decisions']:,} decisions: {model} would have chosen the same action in "
        f"{figures['same_action']:.1%}; "
        f"mean distance of the policies {figures['mean_distance']:.4f}"
    )


def _table(found: list[Replayed], model: str | None) -> str:
    rows = []
    for item in found:
        again = "-" if item.again is None else item.again.notation
        if item.again is None:
            said = item.note
        elif model is not None:
            said = f"{item.distance:.4f}"
        else:
            said = "exact" if item.exact else ", ".join(item.differences) or "the view differs"
        place = f"{item.seq}" + (f".{item.substep}" if item.substep else "")
        rows.append((item.id, place, item.phase, len(item.legal), item.logged.notation, again, said))
    header = ("DECISION", "EVENT", "PHASE", "LEGAL", "LOGGED", "AGAIN", "" if model is None else "DISTANCE")
    optional, names = ("PHASE", "LEGAL"), ("LOGGED", "AGAIN")
    return output.table(rows, header, optional=optional, names=names) if rows else "no decisions"


def _why(found: list[Replayed], top: int) -> str:
    """The reasons of one decision, as logged and as made again."""
    if len(found) != 1:
        return ""
    lines: list[str] = []
    for title, answer in (("logged", found[0].logged), ("again", found[0].again)):
        said = [] if answer is None else explanation({"reasons": answer.reasons}, top)
        if answer is not None and said and not (title == "again" and answer.reasons == found[0].logged.reasons):
            lines += ["", f"{answer.notation} ({title})", *(f"  {line}" for line in said)]
    return "".join(f"\n{line}" for line in lines)

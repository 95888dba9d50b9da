"""The help of ``bothost train NAME [STAGE]``: that of the command, with the strategy's stages or options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from typer.core import TyperCommand

from bothost import config
from bothost.errors import BothostError

if TYPE_CHECKING:
    from bothost.strategy import Trainer


class TrainCommand(TyperCommand):
    """``bothost train``, whose help depends on the strategy."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[__name__] = list(args)  # ``--help`` ends the parsing before the strategy is known
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the strategy's stages, or the options of its trainer."""
        given, _, _ = self.make_parser(ctx).parse_args(args=ctx.meta.get(__name__, []))
        if (name := given.get("name")) is None:
            return
        try:
            title, rows = _described(name, given.get("stage"))
        except BothostError as error:
            formatter.write_paragraph()
            formatter.write_text("; ".join(filter(None, (str(error), error.advice))))
            return
        with formatter.section(title):
            formatter.write_dl(rows or [("none", "")])


def _described(name: str, stage: str | None) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what to list under it. Raises BothostError."""
    from bothost.cli.options import plugins_for_help
    from bothost.cli.train import trainer_of
    from bothost.plugins import trainers_of

    plugins = plugins_for_help()
    strategy = plugins.strategies.get(name)
    found = None if strategy is None else trainers_of(strategy)
    if isinstance(found, Mapping) and stage is None:
        title = f"Stages of {name}, in their order. bothost train {name} STAGE --help lists the options of one"
        return title, [(stage, _plain((trainer.__doc__ or "").partition("\n")[0])) for stage, trainer in found.items()]
    trainer: type[Trainer] = trainer_of(plugins, name, stage)
    return f"Options of {name}{f' {stage}' if stage else ''}", list(option_rows(trainer.Options))


def option_rows(
    struct: type[msgspec.Struct], group: str = "", defaults: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Options with their types, and what they mean, with their defaults. ``defaults``: those of a group."""
    groups = {field.encode_name: type(field.default) for field in msgspec.structs.fields(struct)}
    for option in config.describe(struct):
        name, default = option["name"], option["default"] if defaults is None else defaults.get(option["name"])
        if issubclass(groups[name], msgspec.Struct):
            yield from option_rows(groups[name], f"{group}{name}.", default)
            continue
        text = default if isinstance(default, str) else json.dumps(default)
        shown = "[required]" if option["required"] else "" if default in (None, "") else f"[default: {text}]"
        yield f"--{group}{name} {option['type']}", " ".join(filter(None, (_plain(option["about"]), shown)))


def _plain(text: str) -> str:
    return text.replace("``", "")

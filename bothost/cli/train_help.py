"""The trainer that ``bothost train NAME [STAGE]`` names, and the help of ``train`` and ``retrain`` with its options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from typer.core import TyperCommand

from bothost import config
from bothost.errors import BothostError, UsageError

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.strategy import Trainer


def trainer_of(plugins: Plugins, name: str, stage: str | None) -> type[Trainer]:
    """The trainer of a strategy, or of a stage of its training. Raises UsageError."""
    from bothost.plugins import learners, require, trainers_of
    from bothost.strategy import Strategy

    strategy: type[Strategy] = require(plugins, plugins.strategies, "strategy", name)
    trainer = trainers_of(strategy)
    if trainer is None:
        able = ", ".join(learners(plugins.strategies)) or "none"
        raise UsageError(f"{name} cannot be trained", advice=f"strategies that can: {able}")
    if not isinstance(trainer, Mapping):
        if stage is not None:
            raise UsageError(f"training {name} has no stages", advice=f"leave out {stage!r}")
        return trainer
    if stage is None or stage not in trainer:
        problem = "training has stages" if stage is None else f"training has no stage {stage!r}"
        raise UsageError(f"{name}: {problem}", advice=f"name one, in this order: {', '.join(trainer)}")
    return trainer[stage]


class TrainCommand(TyperCommand):
    """``bothost train``, whose help depends on the strategy."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[__name__] = list(args)  # ``--help`` ends the parsing before the strategy is known
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the strategy's stages, or the options of its trainer."""
        from bothost.cli.options import plugins_for_help

        given, _, _ = self.make_parser(ctx).parse_args(args=ctx.meta.get(__name__, []))
        if (name := given.get("name")) is None:
            return
        try:
            title, rows = self.described(plugins_for_help(), name, given.get("stage"))
        except BothostError as error:
            formatter.write_paragraph()
            formatter.write_text("; ".join(filter(None, (str(error), error.advice))))
            return
        with formatter.section(title):
            formatter.write_dl(rows or [("none", "")])

    def described(self, plugins: Plugins, name: str, stage: str | None) -> tuple[str, list[tuple[str, str]]]:
        """A title, and what to list under it. Raises BothostError."""
        from bothost.plugins import trainers_of

        strategy = plugins.strategies.get(name)
        found = None if strategy is None else trainers_of(strategy)
        if isinstance(found, Mapping) and stage is None:
            title = f"Stages of {name}, in their order. bothost train {name} STAGE --help lists the options of one"
            return title, [(each, _plain((made.__doc__ or "").partition("\n")[0])) for each, made in found.items()]
        trainer: type[Trainer] = trainer_of(plugins, name, stage)
        return f"Options of {name}{f' {stage}' if stage else ''}", list(option_rows(trainer.Options))


class RetrainCommand(TrainCommand):
    """``bothost retrain``, whose help lists the options of the stage that learns from the log."""

    def described(self, plugins: Plugins, name: str, stage: str | None) -> tuple[str, list[tuple[str, str]]]:
        from bothost.retrain.task import trainer_of

        trainer = trainer_of(plugins, name)
        rows = [(option.removeprefix("--"), about) for option, about in option_rows(trainer.Options)]
        return f"Options of {name}, each as --option NAME=VALUE", rows


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

"""The trainers of strategies, checked before they run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from bothost.errors import PluginError, UsageError
from bothost.plugins.validate import declared_options_problems
from bothost.strategy import Strategy, Trainer

EXTRAS = {
    **dict.fromkeys(("torch", "matplotlib", "tensorboard"), "train"),
    "lightgbm": "experiments",
    "ray": "ray",
}
"""Module → the extra of bothost that brings it."""


def trainers_of(strategy: type[Strategy]) -> type[Trainer] | Mapping[str, type[Trainer]] | None:
    """Return what ``Strategy.trainer`` names. Raises UsageError if a module is missing, PluginError for no trainers."""
    try:
        found = strategy.trainer()
    except ImportError as error:
        raise import_failed(f"training {strategy.name}", error) from error
    for trainer in found.values() if isinstance(found, Mapping) else [found]:
        if trainer is None:
            continue
        if not (isinstance(trainer, type) and issubclass(trainer, Trainer)):
            advice = "return a subclass of bothost.Trainer, or a mapping of stages to such classes"
            raise PluginError(strategy.name, f"trainer returned {trainer!r}", advice=advice)
        for cause, advice in declared_options_problems(trainer):
            raise PluginError(strategy.name, cause, advice=advice)
    return found


def learners(strategies: Mapping[str, type[Strategy]]) -> list[str]:
    """The names of those that name a trainer, sorted. No trainer is imported."""
    return sorted(name for name, cls in strategies.items() if cls.trainer.__func__ is not Strategy.trainer.__func__)  # type: ignore[attr-defined]


def import_failed(what: str, error: ImportError) -> UsageError:
    """The error of an import that a training or an experiment needs, with the package to install."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return UsageError(f"{what} failed: {error}", advice="fix the import")
    extra = EXTRAS.get(error.name.partition(".")[0])
    advice = f'pip install "bothost[{extra}]"' if extra else "install the package with that module, or fix the import"
    return UsageError(f"{what} needs {error.name}", advice=advice)


def checked_figures(trainer: type[Trainer], figures: Any) -> dict[str, Any]:
    """Return the figures of a training as JSON values. Raises PluginError if they are none."""
    if not isinstance(figures, dict):
        message = f"{trainer.__qualname__} returned {type(figures).__name__}"
        raise PluginError(trainer.name, message, advice="return a dict of figures to show; {} if there are none")
    try:
        return dict(msgspec.json.decode(msgspec.json.encode(figures, enc_hook=_plain)))
    except (TypeError, ValueError, OverflowError) as error:
        message = f"{trainer.__qualname__} returned figures that are no JSON: {error}"
        raise PluginError(trainer.name, message, advice="return numbers, text, lists and dicts of these") from error


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy and torch as numbers and lists, paths as text."""
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__qualname__}")

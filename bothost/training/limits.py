"""Kinds of numbers that options of trainings may be."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Levels = Annotated[tuple[Share, ...], Meta(min_length=1)]
"""When a training's levels are taken, weakest first, as parts of its samples."""

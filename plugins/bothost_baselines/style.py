"""What players with a style share: named styles, and options in which one player differs from its style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class StyleOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A style; of the other fields, None stands for what the style says."""

    STYLES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Name → what it says of the other fields."""

    style: str = "steady"
    """One of ``STYLES``."""

    def __post_init__(self) -> None:
        if self.style not in self.STYLES:
            raise ValueError(f"there is no style {self.style!r}: {', '.join(self.STYLES)}")

    def habits(self) -> dict[str, Any]:
        """What style and options say, by field; a field of which neither says anything is left out."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "style"}
        return {**self.STYLES[self.style], **{name: value for name, value in given.items() if value is not None}}

"""Options of players with a style: a named style, and options that override it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class StyleOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A style. Other fields override it, unless they are None."""

    STYLES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Name → its values of the other fields."""

    style: str = "steady"
    """Name of a style. An unknown name is refused with a list of all names."""

    def __post_init__(self) -> None:
        if self.style not in self.STYLES:
            raise ValueError(f"there is no style {self.style!r}: {', '.join(self.STYLES)}")

    def habits(self) -> dict[str, Any]:
        """The values of style and options, by field. Fields without a value are left out."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "style"}
        return {**self.STYLES[self.style], **{name: value for name, value in given.items() if value is not None}}

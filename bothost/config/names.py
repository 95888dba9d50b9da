"""Names of players: characters of any language that everybody sees."""

from __future__ import annotations

import re
import unicodedata

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that show nothing, although Python calls them printable: fillers and variation selectors."""


MOST_LOGGED = 200
"""Characters of the longest name of a player in the log."""


def is_loggable(name: str) -> bool:
    """Whether a player in the log may have this name. It can be shown, and may hold spaces."""
    return len(name) <= MOST_LOGGED and name.isprintable() and bool(name.strip())


def is_visible(name: str, most: int) -> bool:
    """Whether a name has 1 to ``most`` visible characters, in Unicode's normal form NFC.

    Spaces, control characters, marks that reorder text and characters that show nothing are not visible.
    """
    printable = name.isprintable() and " " not in name and not _BLANK.search(name)
    return 0 < len(name) <= most and printable and unicodedata.is_normalized("NFC", name)

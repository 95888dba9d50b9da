"""Names of players: characters of any language that everybody sees."""

from __future__ import annotations

import re
import unicodedata

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that show nothing, although Python calls them printable: fillers and variation selectors."""


def is_visible(name: str, most: int) -> bool:
    """Whether a name has 1 to ``most`` visible characters, in Unicode's normal form NFC.

    Spaces, control characters, marks that reorder text and characters that show nothing are not visible.
    """
    printable = name.isprintable() and " " not in name and not _BLANK.search(name)
    return 0 < len(name) <= most and printable and unicodedata.is_normalized("NFC", name)

"""The functions of SQLite in the library that Python's own sqlite3 module has loaded, for native code.

A second copy of SQLite in one process would break the first one's locks (https://sqlite.org/howtocorrupt.html, 2.2.1).
"""

from __future__ import annotations

import functools
from importlib.util import find_spec

_FUNCTIONS = (
    "open_v2", "close_v2", "errmsg", "extended_errcode", "total_changes", "busy_timeout", "prepare_v2", "finalize",
    "bind_blob", "bind_text", "bind_int64", "bind_double", "bind_null", "bind_parameter_count", "step", "reset",
    "column_count", "column_name", "column_value", "value_type", "value_int64", "value_double", "value_blob",
    "value_bytes",
)  # fmt: skip


@functools.cache
def sqlite_functions() -> dict[str, int] | None:
    """Their addresses by name, ``sqlite3_`` left out; None where they are hidden, as in a Python with SQLite inside."""
    import ctypes

    module = find_spec("_sqlite3")
    if module is None or not module.has_location or module.origin is None:
        return None
    library = ctypes.CDLL(module.origin)  # symbols are looked up in it and in what it was linked to, nowhere else
    try:
        found = {name: getattr(library, f"sqlite3_{name}") for name in _FUNCTIONS}
    except AttributeError:
        return None
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in found.items()}

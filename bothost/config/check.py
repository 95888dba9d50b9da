"""Check plain data against a msgspec struct and report all errors.

msgspec stops at the first error and gives no advice on unknown keys. So this module walks the structure with
``msgspec.inspect`` and converts each leaf separately. Used for config.toml and the options of plugins.
"""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from inspect import getsource
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

Hook = Callable[[type, Any], Any]

# Both are slow, and a configuration has many tables of one type.
_type_info = functools.cache(inspect.type_info)
_type_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


class Problem(msgspec.Struct, frozen=True):
    """One error. ``key`` is dotted, with indices: ``lobby[0].account[1].tables``."""

    key: str
    message: str
    value: Any = None
    advice: str = ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or the list of known words."""
    names = list(known)
    if close := difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "there are none"


def problems(data: Any, struct: type[msgspec.Struct], *, key: str = "", dec_hook: Hook | None = None) -> list[Problem]:
    """Return all errors of ``data`` as a ``struct``, in the order of the data; [] if it is valid."""
    found = list(_walk(data, struct, key, dec_hook))
    if not found:
        found = list(_convert(data, struct, key, dec_hook))
    return found


def _walk_struct(data: dict[Any, Any], struct: type[msgspec.Struct], key: str, hook: Hook | None) -> Iterable[Problem]:
    info = _type_info(struct)
    assert isinstance(info, inspect.StructType)
    hints = _type_hints(struct)
    fields = {field.encode_name: field for field in info.fields}
    for name, value in data.items():
        if name not in fields:
            # without the value: a misspelled ``token`` may hold one
            yield Problem(_join(key, str(name)), "unknown key", None, nearest(str(name), fields))
        else:
            yield from _walk(value, hints[fields[name].name], _join(key, name), hook)
    for name, field in fields.items():
        if field.required and name not in data:
            yield Problem(_join(key, name), "is missing", None, f"add {name} = …")


def _walk(value: Any, annotation: Any, key: str, hook: Hook | None) -> Iterable[Problem]:
    for part in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,):
        inner = get_args(part)
        if isinstance(value, list) and (get_origin(part) is list or inner[1:] == (Ellipsis,)):
            for index, element in enumerate(value):
                yield from _walk(element, inner[0], f"{key}[{index}]", hook)
            return
        if isinstance(value, dict) and get_origin(part) is dict and _is_struct(inner[1]):
            for name, element in value.items():
                yield from _walk(element, inner[1], _join(key, str(name)), hook)
            return
        if isinstance(value, dict) and _is_struct(part):
            yield from _walk_struct(value, part, key, hook)
            return
    yield from _convert(value, annotation, key, hook)


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _convert(value: Any, annotation: Any, key: str, hook: Hook | None) -> Iterable[Problem]:
    if isinstance(value, float) and not math.isfinite(value):
        yield Problem(key, f"{value} is not a finite number", value)
        return
    try:
        msgspec.convert(value, annotation, dec_hook=hook)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        advice = ""
        if isinstance(value, str) and (choices := _choices(annotation)):
            text, advice = f"{value!r} is not one of {', '.join(choices)}", nearest(value, choices)
        elif isinstance(value, str) and "regex" in text and (meta := _described(annotation)) is not None:
            text, advice = f"{value!r} is not {meta.description}", f'for example "{(meta.examples or [""])[0]}"'
        elif (brackets := _brackets(value, annotation)) is not None:
            advice = brackets.format(re.sub(r"\[\d+\]", "", key))
        shown = None if _is_custom(annotation) else value
        within = re.sub(r"`.*", "", path, flags=re.S)
        yield Problem((key + within).removeprefix("."), _plain(text, shown), shown, advice)
    except (TypeError, NotImplementedError) as error:
        yield Problem(key, str(error), value)


def _brackets(value: Any, annotation: Any) -> str | None:
    """How the header is written of a table that is one of several, or the other way round; None for other values."""
    if isinstance(value, list) and _is_struct(annotation):
        return "write [{}]"
    several = get_origin(annotation) is tuple and _is_struct(get_args(annotation)[0])
    return "write [[{}]]" if isinstance(value, dict) and several else None


def _described(annotation: Any) -> msgspec.Meta | None:
    """Return the ``Meta`` with a description, which is clearer than its pattern."""
    for part in (annotation, *get_args(annotation)):
        for meta in getattr(part, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta
    return None


def _is_custom(annotation: Any) -> bool:
    """Whether ``dec_hook`` decodes it: then its value may be a secret and is not shown."""
    return any(isinstance(member, inspect.CustomType) for member in _members(annotation))


def _choices(annotation: Any) -> list[str]:
    return [str(v) for m in _members(annotation) if isinstance(m, inspect.LiteralType) for v in m.values]


def _members(annotation: Any) -> tuple[inspect.Type, ...]:
    """The types of a union, or the one type."""
    info = _type_info(annotation)
    return info.types if isinstance(info, inspect.UnionType) else (info,)


def _plain(text: str, value: Any) -> str:
    """Rephrase msgspec's message for config files, and add a numeric bad value."""
    shown = f", got {value!r}" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
    for technical, plain in (
        ("`str`", "text"),
        ("`int`", "a whole number"),
        ("`float`", "a number"),
        ("`bool`", "true or false"),
        ("`object`", "a table"),
        ("`array`", "a list"),
        ("`null`", "nothing"),
    ):
        text = text.replace(technical, plain)
    if shown and ", got" not in text:
        text += shown
    return text[:1].lower() + text[1:]


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def describe(struct: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Describe the fields of a struct, for display and ``--json``: name, type, required, default, about."""
    hints, notes = _type_hints(struct), field_notes(struct)
    return [
        {
            "name": field.encode_name,
            "type": _type_name(hints[field.name]),
            "required": field.required,
            "default": None if field.required else _default(field),
            "about": notes.get(field.name, ""),
        }
        for field in _type_info(struct).fields  # type: ignore[attr-defined]
    ]


def field_notes(struct: type) -> dict[str, str]:
    """Field → the string under it in the source, on one line. Empty where the source is not at hand."""
    notes: dict[str, str] = {}
    for cls in reversed(struct.__mro__):
        if not issubclass(cls, msgspec.Struct) or cls is msgspec.Struct:
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(getsource(cls))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, note in itertools.pairwise(tree.body):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant):
                notes[field.target.id] = " ".join(str(note.value.value).split())
    return notes


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.to_builtins(field.default_factory(), enc_hook=str)
    return msgspec.to_builtins(field.default, enc_hook=str)


def _type_name(annotation: Any) -> str:
    info = _type_info(annotation)
    if isinstance(info, inspect.LiteralType):
        return " | ".join(repr(v) for v in info.values)
    base = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    bounds = [
        f"{sign} {getattr(info, attribute)}"
        for attribute, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
        if getattr(info, attribute, None) is not None
    ]
    return _base_name(base) + (f" ({', '.join(bounds)})" if bounds else "")


def _base_name(annotation: Any) -> str:
    if annotation is type(None):
        return "None"
    origin, members = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " | ".join(map(_type_name, members))
    if origin is not None:
        inside = ("..." if member is Ellipsis else _type_name(member) for member in members)
        return f"{origin.__name__}[{', '.join(inside)}]"
    return str(getattr(annotation, "__name__", annotation))

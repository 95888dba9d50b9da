"""Checks names of OpenSpiel's games. They come from configurations and servers, and are hostile until checked.

A name is ``chess`` or ``go(board_size=9,komi=5.5)``: parameters in alphabetical order, no spaces, nothing nested. So
each game has one name, which is safe in a configuration, a log, a URL (percent-encoded) and a file name.
"""

from __future__ import annotations

import re

import pyspiel

from bothost.errors import UsageError

LONGEST_NAME = 100
MOST_ACTIONS = 20_000
LONGEST_GAME = 20_000
LARGEST_SMALL_NUMBER = 32
"""An integer parameter may be at most this, or twice its default."""

SMALLEST_NUMBER = 2
EXPENSIVE = {"dims", "num_dice", "dice_sides"}
"""Parameters for which time and memory grow exponentially. Only their defaults are allowed."""

_NAME = re.compile(r"([a-z0-9_]+)(?:\(((?:[a-z0-9_]+=[A-Za-z0-9_.-]+,?)*)\))?", re.ASCII)
_WORD = re.compile(r"[a-z_]+", re.ASCII)

Parameter = bool | int | float | str


def load_checked(name: str) -> pyspiel.Game:
    """Load OpenSpiel's game of this name. Raises UsageError for an invalid name or an unsupported game."""
    match = _NAME.fullmatch(name) if len(name) <= LONGEST_NAME else None
    if match is None:
        advice = "write openspiel:chess, or openspiel:go(board_size=9) for parameters"
        raise UsageError(f"{name[:LONGEST_NAME]!r} is not a valid name of an OpenSpiel game", advice=advice)
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    short = match[1]
    if short not in kinds:
        raise UsageError(f"OpenSpiel has no game {short!r}", advice="see pyspiel.registered_names()")
    _require_playable(kinds[short])
    parameters = _parameters(short, match[2] or "", pyspiel.load_game(short).get_parameters())
    try:
        game = pyspiel.load_game(short, parameters)
        state = game.new_initial_state()
        str(state)  # some parameters are refused only here
        if game.get_type().provides_observation_tensor:
            state.observation_tensor(0)  # or here
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"OpenSpiel refuses {name}: {str(error)[:200]}") from error
    if not 0 < game.num_distinct_actions() <= MOST_ACTIONS or not 0 < game.max_game_length() <= LONGEST_GAME:
        raise UsageError(f"{name} is too large", advice="use smaller parameters")
    if game.num_players() < 2:
        raise UsageError(f"{name} has fewer than two seats", advice="use a game for two or more")
    canonical = str(game).removesuffix("()")
    if name != canonical:
        raise UsageError(f"{name} is not the canonical name", advice=f"write openspiel:{canonical}")
    return game


def _require_playable(kind: pyspiel.GameType) -> None:
    types = pyspiel.GameType
    reason = ""
    if kind.information != types.Information.PERFECT_INFORMATION:
        reason = "it hides information"
    elif kind.dynamics != types.Dynamics.SEQUENTIAL:
        reason = "its seats act at the same time"
    elif kind.chance_mode == types.ChanceMode.SAMPLED_STOCHASTIC:
        reason = "its chance cannot be replayed"
    elif not kind.default_loadable or any("file" in name for name in kind.parameter_specification):
        reason = "it needs a file or other settings"
    if reason:
        advice = "only games of perfect information, one seat at a time, can be played"
        raise UsageError(f"{kind.short_name} cannot be played here: {reason}", advice=advice)


def _parameters(short: str, text: str, defaults: dict[str, Parameter]) -> dict[str, Parameter]:
    """The parameters in a name, checked against the defaults of the game."""
    out: dict[str, Parameter] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in defaults or key in out:
            known = ", ".join(sorted(defaults)) or "it has none"
            raise UsageError(f"{short} has no parameter {key!r}, or it is given twice", advice=f"parameters: {known}")
        try:
            out[key] = _parameter(value, defaults[key])
            if key in EXPENSIVE and out[key] != defaults[key]:
                raise ValueError(f"it must be {defaults[key]}")
        except ValueError as error:
            raise UsageError(f"{short}: {key}={value} is refused: {error}", advice="take another value") from error
    return out


def _parameter(text: str, default: Parameter) -> Parameter:
    """Parse a value of the default's type. Raises ValueError."""
    if isinstance(default, bool):
        if text not in ("True", "False"):
            raise ValueError("it must be True or False")
        return text == "True"
    if isinstance(default, int):
        most = max(LARGEST_SMALL_NUMBER, 2 * default)
        value = int(text)
        least = min(default, SMALLEST_NUMBER)
        if not least <= value <= most:
            raise ValueError(f"it must be within {least} .. {most}")
        return value
    if isinstance(default, float):
        if not -1000.0 <= (number := float(text)) <= 1000.0:
            raise ValueError("it must be within -1000 .. 1000")
        return number
    if not _WORD.fullmatch(text):
        raise ValueError("it must be one word in lower case")
    return text

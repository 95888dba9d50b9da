"""Translates moves at open_mahjong between canonical notation and the lobby's frames."""

from __future__ import annotations

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.picture import Picture

CHOWS = {"chi_left": -1, "chi_mid": 0, "chi_right": 1}
"""Action → offset from the discard to the middle tile of the chow."""


def legal(picture: Picture, actions: wire.Words) -> list[str]:
    """The lobby's list of our legal actions as canonical notations."""
    last = picture.last
    out = []
    for action in actions:
        if action == "pass":
            out.append("pass")
        elif action.startswith("hu_"):
            out.append("hu")
        elif action == "cut":
            out += [f"play:{wire.word(tile)}" for tile in dict.fromkeys(picture.own) if not wire.is_flower(tile)]
        elif action == "angang":
            fours = [tile for tile in dict.fromkeys(picture.own) if picture.own.count(tile) == 4]
            out += [f"angang:{wire.word(tile)}" for tile in fours]
        elif action == "jiagang":
            pungs = [meld.tile for meld in picture.melds[picture.seat] if meld.kind == "peng"]
            out += [f"bugang:{wire.word(tile)}" for tile in pungs if tile in picture.own]
        elif action in CHOWS and 11 <= last + CHOWS[action] <= 39 and (last + CHOWS[action]) % 10:
            out.append(f"chi:{wire.word(last + CHOWS[action])}")
        elif action in ("peng", "gang") and last:
            out.append(f"{action}:{wire.word(last)}")
    return list(dict.fromkeys(out))


def notation_of(picture: Picture, action: wire.Action) -> str:
    """The canonical notation of our seat's action, before it is folded; empty for draws and flowers."""
    for kind in action.action_list:
        try:
            if kind == "cut" and action.cut_tile is not None:
                return f"play:{wire.word(action.cut_tile)}"
            if kind in ("angang", "jiagang"):
                return f"{'angang' if kind == 'angang' else 'bugang'}:{wire.word(kong_tile(action))}"
            moves = legal(picture, (kind,))
        except ValueError:
            return ""
        if moves:
            return moves[0]
    return ""


def kong_tile(action: wire.Action) -> int:
    """The tile of a kong; 0 if it is hidden."""
    digits = (action.combination_target or "")[1:]
    return int(digits) if digits.isdecimal() else 0


def frame_of(picture: Picture, action: str, asked: wire.Words, gamestate: str, tick: int) -> str:
    """The frame that makes a move. Raises ValueError if the lobby does not offer the move."""
    if action not in legal(picture, asked):
        raise ValueError(f"the lobby does not offer {action}")
    name, _, tile = action.partition(":")
    number = wire.number(tile) if tile else 0
    if name == "play":
        return cut_frame(picture, number, gamestate, tick)
    if name == "hu":
        name = next(word for word in asked if word.startswith("hu_"))
        number = picture.drawn or picture.last
    elif name == "chi":
        name = next(chow for chow, step in CHOWS.items() if picture.last + step == number)
        number = picture.last
    elif name == "bugang":
        name = "jiagang"
    elif name == "pass":
        number = picture.last
    return action_frame(name, number, gamestate, tick)


def cut_frame(picture: Picture, tile: int, gamestate: str, tick: int) -> str:
    """The frame that discards a tile."""
    own = picture.own
    drawn = picture.slot and tile == own[-1]
    return wire.encode(
        "gamestate/GB/cut_tile",
        gamestate_id=gamestate,
        cutClass=drawn,
        TileId=tile,
        cutIndex=len(own) - 1 if drawn else own.index(tile),
        action_tick=tick,
    )


def action_frame(action: str, tile: int | None, gamestate: str, tick: int) -> str:
    """The frame of any action except a discard."""
    return wire.encode(
        "gamestate/GB/send_action", gamestate_id=gamestate, action=action, targetTile=tile or None, action_tick=tick
    )

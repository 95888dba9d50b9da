"""Draw the mahjong tiles of the browser: ``python scripts/draw_tiles.py FONT.ttc > bothost/web/static/tiles.svg``.

The characters are outlines of Noto Serif CJK (SIL Open Font License 1.1), so that a page needs no Chinese font. Dots,
bamboos, the white dragon and flowers are drawn here. One ``<symbol>`` a tile, named as bothost names the tile.
"""

from __future__ import annotations

import math
import sys

from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTCollection

WIDTH, HEIGHT = 60, 80
RED, GREEN, BLUE, INK = "#b3261e", "#1e7145", "#1f5fa8", "#1d2433"
NUMERALS = "一二三四五六七八九"
HONOURS = {
    "F1": ("東", INK),
    "F2": ("南", INK),
    "F3": ("西", INK),
    "F4": ("北", INK),
    "J1": ("中", RED),
    "J2": ("發", GREEN),
}
FLOWERS = "春夏秋冬梅蘭竹菊"

# Centres of the dots and bamboos of each number, in units of the tile.
DOTS = {
    1: [(30, 40)],
    2: [(30, 22), (30, 58)],
    3: [(15, 18), (30, 40), (45, 62)],
    4: [(18, 22), (42, 22), (18, 58), (42, 58)],
    5: [(16, 20), (44, 20), (30, 40), (16, 60), (44, 60)],
    6: [(19, 17), (41, 17), (19, 42), (41, 42), (19, 63), (41, 63)],
    7: [(14, 13), (30, 20), (46, 27), (19, 46), (41, 46), (19, 66), (41, 66)],
    8: [(19, 13), (41, 13), (19, 31), (41, 31), (19, 49), (41, 49), (19, 67), (41, 67)],
    9: [(14, 17), (30, 17), (46, 17), (14, 40), (30, 40), (46, 40), (14, 63), (30, 63), (46, 63)],
}
BAMBOOS = {
    2: [(30, 22), (30, 58)],
    3: [(30, 22), (18, 58), (42, 58)],
    4: [(18, 22), (42, 22), (18, 58), (42, 58)],
    5: [(15, 22), (45, 22), (30, 40), (15, 58), (45, 58)],
    6: [(14, 22), (30, 22), (46, 22), (14, 58), (30, 58), (46, 58)],
    7: [(30, 15), (14, 40), (30, 40), (46, 40), (14, 65), (30, 65), (46, 65)],
    8: [(12, 22), (24, 22), (36, 22), (48, 22), (12, 58), (24, 58), (36, 58), (48, 58)],
    9: [(14, 15), (30, 15), (46, 15), (14, 40), (30, 40), (46, 40), (14, 65), (30, 65), (46, 65)],
}


class Glyphs:
    """Outlines of a font as SVG paths."""

    def __init__(self, path: str) -> None:
        fonts = TTCollection(path).fonts
        self.font = next(f for f in fonts if f["name"].getDebugName(1).endswith(" TC"))
        self.set, self.names = self.font.getGlyphSet(), self.font.getBestCmap()

    def path(self, character: str, x: float, y: float, size: float, colour: str) -> str:
        """The character centred at (x, y), ``size`` units high."""
        scale = size / self.font["head"].unitsPerEm
        pen = SVGPathPen(self.set, ntos=lambda n: f"{n:.1f}".rstrip("0").rstrip("."))
        glyph = self.set[self.names[ord(character)]]
        glyph.draw(TransformPen(pen, (scale, 0, 0, -scale, x - glyph.width * scale / 2, y + 0.38 * size)))
        return f'<path fill="{colour}" d="{pen.getCommands()}"/>'


def dot(x: float, y: float, radius: float, colour: str) -> str:
    rings = f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>'
    rings += f'<circle cx="{x}" cy="{y}" r="{radius * 0.62:.1f}" fill="#fff"/>'
    return rings + f'<circle cx="{x}" cy="{y}" r="{radius * 0.34:.1f}" fill="{colour}"/>'


def bamboo(x: float, y: float, length: float, colour: str) -> str:
    top = y - length / 2
    body = f'<rect x="{x - 2.6}" y="{top}" width="5.2" height="{length}" rx="2.6" fill="{colour}"/>'
    knots = "".join(
        f'<rect x="{x - 4}" y="{top + part * length - 1.6:.1f}" width="8" height="3.2" rx="1.6" fill="{colour}"/>'
        for part in (0.06, 0.5, 0.94)
    )
    return body + knots


def dots(number: int) -> str:
    if number == 1:
        petals = "".join(
            f'<circle cx="{30 + 13 * math.cos(a):.1f}" cy="{40 + 13 * math.sin(a):.1f}" r="3" fill="{RED}"/>'
            for a in (i * math.pi / 4 for i in range(8))
        )
        return (
            f'<circle cx="30" cy="40" r="21" fill="{BLUE}"/><circle cx="30" cy="40" r="18" fill="#fff"/>'
            + petals
            + dot(30, 40, 7, GREEN)
        )
    radius = {2: 14, 3: 11, 4: 11, 5: 10, 6: 9.5, 7: 8, 8: 8, 9: 7.5}[number]
    colours = {3: [BLUE, RED, GREEN], 5: [BLUE, GREEN, RED, GREEN, BLUE], 6: [GREEN] * 2 + [RED] * 4}
    colours |= {7: [GREEN] * 3 + [RED] * 4, 9: [GREEN] * 3 + [RED] * 3 + [BLUE] * 3}
    named = colours.get(number, [BLUE, GREEN] * number)
    return "".join(dot(x, y, radius, named[i]) for i, (x, y) in enumerate(DOTS[number]))


BIRD = (
    (f'fill="{GREEN}"', "M14 58C22 40 26 30 40 24c4-6 9-7 12-4l-6 3c2 12-4 24-14 28l2 12h-4l-3-11c-4 1-9 3-13 6z"),
    (f'fill="{BLUE}"', "M22 46C16 44 11 36 10 26c8 4 14 8 18 13z"),
    ('fill="#fff"', "M45 19.4a1.6 1.6 0 1 0 .01 0z"),
    (f'stroke="{RED}" stroke-width="3" stroke-linecap="round"', "M30 61h12M18 60l-6 8"),
)
"""The one of bamboos: (how it is painted, path)."""


def bamboos(number: int) -> str:
    if number == 1:
        return "".join(f'<path {painted} d="{path}"/>' for painted, path in BIRD)
    length = 30 if number in (2, 3, 4, 5, 6, 8) else 20
    red = {5: {2}, 7: {0}, 9: {1, 4, 7}}.get(number, set())
    return "".join(bamboo(x, y, length, RED if i in red else GREEN) for i, (x, y) in enumerate(BAMBOOS[number]))


def faces(glyphs: Glyphs) -> dict[str, str]:
    """Tile → what stands on its face."""
    made = {f"T{n}": dots(n) for n in range(1, 10)} | {f"B{n}": bamboos(n) for n in range(1, 10)}
    for n, numeral in enumerate(NUMERALS, 1):
        made[f"W{n}"] = glyphs.path(numeral, 30, 22, 32, INK) + glyphs.path("萬", 30, 57, 34, RED)
    for name, (character, colour) in HONOURS.items():
        made[name] = glyphs.path(character, 30, 40, 50, colour)
    made["J3"] = f'<rect x="10" y="14" width="40" height="52" rx="4" fill="none" stroke="{BLUE}" stroke-width="4"/>'
    for n, character in enumerate(FLOWERS, 1):
        colour = RED if n <= 4 else GREEN
        made[f"H{n}"] = glyphs.path(character, 30, 46, 40, colour) + glyphs.path(NUMERALS[(n - 1) % 4], 47, 14, 14, INK)
    return made


def main() -> None:
    print('<svg xmlns="http://www.w3.org/2000/svg">')
    for name, face in faces(Glyphs(sys.argv[1])).items():
        print(f'<symbol id="{name}" viewBox="0 0 {WIDTH} {HEIGHT}">{face}</symbol>')
    print("</svg>")


if __name__ == "__main__":
    main()

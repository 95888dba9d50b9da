"""Plot the ladder: every contestant with its interval, and the history of ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bothost.errors import UsageError, printable
from bothost.ladder.report import GameLadder

LINES = 8
"""Contestants whose history is drawn."""
MANY = 100
"""With more hands, the axis of hands is logarithmic."""
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei"),
    *("WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "Heiti SC", "Arial Unicode MS"),
)
"""Fonts for names that matplotlib's own font cannot write. Those that are installed are used."""


def check(path: Path) -> None:
    """Raise UsageError if no picture can be drawn to this file. The suffix chooses its format."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise UsageError("the picture needs matplotlib", advice='pip install "bothost[ladder]"') from None
    formats = FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in formats:
        advice = f"name a file such as ladder.png; formats: {', '.join(formats)}"
        raise UsageError(f"{path} has the format of no picture", advice=advice)


def draw(ladders: Sequence[GameLadder], path: Path) -> bool:
    """Plot one row per game to a file that ``check`` accepts. Without standings it writes nothing and returns False."""
    import matplotlib
    from matplotlib.font_manager import get_font_names

    if not (shown := [ladder for ladder in ladders if ladder.standings]):
        return False
    installed = set(get_font_names())
    with matplotlib.rc_context({"font.family": ["DejaVu Sans", *(n for n in CHINESE_FONTS if n in installed)]}):
        _draw(shown, path)
    return True


def _draw(ladders: Sequence[GameLadder], path: Path) -> None:
    from matplotlib.figure import Figure

    sizes = [max(2.2, 0.32 * len(ladder.standings) + 0.9) for ladder in ladders]
    figure = Figure(figsize=(11, sum(sizes)), layout="constrained")
    grid = figure.subplots(len(ladders), 2, squeeze=False, gridspec_kw={"height_ratios": sizes})
    for (left, right), ladder in zip(grid, ladders, strict=True):
        labels = [printable(standing.label).replace("$", r"\$") for standing in ladder.standings]  # $: no formula
        places = range(len(labels), 0, -1)
        mu = [standing.rating.mu for standing in ladder.standings]
        left.errorbar(mu, places, xerr=[1.96 * s.rating.sigma for s in ladder.standings], fmt="o", capsize=3)
        left.set_yticks(list(places), labels)
        left.set_title(ladder.game)
        left.set_xlabel("rating, 95 %")
        left.grid(alpha=0.3, axis="x")
        for standing, label in list(zip(ladder.standings, labels, strict=True))[:LINES]:
            points = standing.history
            right.plot([point.hands for point in points], [point.mu for point in points], linewidth=1.2, label=label)
        if max(standing.rating.hands for standing in ladder.standings) > MANY:
            right.set_xscale("log")
        right.set_xlabel("hands")
        right.grid(alpha=0.3)
        right.legend(fontsize=7)
    figure.savefig(path, dpi=120)

"""The packages that ``bothost plugin new`` writes: each works as it is, and passes its conformance kit.

Their files are in ``templates``, but for a game and a lobby, which are copies of the complete ones in
``bothost.testing``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Literal

from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.cli.from_sb3 import Sb3Policy

Kind = Literal["strategy", "game", "lobby"]
TEMPLATES = Path(__file__).with_name("templates")
ACTIVATIONS = {"tanh": "np.tanh(x)", "relu": "np.maximum(x, 0.0)"}


def write(name: str, folder: Path, game: str, kind: Kind = "strategy", policy: Sb3Policy | None = None) -> list[Path]:
    """Write the package into ``folder``, which must not exist or be empty. Returns the files; the third is the code.

    ``policy``: what the strategy plays.

    Raises UsageError for a name that cannot be one, an unknown game, or a folder that is in use.
    """
    from bothost import rules
    from bothost.plugins.validate import NAME

    if not NAME.fullmatch(name) or name[0].isdigit():
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789") or f"my-{kind}"
        advice = f"lower-case words joined by hyphens, for example: {near}"
        raise UsageError(f"{name!r} cannot be the name of a {kind}", advice=advice)
    rules.presets(game)  # raises UsageError for an unknown game
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists already", advice="name another folder with --dir")
    word = name.replace("-", "_")
    about = {"strategy": f"A strategy for {game}, played by bothost.", "game": "A game for bothost."}
    words = {
        "name": name,
        "word": word,
        "module": f"bothost_{word}",
        "game": game,
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "title": " ".join(part.capitalize() for part in name.split("-")),
        "about": about.get(kind, "A lobby adapter for bothost."),
    }
    if policy is not None:
        words |= {"block": policy.block, "activation": ACTIVATIONS[policy.activation]}
    form = "sb3" if policy is not None else kind
    module, templates = words["module"], TEMPLATES / form
    if kind == "game":
        code = _game(words)
    elif kind == "lobby":
        code = _lobby(words)
    else:
        code = {"strategy.py": _filled(templates / "strategy.py.tmpl", words)}
    texts = {"pyproject.toml": _filled(TEMPLATES / "pyproject.toml.tmpl", words)}
    texts[f"{module}/__init__.py"] = _filled(templates / "init.py.tmpl", words)
    texts |= {f"{module}/{file}": text for file, text in code.items()}
    texts[f"tests/test_{word}.py"] = _filled(templates / "test.py.tmpl", words)
    texts["README.md"] = _filled(templates / "README.md.tmpl", words)
    try:
        return _written(folder, texts, policy, folder / module)
    except BaseException:  # a full disk: half of a package would be in the way of the next attempt
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _written(folder: Path, texts: dict[str, str], policy: Sb3Policy | None, package: Path) -> list[Path]:
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    files = [folder / file for file in texts]
    if policy is not None:
        from bothost.cli.from_sb3 import write_weights

        files += write_weights(policy, package)
    return files


def _filled(template: Path, words: dict[str, str]) -> str:
    return Template(template.read_text("utf-8")).substitute(words)


def _game(words: dict[str, str]) -> dict[str, str]:
    renames = {
        "make_nim": f"make_{words['word']}",
        "NIM": words["word"].upper(),
        "Nim": words["cls"],
        '"nim': f'"{words["name"]}',
    }
    return {"game.py": _copied("nim.py", renames)}


def _lobby(words: dict[str, str]) -> dict[str, str]:
    renames = {
        "bothost.testing.small_lobby": words["module"],
        "SmallLobby": words["cls"],
        "small-lobby": words["name"],
    }
    return {file: _copied(f"small_lobby/{file}", renames) for file in ("adapter.py", "fake.py")}


def _copied(source: str, renames: dict[str, str]) -> str:
    """A module of ``bothost.testing`` under other names."""
    from bothost import testing

    text = (Path(testing.__path__[0]) / source).read_text("utf-8")
    for old, new in renames.items():
        text = text.replace(old, new)
    return text

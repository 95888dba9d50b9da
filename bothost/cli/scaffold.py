"""The packages that ``bothost plugin new`` writes: each works as it is, and passes its conformance kit.

A strategy comes from the templates here. A game and a lobby are copies of the complete ones in ``bothost.testing``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from bothost.errors import UsageError

Kind = Literal["strategy", "game", "lobby"]

_PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "bothost-{name}"
version = "0.1.0"
description = "{about}"
requires-python = ">=3.11"
dependencies = ["bothost"]

[project.entry-points.bothost]
{module} = "{module}"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""

_INIT = '''\
"""{title}: hooks only; what they name is imported when bothost asks for it."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from {module}.strategy import {cls}

    return [{cls}]
'''

_STRATEGY = '''\
"""{title}: a strategy for {game}."""

from __future__ import annotations

import random

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a route may set: ``options = {{ patience = 0.5 }}``."""

    patience: float = 0.0
    """Probability of passing where that is legal. An example: replace it."""


class {cls}Player(Player):
    """One seat, for one hand."""

    def __init__(self, options: Options, seed: int) -> None:
        self.options = options
        self.random = random.Random(seed)  # the only source of randomness: decisions can be replayed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        """Choose one of ``legal``. The view tells all that this seat may know: view.to_json() prints it."""
        names = [view.notation(int(action)) for action in legal]
        if "pass" in names and self.random.random() < self.options.patience:
            return Decision(action=int(legal[names.index("pass")]), stats={{"reason": "patience"}})
        return Decision(action=int(self.random.choice(legal)))


class {cls}(Strategy):
    """{title}: random play so far."""

    name = "{name}"
    version = "0.1.0"
    games = ("{game}",)
    execution = "inline"  # or "thread", for what takes long and releases the GIL
    Options = Options

    def player(self, table: Table) -> {cls}Player:
        return {cls}Player(self.options, table.seed)
'''

_TEST = '''\
"""The conformance kit, and the first test of your own."""

from __future__ import annotations

from bothost.testing.check_strategy import check_strategy
from {module}.strategy import {cls}


def test_conformance() -> None:
    check_strategy({cls}, hands=50).require()


def test_options() -> None:
    check_strategy({cls}, hands=10, options={{"patience": 0.5}}).require()
'''

_README = """\
# bothost-{name}

A strategy for {game}, played by [bothost](https://pypi.org/project/bothost/).

```
pip install -e .              # or put this folder into plugins_dir
bothost plugin list {name}
bothost plugin check {name}   # 1,000 hands: legal, deterministic, in time
pytest
```

Route tables to it in `config.toml`:

```toml
[[route]]
game = "{game}"
strategy = "{name}"
options = {{ patience = 0.1 }}
```

`{module}/strategy.py` is the place to start: `decide` gets the view of its seat and the legal actions, and returns one.
"""


_GAME_INIT = '''\
"""{title}: a game for bothost."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bothost import hookimpl
from bothost.rules import Game


@hookimpl
def bothost_games() -> Iterable[tuple[str, Callable[..., Game]]]:
    from {module}.game import make_{word}

    yield "{name}", make_{word}
'''

_GAME_TEST = '''\
"""The laws that every game keeps."""

from __future__ import annotations

from bothost.testing.check_game import check_game
from {module}.game import make_{word}


def test_conformance() -> None:
    assert check_game(make_{word}(), n=50) == []
'''

_LOBBY_INIT = '''\
"""{title}: a lobby adapter for bothost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bothost import hookimpl

if TYPE_CHECKING:
    from bothost.lobbies.base import LobbyAdapter


@hookimpl
def bothost_lobbies() -> list[type[LobbyAdapter]]:
    from {module}.adapter import {cls}

    return [{cls}]
'''

_LOBBY_TEST = '''\
"""The conformance kit: whole hands at the fake lobby, kills, hostile frames."""

from __future__ import annotations

import asyncio

from bothost.testing.check_lobby import check_lobby
from {module}.fake import KIT


def test_conformance() -> None:
    asyncio.run(check_lobby(KIT)).require()
'''

_GAME_README = """\
# bothost-{name}

A game for [bothost](https://pypi.org/project/bothost/). `{module}/game.py` is complete: a pile of stones and a secret.
Replace it step by step, and keep the test green.

```
pip install -e .
pytest
bothost arena {name} random random --deals 100
```
"""

_LOBBY_README = """\
# bothost-{name}

A lobby adapter for [bothost](https://pypi.org/project/bothost/). `{module}/adapter.py` speaks a small protocol for
Othello, and `{module}/fake.py` is a fake of that lobby. Teach both the protocol of your lobby, and keep the test green.
The guide "Connect a new lobby" of bothost explains each step.

```
pip install -e .
bothost plugin check --lobby {name}
pytest
bothost lobby check {name} --url wss://…
```
"""


def write(name: str, folder: Path, game: str, kind: Kind = "strategy") -> list[Path]:
    """Write the package into ``folder``, which must not exist or be empty. Returns the files.

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
        raise UsageError(f"{folder} is there already", advice="name another folder with --dir")
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
    texts = {folder / "pyproject.toml": _PYPROJECT.format(**words)}
    texts |= {folder / path: text for path, text in _FILES[kind](words).items()}
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return list(texts)


def _strategy_files(words: dict[str, str]) -> dict[str, str]:
    templates = {"__init__.py": _INIT, "strategy.py": _STRATEGY}
    return {
        **{f"{words['module']}/{file}": template.format(**words) for file, template in templates.items()},
        f"tests/test_{words['word']}.py": _TEST.format(**words),
        "README.md": _README.format(**words),
    }


def _game_files(words: dict[str, str]) -> dict[str, str]:
    renames = {
        "make_nim": f"make_{words['word']}",
        "NIM": words["word"].upper(),
        "Nim": words["cls"],
        '"nim': f'"{words["name"]}',
    }
    return {
        f"{words['module']}/__init__.py": _GAME_INIT.format(**words),
        f"{words['module']}/game.py": _copied("nim.py", renames),
        f"tests/test_{words['word']}.py": _GAME_TEST.format(**words),
        "README.md": _GAME_README.format(**words),
    }


def _lobby_files(words: dict[str, str]) -> dict[str, str]:
    renames = {
        "bothost.testing.small_lobby": words["module"],
        "SmallLobby": words["cls"],
        "small-lobby": words["name"],
    }
    return {
        f"{words['module']}/__init__.py": _LOBBY_INIT.format(**words),
        f"{words['module']}/adapter.py": _copied("small_lobby/adapter.py", renames),
        f"{words['module']}/fake.py": _copied("small_lobby/fake.py", renames),
        f"tests/test_{words['word']}.py": _LOBBY_TEST.format(**words),
        "README.md": _LOBBY_README.format(**words),
    }


_FILES = {"strategy": _strategy_files, "game": _game_files, "lobby": _lobby_files}


def _copied(source: str, renames: dict[str, str]) -> str:
    """A module of ``bothost.testing`` under other names."""
    from bothost import testing

    text = (Path(testing.__path__[0]) / source).read_text("utf-8")
    for old, new in renames.items():
        text = text.replace(old, new)
    return text

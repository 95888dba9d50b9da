"""The package that ``bothost plugin new`` writes: it works as it is, and passes the conformance kit."""

from __future__ import annotations

import re
from pathlib import Path

from bothost.errors import UsageError

_PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "bothost-{name}"
version = "0.1.0"
description = "A strategy for {game}, played by bothost."
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


def write(name: str, folder: Path, game: str) -> list[Path]:
    """Write the package into ``folder``, which must not exist or be empty. Returns the files.

    Raises UsageError for a name that cannot be one, an unknown game, or a folder that is in use.
    """
    from bothost import rules
    from bothost.plugins.validate import NAME

    if not NAME.fullmatch(name) or name[0].isdigit():
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789") or "my-strategy"
        advice = f"lower-case words joined by hyphens, for example: {near}"
        raise UsageError(f"{name!r} cannot be the name of a strategy", advice=advice)
    rules.presets(game)  # raises UsageError for an unknown game
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already", advice="name another folder with --dir")
    module = f"bothost_{name.replace('-', '_')}"
    words = {
        "name": name,
        "module": module,
        "game": game,
        "cls": "".join(word.capitalize() for word in name.split("-")),
        "title": " ".join(word.capitalize() for word in name.split("-")),
    }
    texts = {
        folder / "pyproject.toml": _PYPROJECT,
        folder / module / "__init__.py": _INIT,
        folder / module / "strategy.py": _STRATEGY,
        folder / "tests" / f"test_{name.replace('-', '_')}.py": _TEST,
        folder / "README.md": _README,
    }
    for path, template in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.format(**words), "utf-8")
    return list(texts)

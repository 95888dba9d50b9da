"""What is there is written down: every hook, every command, every public module, every option of config.toml."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

import bothost
from bothost import cli, config, hookspecs
from bothost.plugins import Plugins
from bothost.testing.check_strategy import check_strategy

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    path
    for folder in ("bothost", "plugins")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__pycache__" not in path.parts
]


@pytest.mark.parametrize("name", hookspecs.specs())
def test_every_hook_says_what_it_is_and_when_it_fires(name: str) -> None:
    hook = hookspecs.specs()[name]
    assert hook.__doc__ and "Fires " in hook.__doc__
    assert "return" in inspect.get_annotations(hook)


def test_there_are_eight_hooks_and_each_has_a_test() -> None:
    """Registering hooks are asked by ``Plugins``, notifying ones fired by the host."""
    assert len(hookspecs.specs()) == 8
    sources = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}
    for name in hookspecs.specs():
        assert any(name in source for source in sources.values()), f"no test speaks of {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring and len(docstring) > 20, f"{path} has no docstring"


@pytest.mark.parametrize("name", bothost.__all__)
def test_the_public_api_is_documented(name: str) -> None:
    thing = getattr(bothost, name)
    if not inspect.isclass(thing):
        return
    assert thing.__doc__, name
    for member, value in vars(thing).items():
        if not member.startswith("_") and inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def commands() -> Iterator[tuple[str, Any]]:
    """(words, command) of everything that the command line offers."""
    for noun, (module_name, _) in cli.NOUNS.items():
        module = importlib.import_module(module_name)
        if not hasattr(module, "app"):
            yield noun, module.command
            continue
        group = typer.main.get_group(module.app)
        for verb in group.commands:
            yield f"{noun} {verb}", group.commands[verb]


def test_every_noun_and_verb_has_a_line_of_help() -> None:
    for noun, (_, line) in cli.NOUNS.items():
        assert line.endswith(".") and line[0].isupper(), noun
    for words, command in commands():
        text = command.help if hasattr(command, "help") else command.__doc__
        assert text and text.strip(), f"bothost {words} has no help"


def test_every_option_has_help() -> None:
    for words, command in commands():
        if not hasattr(command, "params"):
            app = typer.Typer()
            app.command()(command)
            command = typer.main.get_command(app)
        for parameter in command.params:
            undocumented = not getattr(parameter, "help", "x") and parameter.name not in ("help",)
            assert not undocumented, f"bothost {words}: {parameter.name} has no help"


def shown_commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCS:
        if not path.exists():
            continue
        for block in re.findall(r"^```(?:sh|bash|console)?\n(.*?)^```", path.read_text(), flags=re.M | re.S):
            whole = block.replace("\\\n", " ")
            found += [(path.name, line) for line in re.findall(r"^(?:\$ )?(bothost [a-z].*)$", whole, flags=re.M)]
        for line in re.findall(r"`(bothost [a-z][^`\n]*)`", path.read_text()):
            found.append((path.name, line))
    return found


def test_commands_that_the_documentation_shows_exist() -> None:
    known = {words for words, _ in commands()}
    groups = {words.partition(" ")[0] for words in known if " " in words}
    for file, line in shown_commands():
        words = shlex.split(line.partition("#")[0].replace("…", "").replace("|", " "), posix=True)[1:]
        assert words and words[0] in cli.NOUNS, f"{file}: {line}"
        if words[0] in groups and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
            assert f"{words[0]} {words[1]}" in known, f"{file}: {line}"


def _tables(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    yield struct
    info: Any = msgspec.inspect.type_info(struct)
    for field in info.fields:
        inner = getattr(field.type, "item_type", field.type)
        if isinstance(inner, msgspec.inspect.StructType):
            yield from _tables(inner.cls)


def test_every_table_of_the_configuration_is_described() -> None:
    for struct in _tables(config.Settings):
        assert struct.__doc__, struct.__name__


def test_the_example_configuration_shows_every_table() -> None:
    """So that an operator finds them all in one file."""
    shown = tomllib.loads((ROOT / "config.toml").read_text())
    info: Any = msgspec.inspect.type_info(config.Settings)
    assert {field.encode_name for field in info.fields} == set(shown)


def test_every_hook_is_in_the_guide() -> None:
    text = (ROOT / "docs" / "guide" / "first-bot.md").read_text()
    for name, hook in hookspecs.specs().items():
        arguments = ", ".join(inspect.signature(hook).parameters)
        assert f"`{name}({arguments})`" in text


def test_the_strategy_in_the_guide_works_as_written(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guide" / "first-bot.md").read_text()
    plugin, test = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    (tmp_path / "longest.py").write_text(plugin)
    found = Plugins.load(tmp_path)
    check_strategy("longest", games=["claims", "pairing"], hands=5, plugins=found).require()
    assert 'check_strategy("longest"' in test


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text() if path.exists() else ""):
            assert (path.parent / target).exists(), f"{path.name}: {target}"

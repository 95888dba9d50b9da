"""The documentation is complete and true: hooks, commands, options, settings, links, figures, generated pages."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import pkgutil
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bothost
from bothost import cli, config, hookspecs, rules
from bothost.arena.run import run_match
from bothost.arena.spec import MatchSpec
from bothost.plugins import Plugins
from bothost.testing.check_strategy import check_strategy

ROOT = Path(__file__).parents[1]
DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    path
    for folder in ("bothost", "plugins")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__pycache__" not in path.parts
]


def script(path: str) -> Any:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = script("docs/generate.py")
commands = generate.commands


@pytest.mark.parametrize("name", hookspecs.specs())
def test_every_hook_says_what_it_is_and_when_it_fires(name: str) -> None:
    hook = hookspecs.specs()[name]
    assert hook.__doc__ and "Fires " in hook.__doc__
    assert "return" in inspect.get_annotations(hook)


def test_there_are_nine_hooks_and_each_has_a_test() -> None:
    """Registering hooks are asked by ``Plugins``, notifying ones fired by the host."""
    assert len(hookspecs.specs()) == 9
    sources = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)}
    for name in hookspecs.specs():
        assert any(name in source for source in sources.values()), f"no test speaks of {name}"


def test_every_module_says_what_it_is() -> None:
    said = {path: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for path in MODULES}
    assert len(said) > 500
    assert [path for path, docstring in said.items() if len(docstring) <= 20] == [], "they have no docstring"


@pytest.mark.parametrize("name", bothost.__all__)
def test_the_public_api_is_documented(name: str) -> None:
    thing = getattr(bothost, name)
    if not inspect.isclass(thing):
        return
    assert thing.__doc__, name
    for member, value in vars(thing).items():
        if not member.startswith("_") and inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def test_the_page_of_the_python_api_has_the_whole_public_api() -> None:
    shown = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference" / "api.md").read_text(), flags=re.M)
    for path in shown:
        pkgutil.resolve_name(path)
    names = {path.rpartition(".")[2] for path in shown}
    elsewhere = {"API_VERSION", "__version__", "hookimpl"} | set(vars(bothost.errors))
    assert set(bothost.__all__) - elsewhere <= names


def test_every_noun_and_verb_has_a_line_of_help() -> None:
    for noun, (_, line) in cli.NOUNS.items():
        assert line.endswith(".") and line[0].isupper(), noun
    for words, command in commands():
        assert command.help and command.help.strip(), f"bothost {words} has no help"


def test_every_option_has_help() -> None:
    for words, command in commands():
        for parameter in command.params:
            undocumented = not getattr(parameter, "help", "x") and parameter.name not in ("help",)
            assert not undocumented, f"bothost {words}: {parameter.name} has no help"


LEVELS = ("warning", "error", "exception")


def warnings_in(path: Path) -> Iterator[str]:
    """The events of the log lines of the levels warning and error."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        if called in LEVELS or (called in ("log", "log_safely") and not set(words).isdisjoint(LEVELS)):
            yield from (word for word in words if word not in LEVELS)


def test_an_operator_finds_what_a_line_of_the_log_means() -> None:
    guide = "".join(path.read_text() for path in (ROOT / "docs" / "guide").glob("*.md"))
    files = [path for folder in ("host", "store") for path in (ROOT / "bothost" / folder).glob("*.py")]
    events = {event for path in files for event in warnings_in(path)}
    own_commands = {"account_paused", "quarantine_released"}
    assert len(events) > 40 and {event for event in events if f"`{event}`" not in guide} <= own_commands


def options_of(struct: type[msgspec.Struct], name: str) -> Iterator[tuple[str, str]]:
    """(name, explanation) of every option, also of the structs in it."""
    notes = config.field_notes(struct)
    for field in msgspec.structs.fields(struct):
        if inspect.isclass(field.type) and issubclass(field.type, msgspec.Struct):
            yield from options_of(field.type, f"{name} {field.name}")
        else:
            yield f"{name} {field.name}", notes.get(field.name, "")


def test_every_option_of_a_strategy_a_trainer_and_an_adapter_is_explained() -> None:
    found = Plugins.load()
    brought = {**found.strategies, **found.lobbies}
    for strategy in found.strategies.values():
        trainer = strategy.trainer()
        trainers = trainer if isinstance(trainer, Mapping) else {"": trainer} if trainer else {}
        brought |= {f"train {strategy.name} {stage}": made for stage, made in trainers.items()}
    unexplained = [
        option for name, each in brought.items() for option, note in options_of(each.Options, name) if not note
    ]
    assert not unexplained


def shown_commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCS:
        if not path.exists():
            continue
        for block in re.findall(r"^```[^\n]*\n(.*?)^```$", path.read_text(), flags=re.M | re.S):
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


@pytest.mark.parametrize("name", generate.PAGES)
def test_generated_pages_are_what_the_generator_writes_now(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text()
    assert written == generate.PAGES[name](), "run: python docs/generate.py"


def headings(page: str) -> list[str]:
    return re.findall(r"^## `?(.*?)`?$", (ROOT / "docs" / "reference" / page).read_text(), flags=re.M)


def test_every_hook_and_every_command_has_its_entry() -> None:
    hooks = [f"{name}({', '.join(inspect.signature(hook).parameters)})" for name, hook in hookspecs.specs().items()]
    assert headings("hooks.md") == hooks
    assert headings("cli.md") == [f"bothost {words}" for words, _ in commands()]


def test_every_option_of_a_strategy_a_trainer_and_an_adapter_has_its_entry() -> None:
    page = (ROOT / "docs" / "reference" / "options.md").read_text()
    entries = dict(re.findall(r"^## `(.*?)`\n\n(.*?)(?=^## |\Z)", page, flags=re.M | re.S))
    for heading, struct in generate.options_of_plugins():
        names = [name.removeprefix(f"{heading} ") for name, _ in options_of(struct, heading)]
        shown = re.findall(r"^\| `([\w.]+)` \|", entries.get(heading, ""), flags=re.M)
        assert shown == [name.replace(" ", ".") for name in names], heading
    assert len(entries) > 20


def test_the_readme_is_short_and_its_figures_are_those_of_the_benchmarks() -> None:
    table = script("benchmarks/table.py")
    results = json.loads(table.RESULTS.read_text())
    for path, text in table.pages(results).items():
        assert path.read_text() == text, "run: python benchmarks/table.py --render"
    readme, page = table.README.read_text(), table.PAGE.read_text()
    assert len(readme.splitlines()) <= 150
    figures = {row for row in re.findall(r"^\| ([A-Z].*?|host.*?) \|", readme.split(table.BEGIN)[1], flags=re.M)}
    assert figures and all(f"| {figure} |" in page for figure in figures)
    assert f"| {table.number(results['host']['decisions_per_s'])} |" in readme


def test_every_page_is_in_the_index_of_its_folder() -> None:
    for folder in ("guide", "reference", "research"):
        index = (ROOT / "docs" / folder / "index.md").read_text()
        others = "".join(path.read_text() for path in (ROOT / "docs" / folder).glob("*.md"))
        for path in (ROOT / "docs" / folder).rglob("*.md"):
            name = path.relative_to(ROOT / "docs" / folder).as_posix()
            assert path.name == "index.md" or f"({name})" in index or f"({name})" in others, name


def test_every_setting_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    assert re.findall(r"^\| `\w+` \|.*\|  \|$", text, flags=re.M) == []
    for struct in _tables(config.Settings):
        for field in msgspec.structs.fields(struct):
            assert f"| `{field.encode_name}` |" in text or f"{field.encode_name}]" in text


def test_native_games_are_added_as_the_guide_says() -> None:
    guide = (ROOT / "docs" / "guide" / "write-a-game.md").read_text()
    (line,) = re.findall(r"the line `(.*)`", guide)
    registry = (ROOT / "bothost" / "native" / "games" / "core" / "registry.cpp").read_text()
    assert line.replace("Game", "Othello") in registry


def test_the_strategy_in_the_guide_works_as_written(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guide" / "first-bot.md").read_text()
    plugin, test = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    (tmp_path / "longest.py").write_text(plugin)
    found = Plugins.load(tmp_path)
    check_strategy("longest", games=["claims", "pairing"], hands=5, plugins=found).require()
    assert 'check_strategy("longest"' in test


@pytest.mark.parametrize(
    ("page", "name"), [("README.md", "my-bot"), ("README.zh-CN.md", "my-bot"), ("docs/guide/first-bot.md", "longest")]
)
def test_the_first_strategy_that_a_reader_sees_wins(tmp_path: Path, page: str, name: str) -> None:
    (plugin, *_) = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.M | re.S)
    (tmp_path / f"first_of_{len(page)}.py").write_text(plugin)  # modules are loaded once
    found = Plugins.load(tmp_path)
    players = [found.resolve(address).make() for address in (name, "random")]
    spec = MatchSpec(game="doudizhu", rules={}, contestants=(name, "random"), options=({}, {}), deals=30)
    figures = run_match(spec, lambda _: (rules.game("doudizhu"), players))
    assert figures["wp"] > 0.6


def anchors(path: Path) -> set[str]:
    """The ids of a page's headings, as GitHub and the site make them."""
    found = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Pages of the site link only to pages of the site."""
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", path.read_text()):
        page = (path.parent / target).resolve() if target else path
        assert page.exists(), target
        if path.is_relative_to(ROOT / "docs"):
            assert page.is_relative_to(ROOT / "docs"), f"{target} is not in the site"
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


def test_the_layers_of_the_architecture_are_those_that_the_linter_checks() -> None:
    page = (ROOT / "docs" / "reference" / "architecture.md").read_text()
    table = page.partition("\n## Layers\n")[2].partition("\n## ")[0]
    shown = [re.findall(r"`(\w+)`", cell) for cell in re.findall(r"^\| (`.*?) \|", table, flags=re.M)]
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert shown == [re.findall(r"\w+", layer) for layer in linter["contracts"][0]["layers"]]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/reference/architecture.md"])
def test_files_that_a_contributor_is_sent_to_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    folders = "bothost|plugins|tests|docs|benchmarks|experiments|migrations|deploy"
    named = re.findall(rf"(?<![\w./-])((?:{folders})/[\w./-]+)", "\n".join(re.findall(r"`[^`\n]+`", text)))
    assert named
    assert [name for name in named if not re.search(r"NAME|NOUN", name) and not (ROOT / name).exists()] == []


def test_every_package_that_an_extra_names_is_pinned() -> None:
    def normalized(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    pinned = {
        normalized(re.split("[=<>]", line)[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    packages = {normalized(match[0]) for name in named if (match := re.match(r"[\w.-]+", name))} - {"bothost"}
    assert len(packages) > 40
    assert packages <= pinned, packages - pinned

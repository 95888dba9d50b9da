"""Plugins: each failure stays with its plugin and is told with its cause; addresses mean what they say."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from bothost import Model, rules
from bothost.config import RouteSettings, Settings
from bothost.errors import ConfigError, ConfigErrors, ModelError, PluginError, StrategyNotFound, VersionNotFound
from bothost.host.check import check_settings
from bothost.plugins import Plugins, model_sha256, trainers_of, weights
from bothost.testing import misbehaving

GOOD = """
import msgspec
from bothost import Strategy, hookimpl, Player, Decision

class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    patience: float = 0.5

class Good(Strategy):
    name = "good-{name}"
    version = "2"
    games = ("*",)
    levels = ("easy",)
    Options = Options
    def player(self, table): ...

@hookimpl
def bothost_strategies():
    return [Good]
"""


@pytest.fixture(autouse=True)
def _forget_modules(tmp_path: Path) -> Iterator[None]:
    """Loose plugins are modules like any: those of other tests' folders must not be in the way."""
    forget(tmp_path.parent)
    yield
    forget(tmp_path.parent)


def forget(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


def package(folder: Path, name: str, manifest: object = None, **files: bytes) -> Path:
    root = folder / name
    (root / "weights").mkdir(parents=True)
    (root / "__init__.py").write_text(GOOD.format(name=name))
    if manifest is not None:
        (root / "weights" / "manifest.json").write_text(json.dumps(manifest))
    for file, data in files.items():
        (root / "weights" / f"{file}.onnx").write_bytes(data)
    return root


def test_what_comes_with_bothost_uses_the_public_door() -> None:
    plugins = Plugins.load()
    assert plugins.strategies["random"].__module__ == "bothost_baselines.random"
    assert plugins.sources["baselines"].source == "bothost"
    assert plugins.failures == []


def test_every_broken_plugin_is_told_with_its_cause_and_costs_nothing_else(tmp_path: Path) -> None:
    names = misbehaving.write_broken(tmp_path)
    (tmp_path / "zz_good.py").write_text(GOOD.format(name="zz"))
    plugins = Plugins.load(tmp_path)
    assert {"random", "good-zz"} <= set(plugins.strategies)
    assert plugins.strategies["random"].__module__ == "bothost_baselines.random"
    failures = {name: [f for f in plugins.failures if f.plugin == name] for name in names}
    assert all(failures.values()), failures
    causes = {name: " | ".join(f"{f.cause} -> {f.advice}" for f in found) for name, found in failures.items()}
    assert "there_is_no_such_module" in causes["import_error"] and "install" in causes["import_error"]
    assert "line 1" in causes["syntax_error"]
    assert "SystemExit: 3" in causes["exits"]
    assert "misbehaving as announced (raises.py, line 1)" in causes["raises"]
    assert "no hook" in causes["no_hooks"]
    assert "did you mean 'bothost_strategies'?" in causes["misspelled_hook"]
    assert "tabel" in causes["wrong_signature"]
    assert "AttributeError" in causes["hook_raises"] and "line 4" in causes["hook_raises"]
    assert "not a subclass" in causes["not_a_class"]
    assert "upgrade bothost" in causes["newer_api"]
    assert "already, by plugin baselines" in causes["duplicate"]
    for word in ("Wrong.name", "version", "games", "levels", "execution", "Options", "API 99", "does not implement"):
        assert word in causes["wrong_attributes"], word
    assert all(f.source for f in plugins.failures)


def test_loose_files_packages_and_projects(tmp_path: Path) -> None:
    (tmp_path / "loose.py").write_text(GOOD.format(name="loose"))
    (tmp_path / "_helper.py").write_text("raise RuntimeError")
    package(tmp_path, "packed")
    project = tmp_path / "bothost-project"
    (project / "src" / "projected").mkdir(parents=True)
    (project / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "3"\n[project.entry-points.bothost]\np = "projected"\nq = "projected.more"\n'
    )
    (project / "src" / "projected" / "more.py").write_text(GOOD.format(name="more"))
    (tmp_path / "my.plugin.py").write_text("")
    (project / "src" / "projected" / "__init__.py").write_text("from projected.inner import *")
    (project / "src" / "projected" / "inner.py").write_text(GOOD.format(name="projected"))
    (tmp_path / "empty-project").mkdir()
    (tmp_path / "empty-project" / "pyproject.toml").write_text("[project]\n")
    plugins = Plugins.load(tmp_path)
    assert {"good-loose", "good-packed", "good-projected", "good-more"} <= set(plugins.strategies)
    assert [failure.plugin for failure in plugins.failures] == ["empty-project", "my.plugin"]
    assert "'my.plugin' cannot be a module name" in plugins.failures[1].cause
    assert str(tmp_path) not in " ".join(sys.path)
    again = Plugins.load(tmp_path)  # a reload in the same process finds the same
    assert set(again.strategies) == set(plugins.strategies)


LAZY = """
from bothost import LazyClass, hookimpl

@hookimpl
def bothost_strategies():
    yield LazyClass("good-lazy", "lazy.inner:Good")
    yield LazyClass("good-absent", "lazy.absent:Good")
    yield LazyClass("good-renamed", "lazy.inner:Good")
    yield LazyClass("random", "lazy.inner:Good")
    yield LazyClass("good-misplaced", "lazy.inner")
    yield LazyClass(["good"], "lazy.inner:Good")
"""


def test_a_lazy_strategy_is_imported_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "lazy").mkdir()
    (tmp_path / "lazy" / "__init__.py").write_text(LAZY)
    (tmp_path / "lazy" / "inner.py").write_text(GOOD.format(name="lazy"))
    plugins = Plugins.load(tmp_path)
    with pytest.raises(KeyError):
        plugins.strategies["good-other"]
    assert "lazy.inner" not in sys.modules
    assert plugins.strategies["good-lazy"].version == "2"
    assert "good-absent" not in plugins.strategies and "good-renamed" not in plugins.strategies
    assert plugins.strategies["random"].__module__ == "bothost_baselines.random"
    causes = " | ".join(failure.cause for failure in plugins.failures)
    assert all(failure.plugin == "lazy" for failure in plugins.failures)
    assert "No module named 'lazy.absent'" in causes and "is named 'good-lazy', not 'good-renamed'" in causes
    assert "already, by plugin baselines" in causes and causes.count("names no class") == 2
    assert {name for name in plugins.strategies if name.startswith("good")} == {"good-lazy"}


def test_a_loose_plugin_cannot_take_the_name_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(GOOD.format(name="json"))
    (tmp_path / "not-a-name.py").write_text("")
    causes = [failure.cause for failure in Plugins.load(tmp_path, entry_points=False).failures]
    assert "another module named 'json'" in causes[0] and "cannot be a module name" in causes[1]
    assert json.dumps([]) == "[]"


def test_a_folder_of_code_that_is_no_plugin_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "my-plugin" / "my_package").mkdir(parents=True)
    (tmp_path / "my-plugin" / "my_package" / "__init__.py").write_text(GOOD.format(name="hidden"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.json").write_text("{}")
    plugins = Plugins.load(str(tmp_path), entry_points=False)
    (failure,) = plugins.failures
    assert failure.plugin == "my-plugin" and "neither __init__.py nor pyproject.toml" in failure.cause
    assert str(tmp_path) in failure.advice and "hidden" not in plugins.strategies


BRINGS = """
import msgspec
from pathlib import Path
from bothost import Board, hookimpl, rules
from bothost.lobbies.base import Capabilities

class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True): ...
class Lobby:
    name = "brought"
    capabilities = Options()
    Options = Options
    def feed(self, item): return []
class Wrong(Lobby):
    name = "wrong"
    capabilities = Capabilities(
        games="doudizhu", acks_moves=True, rejects_illegal="error", sends_turn=True,
        clock="per-move", resume="none", resume_delivers="events",
    )
    Attributes = dict
class Exporter:
    name = "brought"
class Nameless: ...

@hookimpl
def bothost_games(): return [("brought", lambda **o: rules.game("claims", **o)), ("pairing", print), 3]
@hookimpl
def bothost_boards():
    return [Board("brought", Path(__file__).parent), Board("absent", Path("/nowhere")), Board("../x", Path()), "board"]
@hookimpl
def bothost_lobbies(): return [Lobby, Wrong, Nameless]
@hookimpl
def bothost_exporters(): return [Exporter, "csv"]
@hookimpl
def bothost_commands(): return [("brought", print), ("Bad Name", print)]
"""


def test_games_boards_lobbies_exporters_and_commands(tmp_path: Path) -> None:
    (tmp_path / "brings.py").write_text(BRINGS)
    (tmp_path / "board.js").touch()
    plugins = Plugins.load(tmp_path)
    for named in (plugins.games, plugins.boards, plugins.lobbies, plugins.exporters, plugins.commands):
        assert "brought" in named
    assert rules.game("brought", seats=4).num_seats == 4
    causes = " | ".join(failure.cause for failure in plugins.failures)
    for words in (
        "'pairing'",
        "3 is not a pair",
        "Nameless does not implement feed",
        "Wrong.capabilities.games: expected a list, got text",
        "Wrong.capabilities.clock: ",
        "Wrong.capabilities.resume_delivers: ",
        "Wrong.Attributes is <class 'dict'>, not a msgspec Struct",
        "'csv' is not a class",
        "absent has no file /nowhere/board.js",
        "the game of a board is '../x'",
        "'board' is not a board",
        "Bad Name",
    ):
        assert words in causes, words


WRONG = """
from bothost import Strategy, Trainer, hookimpl

class Wrong(Strategy):
    name, version, games = "wrong", "1", ("*",)
    def player(self, table): ...
class Text(Wrong):
    name, evaluators = "text", "evaluator"
class Missing(Wrong):
    name, evaluators = "missing", ("evaluator",)
class Learner(Trainer):
    name, starts_with_version = "learning", True
    def train(self, run, report): ...
class Learning(Wrong):
    name = "learning"
    @classmethod
    def trainer(cls): return Learner

@hookimpl
def bothost_strategies(): return [Text, Missing, Learning]
@hookimpl
def bothost_games(): yield "nothing-at-all", lambda **options: None
@hookimpl
def bothost_exporters(): pass
@hookimpl
def bothost_lobbies(): return Wrong
"""


def test_what_a_plugin_forgot_is_named(tmp_path: Path) -> None:
    (tmp_path / "forgets.py").write_text(WRONG)
    plugins = Plugins.load(tmp_path, entry_points=False)
    told = " | ".join(f"{failure.cause} -> {failure.advice}" for failure in plugins.failures)
    for words in (
        "Text.evaluators is 'evaluator' -> a tuple",
        "Missing.Options has no option 'evaluator', which holds an address -> add the field evaluator",
        "bothost_exporters returned None -> return a list, or yield",
        "bothost_lobbies returned <class 'forgets.Wrong'> -> return a list, or yield",
    ):
        assert words in told, words
    with pytest.raises(PluginError, match=r"Learner\.Options has no option 'start'"):
        trainers_of(plugins.strategies["learning"])
    with pytest.raises(PluginError, match="nothing-at-all: its factory returned None"):
        rules.game("nothing-at-all")


def test_a_name_is_looked_for_no_further_than_to_where_it_is(tmp_path: Path) -> None:
    brings = "from bothost import hookimpl\nasked = []\n@hookimpl\ndef bothost_exporters():\n"
    maker = "    asked.append('{0}')\n    yield type('Exporter', (), {{'name': '{0}'}})\n"
    (tmp_path / "aa_brings.py").write_text(brings + maker.format("one") + maker.format("two"))
    (tmp_path / "bb_brings.py").write_text(brings + maker.format("three") + maker.format("one"))
    plugins = Plugins.load(tmp_path, entry_points=False)
    asked = [cast(Any, plugins.manager.get_plugin(name)).asked for name in ("aa_brings", "bb_brings")]
    assert plugins.exporters["one"].name == "one"
    assert asked == [["one"], []]
    assert "three" in plugins.exporters
    assert asked == [["one", "two"], ["three"]]
    assert "four" not in plugins.exporters
    assert sorted(plugins.exporters) == ["one", "three", "two"]
    assert [failure.cause for failure in plugins.failures] == [
        "exporter 'one' is registered already, by plugin aa_brings"
    ]


def test_a_failing_listener_keeps_no_other_from_hearing(tmp_path: Path) -> None:
    heard = "from bothost import hookimpl\nheard = []\n@hookimpl\ndef bothost_table_closed(event):\n    {}\n"
    (tmp_path / "aa_fails.py").write_text(heard.format("1 / 0"))
    (tmp_path / "bb_hears.py").write_text(heard.format("heard.append(event)"))
    (tmp_path / "cc_fails.py").write_text(heard.format("raise ValueError"))
    plugins, log = Plugins.load(tmp_path), []
    plugins.notify("bothost_table_closed", log.append, event="closed")
    assert sys.modules["bb_hears"].heard == ["closed"]  # type: ignore[attr-defined]
    assert [failure.plugin for failure in log] == ["aa_fails", "cc_fails"]


def test_addresses(tmp_path: Path) -> None:
    (tmp_path / "addressed.py").write_text(GOOD.format(name="a"))
    plugins = Plugins.load(tmp_path)
    resolved = plugins.resolve("good-a:easy", {"patience": 1})
    assert (resolved.level, resolved.model, resolved.options.patience) == ("easy", None, 1.0)
    assert resolved.make().options.patience == 1.0
    with pytest.raises(StrategyNotFound) as missing:
        plugins.resolve("god-a")
    assert missing.value.exit_code == 2 and "'good-a'" in missing.value.advice
    with pytest.raises(VersionNotFound, match="no version or level 'esy'") as level:
        plugins.resolve("good-a:esy")
    assert "'easy'" in level.value.advice
    with pytest.raises(ModelError, match="no version or level 'zzzzzz'") as shipped:
        plugins.resolve("phase-ppo:zzzzzz")
    assert shipped.value.advice.count(" level-1,") == 1
    assert "bothost model list phase-ppo shows all" in shipped.value.advice
    with pytest.raises(ConfigError, match="unknown key") as option:
        plugins.resolve("good-a", {"patence": 1})
    assert option.value.key == "options.patence" and "'patience'" in option.value.advice
    with pytest.raises(ConfigErrors):
        plugins.resolve("good-a", {"patence": 1, "patience": "much"})
    with pytest.raises(ConfigError, match="unknown key"):
        plugins.resolve("random", {"x": 1})


def test_a_strategy_whose_plugin_failed_is_explained(tmp_path: Path) -> None:
    misbehaving.write_broken(tmp_path)
    with pytest.raises(StrategyNotFound) as caught:
        Plugins.load(tmp_path).resolve("import-error")
    assert "failed to load: ModuleNotFoundError" in caught.value.advice
    with pytest.raises(StrategyNotFound) as elsewhere:  # in a plugin of another name
        Plugins.load(tmp_path).resolve("zzzzzz")
    assert re.search(r"see bothost plugin list: .*import_error.* failed to load", elsewhere.value.advice)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_aliases_resolve_in_the_database_then_in_the_package(tmp_path: Path) -> None:
    versions = {"v1": {"files": {"one.onnx": sha(b"one")}, "encoder_version": 7}, "v2": {"files": {"no.onnx": "00"}}}
    package(tmp_path, "weighted", {"aliases": {"champion": "v1", "old": "v0"}, "versions": versions}, one=b"one")
    plugins = Plugins.load(tmp_path)
    for address in ("good-weighted", "good-weighted:champion", "good-weighted:v1"):
        model = plugins.resolve(address).model
        assert model is not None and model.version == "v1" and model.sha256 == sha(b"one")
        assert model.encoder_version == 7 and model.path == str(tmp_path / "weighted" / "weights")
    with pytest.raises(ModelError, match="No such file"):
        plugins.resolve("good-weighted:v2")
    with pytest.raises(ModelError, match="points to 'v0'"):
        plugins.resolve("good-weighted:old")
    registered = Model("good-weighted", "v9", "ff", None)
    plugins.aliases = lambda strategy, alias: registered if alias == "champion" else None
    assert plugins.resolve("good-weighted").model is registered
    model = plugins.resolve("good-weighted:v1").model
    assert model is not None and model.version == "v1"


def test_a_retired_version_says_where_it_is(tmp_path: Path) -> None:
    retired = {"v1": {"files": {"one.onnx": sha(b"one")}, "last_in": "release 0.9", "instead": "v2"}}
    manifest = {"aliases": {"old": "v1"}, "versions": {"v2": {"files": {"two.onnx": sha(b"two")}}}, "retired": retired}
    package(tmp_path, "pensioned", manifest, two=b"two")
    plugins = Plugins.load(tmp_path)
    for alias in ("v1", "old"):
        with pytest.raises(ModelError, match=f"good-pensioned:v1 .{sha(b'one')[:12]}. is retired") as caught:
            plugins.resolve(f"good-pensioned:{alias}")
        assert "release 0.9 has them" in caught.value.advice and "good-pensioned:v2" in caught.value.advice
    strategy = plugins.strategies["good-pensioned"]
    with pytest.raises(ModelError, match="is retired"):
        weights.of_sha256(strategy, sha(b"one"))
    found = weights.of_sha256(strategy, sha(b"two"))
    assert found is not None and found.version == "v2"
    assert weights.of_sha256(strategy, sha(b"three")) is None


def test_packages_ship_the_versions_that_an_alias_names_and_no_others() -> None:
    for name, strategy in Plugins.load().strategies.items():
        known, where = weights.manifest(strategy), weights.folder(strategy)
        if known is None or where is None:
            continue
        assert set(known.versions) == set(known.aliases.values()), name
        assert not known.versions.keys() & known.retired.keys(), name
        assert {path.name for path in where.iterdir() if path.is_dir()} == set(known.versions), name


@pytest.mark.parametrize("name", ["../x.onnx", "/etc/passwd", "a/../../x", "c:\\x", "", "link"])
def test_model_files_stay_inside_the_package_and_are_verified(tmp_path: Path, name: str) -> None:
    module = f"traversal{abs(hash(name))}"
    root = package(tmp_path, module, {"versions": {"v1": {"files": {name: sha(b"x")}}}})
    (tmp_path / "x.onnx").write_bytes(b"x")
    (root / "weights" / "link").symlink_to(tmp_path / "x.onnx")
    with pytest.raises(ModelError, match=r"not allowed|outside"):
        Plugins.load(tmp_path).resolve(f"good-{module}:v1")


def test_a_changed_model_file_is_refused(tmp_path: Path) -> None:
    package(tmp_path, "changed", {"versions": {"v1": {"files": {"one.onnx": sha(b"one")}}}}, one=b"two")
    package(tmp_path, "garbled", {"versions": 3})
    latin = package(tmp_path, "latin", {"versions": {}})
    (latin / "weights" / "manifest.json").write_bytes(b'{"versions": {"\xe9": {}}}')
    plugins = Plugins.load(tmp_path)
    with pytest.raises(ModelError, match=sha(b"two")):
        plugins.resolve("good-changed:v1")
    with pytest.raises(ModelError, match="cannot be read"):
        plugins.resolve("good-garbled:v1")
    with pytest.raises(ModelError, match="cannot be read"):
        plugins.resolve("good-latin:v1")


def with_play(root: Path, play: bytes) -> None:
    """Give a package two versions with the same network, the second with options of play."""
    files = {"one.onnx": sha(b"one"), "play.json": sha(play)}
    versions = {"v1": {"files": {"one.onnx": sha(b"one")}}, "v2": {"files": files}}
    (root / "weights" / "manifest.json").write_text(json.dumps({"versions": versions}))
    (root / "weights" / "play.json").write_bytes(play)


def test_options_of_play_belong_to_a_version_and_give_way_to_given_ones(tmp_path: Path) -> None:
    with_play(package(tmp_path, "playful", one=b"one"), b'{"patience": 2.5}')
    plugins = Plugins.load(tmp_path)
    plain, playful = plugins.resolve("good-playful:v1"), plugins.resolve("good-playful:v2")
    assert (plain.options.patience, playful.options.patience) == (0.5, 2.5)
    assert plain.model is not None and playful.model is not None and plain.model.sha256 != playful.model.sha256
    assert plugins.resolve("good-playful:v2", {"patience": 1.0}).options.patience == 1.0
    with pytest.raises(ConfigError, match="unknown key"):
        plugins.resolve("good-playful:v2", {"patence": 1})


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (b'{"patence": 1}', r"'?patence|unknown key"),
        (b'{"patience": "much"}', "patience"),
        (b'{"patience": 1e999}', "patience|JSON"),
        (b"[1]", "not a JSON object"),
        (b"{", "not a JSON object"),
        (b"\xff", "not a JSON object"),
        (b'{"a":' * 5000, "not a JSON object"),
        (b'{"patience": 1}' + b" " * (64 << 10), "larger than 64 KiB"),
    ],
)
def test_options_of_play_are_hostile_until_checked(tmp_path: Path, play: bytes, told: str) -> None:
    name = f"hostile{sha(play)[:8]}"
    with_play(package(tmp_path, name, one=b"one"), play)
    with pytest.raises(ModelError, match=told):
        Plugins.load(tmp_path).resolve(f"good-{name}:v2")


def test_options_of_play_that_were_changed_are_refused(tmp_path: Path) -> None:
    root = package(tmp_path, "bent", one=b"one")
    with_play(root, b'{"patience": 2.5}')
    plugins = Plugins.load(tmp_path)
    model = plugins.resolve("good-bent:v2").model
    (root / "weights" / "play.json").write_bytes(b'{"patience": 9.5}')
    with pytest.raises(ModelError, match="sha256"):
        plugins.resolve("good-bent:v2")
    with pytest.raises(ModelError, match="was changed"):
        weights.play_options(model)
    (root / "weights" / "play.json").unlink()
    with pytest.raises(ModelError, match="No such file"):
        weights.play_options(model)


def test_the_sha256_of_a_model_of_several_files() -> None:
    assert model_sha256({"a": "11"}) == "11"
    assert model_sha256({"a": "11", "b": "22"}) == model_sha256({"b": "22", "a": "11"}) != "11"


def test_settings_are_checked_against_plugins() -> None:
    plugins = Plugins.load()
    routes = (
        RouteSettings(strategy="randm"),
        RouteSettings(strategy="random", options={"x": 1}),
        RouteSettings(strategy="random", game="chess", fallback="random:v1"),
    )
    with pytest.raises(ConfigErrors) as caught:
        check_settings(msgspec.structs.replace(Settings(), routes=routes), plugins, file="c.toml")
    found = {error.key: error for error in caught.value.errors}
    assert set(found) == {"route[0].strategy", "route[1].options.x", "route[2].game", "route[2].fallback"}
    assert "'random'" in found["route[0].strategy"].advice
    assert all(error.file == "c.toml" and error.exit_code == 78 for error in found.values())

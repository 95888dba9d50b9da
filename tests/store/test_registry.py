"""The model registry: immutable versions, aliases that move and move back, and files that are not trusted."""

import hashlib
import json
import shutil
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.numpy
from onnx import TensorProto, helper, numpy_helper

from bothost import Model, ModelError, Player, Strategy
from bothost.errors import InvalidName
from bothost.plugins import Plugins, weights
from bothost.store import Store, model_files
from bothost.store.registry import AliasMoved, Registry
from bothost_phase_ppo.decide import PhasePpo

VERSIONS = {n: weights.manifest(PhasePpo).aliases[f"level-{n}"] for n in range(1, 6)}
"""Level → the version that comes with the package."""

SOURCE = Path(weights.folder(PhasePpo))
STRATEGIES = Plugins.load().strategies
SHIPPED = [name for name, strategy in STRATEGIES.items() if weights.manifest(strategy) is not None]


@pytest.fixture
def registry(any_settings, tmp_path):
    with Store.open(any_settings) as store:
        yield Registry(store, tmp_path / "models")


@pytest.fixture
def sqlite_registry(settings, tmp_path):
    with Store.open(settings) as store:
        yield Registry(store, tmp_path / "models")


def level(number):
    """Folder and files of a model that comes with the package."""
    name = VERSIONS[number]
    return SOURCE / name, weights.manifest(PhasePpo).versions[name].files


def add(registry, number=1, **more):
    return registry.add(PhasePpo, *level(number), encoder_version=2, lineage={"from": f"level {number}"}, **more)


def test_a_version_is_what_was_added_on_every_host_of_the_database(registry, tmp_path):
    made = add(registry, 2)
    assert (made.version, made.encoder_version, made.lineage) == ("r1", 2, {"from": "level 2"})
    elsewhere = Registry(registry.store, tmp_path / "other-host")
    model = elsewhere.resolve("phase-ppo", "r1")
    assert model == Model("phase-ppo", "r1", made.sha256, str(tmp_path / "other-host" / made.sha256), made.files, 2)
    weights.verify(Path(model.path), model.files)
    assert registry.of_sha256(made.sha256) == made == registry.version("phase-ppo", "r1")
    assert [v.version for v in registry.versions()] == ["r1"] and registry.versions("other") == []


def test_the_same_files_are_the_same_version_and_a_taken_name_is_refused(registry):
    assert add(registry, 1, version="mine").version == "mine"
    assert add(registry, 1).version == "mine"
    assert add(registry, 2).version == "r1"
    with pytest.raises(ModelError, match="exists with other files"):
        add(registry, 3, version="mine")


def test_options_of_play_go_with_a_version_and_those_that_the_strategy_does_not_know_are_refused(registry, tmp_path):
    made = add(registry, 5)
    model = Registry(registry.store, tmp_path / "other-host").resolve("phase-ppo", "r1")
    own = {"playouts": 256, "least_odds": 0.005, "prior": 0.1}
    assert weights.play_options(model) == own == weights.play_options(registry.model(made))
    source, files = level(4)
    for play in (b'{"playout": 64}', b'{"playouts": -1}', b'["playouts"]'):
        bent = tmp_path / hashlib.sha256(play).hexdigest()
        shutil.copytree(source, bent)
        (bent / "play.json").write_bytes(play)
        with pytest.raises(ModelError, match=r"playout|JSON object"):
            registry.add(
                PhasePpo, bent, {**files, "play.json": bent.name}, encoder_version=2, lineage={}, version="bent"
            )
    assert [version.version for version in registry.versions()] == ["r1"]


@pytest.mark.parametrize("name", ["champion", "level-3", "a b", "", "../x", "x:y"])
def test_a_version_cannot_be_named_like_an_alias_or_a_path(sqlite_registry, name):
    with pytest.raises(InvalidName, match="is not a valid version name"):
        add(sqlite_registry, 1, version=name)


def test_a_version_cannot_take_the_name_of_one_of_the_package(sqlite_registry):
    """The champion would be another model without a promotion."""
    sqlite_registry.point(PhasePpo, "champion", VERSIONS[1], reason="better")
    with pytest.raises(ModelError, match="comes with the package"):
        add(sqlite_registry, 2, version=VERSIONS[1])
    assert sqlite_registry.resolve("phase-ppo", "champion") == VERSIONS[1]


def test_aliases_move_forward_and_back_and_keep_their_history(registry):
    for number in (1, 2, 3):
        add(registry, number)
    assert registry.resolve("phase-ppo", "champion") is None  # what the package says counts
    for version in ("r1", "r2", VERSIONS[4]):
        registry.point(PhasePpo, "champion", version, reason="better")
    assert registry.resolve("phase-ppo", "champion") == VERSIONS[4]  # a version of the package
    for expected in ("r2", "r1", None):
        assert registry.back(PhasePpo, "champion", reason="worse").version == expected
    with pytest.raises(ModelError, match="no promotion left to undo"):
        registry.back(PhasePpo, "champion", reason="worse")
    with pytest.raises(ModelError, match="was never moved"):
        registry.back(PhasePpo, "challenger", reason="worse")
    with pytest.raises(InvalidName, match="'champoin' is not an alias") as wrong:
        registry.back(PhasePpo, "champoin", reason="worse")
    assert "did you mean 'champion'" in wrong.value.advice
    registry.point(PhasePpo, "champion", "r3", reason="better")
    assert registry.back(PhasePpo, "champion", reason="worse").version is None
    kinds = [(p.number, p.kind) for p in registry.history("phase-ppo", "champion")]
    assert kinds == [(i, "promote" if i in (1, 2, 3, 7) else "rollback") for i in range(1, 9)]


def test_a_rollback_of_the_champion_restores_the_aliases_that_the_promotion_cleared(registry):
    def now():
        return {a: (p.version, p.share) for (_, a), p in registry.pointers().items()}

    for number in (1, 2, 3):
        add(registry, number)
    registry.promote(PhasePpo, "shadow", "r3", reason="")
    registry.promote(PhasePpo, "challenger", "r1", reason="")
    registry.promote(PhasePpo, "canary", "r1", reason="", share=0.2)
    before = now()
    for _ in range(2):
        registry.promote(PhasePpo, "champion", "r1", reason="better")
        assert now() == dict(champion=("r1", None), challenger=(None, None), canary=(None, None), shadow=("r3", None))
        registry.promote(PhasePpo, "champion", "r2", reason="better")
        registry.back(PhasePpo, "champion", reason="worse")
        assert now()["champion"] == ("r1", None) and now()["challenger"] == (None, None)
        registry.back(PhasePpo, "champion", reason="worse")
        assert now() == before | {"champion": (None, None)}


def test_a_rollback_of_the_champion_leaves_aliases_that_were_moved_since(registry):
    for number in (1, 2):
        add(registry, number)
    registry.point(PhasePpo, "challenger", "r1", reason="")
    registry.promote(PhasePpo, "champion", "r1", reason="")
    registry.promote(PhasePpo, "champion", "r1", reason="again")
    registry.back(PhasePpo, "champion", reason="")
    assert registry.pointers()["phase-ppo", "challenger"].version is None  # this promotion found it cleared
    registry.point(PhasePpo, "challenger", "r2", reason="")
    registry.back(PhasePpo, "champion", reason="")
    assert registry.pointers()["phase-ppo", "challenger"].version == "r2"


def test_an_alias_stands_for_a_version_that_is_there(registry):
    with pytest.raises(ModelError) as caught:
        registry.point(PhasePpo, "champion", "v1-level-6", reason="")
    assert VERSIONS[5] in caught.value.advice
    with pytest.raises(ModelError, match="not an alias"):
        registry.point(PhasePpo, "best", VERSIONS[1], reason="")
    with pytest.raises(ModelError, match="share"):
        registry.point(PhasePpo, "canary", VERSIONS[1], reason="", share=1.5)


def test_of_two_who_move_an_alias_one_is_told(registry):
    add(registry, 1)
    before = registry.point(PhasePpo, "champion", "r1", reason="").number
    registry.point(PhasePpo, "champion", VERSIONS[2], reason="", after=before)
    with pytest.raises(AliasMoved):
        registry.point(PhasePpo, "champion", VERSIONS[3], reason="", after=before)
    said = []

    def move(version):
        try:
            said.append(registry.point(PhasePpo, "level-1", version, reason="", after=0).version)
        except AliasMoved:
            said.append(None)

    threads = [threading.Thread(target=move, args=(VERSIONS[n],)) for n in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(v is None for v in said) == [False, True, True, True]
    assert registry.pointers()["phase-ppo", "level-1"].number == 1


def test_addresses_resolve_in_the_database_first_and_in_the_package_after(sqlite_registry):
    plugins = Plugins.load(aliases=sqlite_registry.resolve)
    add(sqlite_registry, 1)
    assert plugins.resolve("phase-ppo").model.version == VERSIONS[5]
    assert plugins.resolve("phase-ppo:r1").model.version == "r1"
    sqlite_registry.point(PhasePpo, "champion", "r1", reason="")
    assert plugins.resolve("phase-ppo").model.version == "r1"
    sqlite_registry.point(PhasePpo, "champion", VERSIONS[2], reason="")
    assert plugins.resolve("phase-ppo:champion").model.version == VERSIONS[2]
    assert plugins.resolve("phase-ppo:level-3").model.version == VERSIONS[3]


def test_a_copy_that_was_changed_or_cut_short_is_fetched_again(registry):
    made = add(registry)
    path = Path(registry.model(made).path) / "model.safetensors"
    whole = path.read_bytes()
    for damage in (whole[:1000], whole[:-1] + b"!", b""):
        path.write_bytes(damage)
        assert registry.model(made).sha256 == made.sha256 and path.read_bytes() == whole
    assert [entry.name for entry in registry.folder.iterdir()] == [made.sha256]


def test_a_copy_that_cannot_be_stored_names_the_model_and_the_folder(sqlite_registry, tmp_path):
    add(sqlite_registry)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"phase-ppo:r1 cannot be stored in .*/file/models") as caught:
        Registry(sqlite_registry.store, tmp_path / "file/models").resolve("phase-ppo", "r1")
    assert "free space" in caught.value.advice


def test_a_copy_that_one_process_uses_is_not_moved_away_by_another(registry, monkeypatch):
    """All fetch at once, and each goes on with the folder that it got: it stays the same folder."""
    made = add(registry)
    together = threading.Barrier(6)
    check = model_files.check

    def check_together(*args):
        try:
            check(*args)
        finally:
            if not getattr(own, "waited", False):
                own.waited = True
                together.wait(30)  # all have seen that there is no copy

    own = threading.local()
    monkeypatch.setattr(model_files, "check", check_together)
    folders = []

    def fetch():
        path = Path(Registry(registry.store, registry.folder).model(made).path)
        folders.append(path.stat().st_ino)

    threads = [threading.Thread(target=fetch) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 6 and set(folders) == {(registry.folder / made.sha256).stat().st_ino}
    assert [entry.name for entry in registry.folder.iterdir()] == [made.sha256]


def test_content_that_the_database_changed_is_refused(sqlite_registry):
    made = add(sqlite_registry)
    with sqlite_registry.store.begin() as connection:
        connection.exec_driver_sql("UPDATE model_files SET content = zeroblob(length(content))")
    with pytest.raises(ModelError, match="sha256"):
        sqlite_registry.model(made)
    assert not list(sqlite_registry.folder.glob("*"))


def test_another_encoder_version_is_refused_before_anything_is_registered(sqlite_registry):
    with pytest.raises(ModelError, match="encoder version 7"):
        sqlite_registry.add(PhasePpo, *level(1), encoder_version=7, lineage={})
    assert sqlite_registry.versions() == []


def hashes(folder, names):
    return {name: weights.sha256_of(folder / name) for name in names}


def damaged(tmp_path, change):
    """A copy of a model with one change, and a manifest that knows of it."""
    root, files = level(1)
    folder = tmp_path / "damaged"
    shutil.copytree(root, folder)
    change(folder)
    return folder, hashes(folder, files)


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def longer(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes() + b"x")


def huge_header(folder):
    (folder / "model.safetensors").write_bytes((2**60).to_bytes(8, "little") + b"{}")


def infinite_offset(folder):
    header = b'{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 1e999]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def pickled(folder):
    (folder / "model.safetensors").write_bytes(b"\x80\x04\x95" + bytes(100))


def other_shapes(folder):
    safetensors.numpy.save_file({"body.0.weight": np.zeros((3, 3), "f4")}, folder / "model.safetensors")


def no_graph(folder):
    (folder / "model.onnx").write_bytes(b"not a graph")


def outside(folder):
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    for entry in graph.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = "../../../../etc/passwd"
    (folder / "model.onnx").write_bytes(graph.SerializeToString())


def hidden_outside(folder):
    """The reference stands in a node's attribute."""
    tensor = TensorProto(name="x", dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    (folder / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize(
    "change",
    [cut, longer, huge_header, infinite_offset, pickled, other_shapes, no_graph, outside, hidden_outside],
)
def test_files_that_are_not_whole_or_not_safe_are_refused(sqlite_registry, tmp_path, change):
    folder, files = damaged(tmp_path, change)
    with pytest.raises(ModelError) as caught:
        sqlite_registry.add(PhasePpo, folder, files, encoder_version=2, lineage={})
    assert caught.value.advice
    assert sqlite_registry.versions() == []


def poison(path, value):
    """Overwrite a number of the first tensor of numbers with a fraction."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    entries = [entry for name, entry in json.loads(data[8:begin]).items() if name != "__metadata__"]
    entry = next(entry for entry in entries if entry["dtype"] in ("F16", "F32"))
    at, number = begin + entry["data_offsets"][0], np.array([value], f"f{int(entry['dtype'][1:]) // 8}").tobytes()
    path.write_bytes(data[:at] + number + data[at + len(number) :])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SHIPPED)
def test_parameters_that_are_not_finite_are_refused_for_every_strategy_that_ships_weights(
    sqlite_registry, tmp_path, name, value
):
    strategy = STRATEGIES[name]
    shipped = weights.find(strategy, "champion")
    folder = tmp_path / "model"
    shutil.copytree(shipped.path, folder)
    file = next(file for file in shipped.files if file.endswith(".safetensors"))
    poison(folder / file, value)
    files = hashes(folder, shipped.files)
    with pytest.raises(ModelError, match=f"{file} is refused: .* has a number that is NaN or infinite"):
        sqlite_registry.add(strategy, folder, files, encoder_version=shipped.encoder_version, lineage={}, foreign=True)
    assert sqlite_registry.versions() == []


@pytest.mark.parametrize("values", [[np.nan, 0.0], [-np.inf, 0.5], [np.inf, 0.0]])
def test_a_graph_with_a_number_that_is_not_finite_is_refused_with_its_name(tmp_path, values):
    path = graph_with(tmp_path, values)
    with pytest.raises(ModelError, match=r"odd\.onnx is refused: added has a number that is NaN or infinite"):
        model_files.finite(path)


def test_a_mask_of_a_graph_may_be_infinite(tmp_path):
    model_files.finite(graph_with(tmp_path, [-np.inf, 0.0]))


def graph_with(folder, values):
    """A graph that adds these numbers."""
    added = numpy_helper.from_array(np.array(values, "f4"), "added")
    kind = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "added"], ["y"])], "g", kind[:1], kind[1:], [added])
    onnx.save(helper.make_model(graph), str(folder / "odd.onnx"))
    return folder / "odd.onnx"


def test_a_file_of_another_sha256_is_refused(sqlite_registry):
    root, files = level(1)
    with pytest.raises(ModelError, match="sha256"):
        sqlite_registry.add(PhasePpo, root, {**files, "model.onnx": "0" * 64}, encoder_version=2, lineage={})


@pytest.mark.parametrize("name", ["../model.onnx", "/etc/passwd", "a/b.onnx", "model.pkl", "model.pt", ".onnx", ""])
def test_names_that_are_paths_or_programs_are_refused(sqlite_registry, name):
    with pytest.raises(ModelError, match="not allowed"):
        sqlite_registry.add(PhasePpo, SOURCE, {name: "0" * 64}, encoder_version=2, lineage={})


def test_links_are_not_followed(sqlite_registry, tmp_path):
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model.json").symlink_to(tmp_path / "secret")
    sha256 = hashlib.sha256(b"{}").hexdigest()
    with pytest.raises(ModelError, match="not a regular file"):
        sqlite_registry.add(PhasePpo, tmp_path / "folder", {"model.json": sha256}, encoder_version=2, lineage={})


def test_a_file_larger_than_a_part_comes_back_whole(registry, tmp_path):
    class Any(Strategy):
        name, version, games = "any", "1", ("*",)

        def player(self, table) -> Player:
            raise NotImplementedError

    (tmp_path / "big.json").write_text(json.dumps(list(range(1_500_000))))
    files = hashes(tmp_path, ["big.json"])
    made = registry.add(Any, tmp_path, files, encoder_version=None, lineage={})
    path = Path(registry.model(made).path) / "big.json"
    assert path.stat().st_size > 2 * (4 << 20) and path.read_bytes() == (tmp_path / "big.json").read_bytes()


class Opens(Strategy):
    """Needs a file that its models may lack."""

    name, version, games = "opens", "1", ("othello",)

    def __init__(self, options, model=None):
        super().__init__(options, model)
        Path(model.path, "table.json").read_bytes()

    def player(self, table):
        raise NotImplementedError


def test_a_model_that_its_strategy_cannot_load_is_refused_with_the_cause_and_its_place(sqlite_registry, tmp_path):
    (tmp_path / "w.json").write_bytes(b"{}")
    files = {"w.json": hashlib.sha256(b"{}").hexdigest()}
    with pytest.raises(ModelError, match=r"FileNotFoundError: .*table\.json.*\(test_registry\.py:\d+\)"):
        sqlite_registry.add(Opens, tmp_path, files, encoder_version=1, lineage={})

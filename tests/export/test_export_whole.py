"""Whole hands out: Botzone's records are read back as the same hands, and Minari reads its own dataset."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from botzone_matches import GAMES, mahjong_steps, match_log

from bothost import rules
from bothost.cli import main
from bothost.config import load
from bothost.errors import UsageError
from bothost.export.botzone import export_matches
from bothost.export.minari import export_episodes
from bothost.imports.botzone import read
from bothost.imports.job import import_files
from bothost.imports.rebuild import Origin, play
from bothost.plugins import Plugins
from bothost.store import Store
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands, iter_timelines
from bothost.testing.sample_rows import played_hand, write_rows

SCORED = HandQuery(scored=True)
RULES = {
    "doudizhu": [{"preset": "botzone"}, {"preset": "botzone-bid"}, {"preset": "rlcard"}],
    "mahjong": [{}, {"preset": "shared-wall"}, {"preset": "open-mahjong"}],
    "othello": [{}],
    "pairing": [{}],
}


def lines(path: Path, hands: int) -> Path:
    """Hands of every game, by a player that prefers some actions, so that they differ."""
    said = []
    for name, variants in RULES.items():
        for options in variants:
            game = rules.game(name, **options)
            for number in range(hands):
                state = game.new_state(number)
                while not state.terminal:
                    seat = state.to_act[0]
                    legal = state.legal(seat)
                    state.apply(seat, int(legal[(number + len(state.actions)) % len(legal)]))
                hand = {"game": name, "rules": options, "deal": state.deal, "actions": state.actions}
                said.append(
                    json.dumps({**hand, "players": [f"p{i}" for i in range(game.num_seats)], "id": str(number)})
                )
    path.write_text("\n".join(said))
    return path


@pytest.fixture
def store(settings, tmp_path: Path):
    with Store.open(settings) as opened:
        origin = Origin(lobby="imported", format="jsonl", file="", line=0)
        done = import_files(opened, "jsonl", [lines(tmp_path / "hands.jsonl", 5)], origin)
        assert (done.imported, done.broken) == (40, [])
        yield opened


def test_matches_are_read_back_as_the_same_hands(store, tmp_path: Path):
    info = export_matches(store, SCORED, tmp_path / "out")
    assert info["matches"]["Chinese-Standard-Mahjong"] == info["matches"]["Reversi"] == 5
    assert info["matches"]["FightTheLandlord"] + info["matches"].get("FightTheLandlord2", 0) >= 10
    left_out = info["left_out"]
    assert left_out["of a game that Botzone does not have"] == 5
    assert left_out["with flowers"] == left_out["with one wall for all seats"] == 5
    assert sum(info["matches"].values()) + sum(left_out.values()) == 40
    found = list(read(tmp_path / "out" / "matches.jsonl"))
    assert len(found) == sum(info["matches"].values())
    logged = {hand.game.game_id.hex(): hand for hand in iter_hands(store)}
    for each in found:
        assert each.record is not None, each.why
        hand = logged[each.record.source]
        state = play(each.record).state
        assert state.game.name == hand.game.game
        signs = [np.sign(score) for score in state.returns]
        assert signs == [np.sign(score) for score in hand.scores]
        assert [who.player for who in each.record.players] == [f"p{i}" for i in range(state.game.num_seats)]
    with pytest.raises(UsageError, match="exists already"):
        export_matches(store, SCORED, tmp_path / "out")


def test_a_mahjong_match_says_every_action(store, tmp_path: Path):
    export_matches(store, HandQuery(games=("mahjong",)), tmp_path / "out")
    logged = {t.hand.game.game_id.hex(): [] for t in iter_timelines(store, iter_hands(store))}
    for timeline in iter_timelines(store, iter_hands(store)):
        logged[timeline.hand.game.game_id.hex()] += [(row.at_us, row.seat, row.action) for row in timeline.decisions]
    for each in read(tmp_path / "out" / "matches.jsonl"):
        assert list(each.record.actions) == [(seat, action) for _, seat, action in sorted(logged[each.record.source])]


def test_real_games_of_mahjong_go_out_as_they_came_in(settings, tmp_path: Path):
    games = [game for game in GAMES if "gang" in game["rounds"]]
    came = [match_log(mahjong_steps(game), initdata={"walltiles": game["wall"]}) for game in games]
    (tmp_path / "came.jsonl").write_text("\n".join(map(json.dumps, came)))
    with Store.open(settings) as opened:
        origin = Origin(lobby="imported", format="botzone", file="", line=0)
        assert import_files(opened, "botzone", [tmp_path / "came.jsonl"], origin).imported == len(games)
        export_matches(opened, SCORED, tmp_path / "out")
    went = [json.loads(line) for line in (tmp_path / "out" / "matches.jsonl").read_text().splitlines()]
    assert sorted(map(asked, went)) == sorted(map(asked, came))


def asked(match: dict) -> list[list[str]]:
    """The requests of the judge."""
    outputs = [entry["output"] for entry in match["logs"] if "output" in entry]
    return [list(output["content"].values()) for output in outputs[:-1]]


def test_minari_reads_its_dataset_back(store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    minari = pytest.importorskip("minari")
    out = tmp_path / "datasets"
    query = HandQuery(scored=True, games=("doudizhu", "othello", "pairing"))
    info = export_episodes(store, query, out)
    assert {name: d["episodes"] for name, d in info["datasets"].items()} == {
        **{f"bothost/doudizhu{n}-v0": 15 for n in ("", "-2", "-3")},
        "bothost/othello-v0": 10,
        "bothost/pairing-v0": 10,
    }
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(out))
    timelines = {(t.hand.game.game_id.hex(), t.hand.game.seat): t for t in iter_timelines(store, iter_hands(store))}
    seen = 0
    for name, made in info["datasets"].items():
        dataset = minari.load_dataset(name)
        assert (dataset.total_episodes, dataset.total_steps) == (made["episodes"], made["steps"])
        for episode, about in zip(
            dataset.iterate_episodes(), dataset.storage.get_episode_metadata(range(made["episodes"])), strict=True
        ):
            options = about.get("options", about)
            key = _text(options["game_id"]), int(options["seat"])
            timeline = timelines[key]
            game = rules.game(timeline.hand.game.game, **json.loads(timeline.hand.game.rules))
            assert episode.actions.tolist() == [row.action for row in timeline.decisions]
            assert episode.rewards.tolist() == [0.0] * (len(episode) - 1) + [timeline.hand.scores[key[1]]]
            assert episode.terminations.tolist() == [False] * (len(episode) - 1) + [True]
            assert not episode.truncations.any()
            assert len(episode.observations) == len(episode) + 1
            blocks = sorted(n for n, block in game.blocks.items() if block.of == "view")
            for row, observed in list(zip(timeline.decisions, episode.observations, strict=False))[:2]:
                view = game.view_from_bytes(row.view)
                assert (np.concatenate([view.encode(n).ravel() for n in blocks]) == observed).all()
            if game.num_actions <= 512:
                mask = episode.infos["action_mask"]
                assert np.flatnonzero(mask[0]).tolist() == np.frombuffer(timeline.decisions[0].legal, "<i4").tolist()
                assert not mask[-1].any()
            seen += 1
    assert seen == sum(made["episodes"] for made in info["datasets"].values())
    with pytest.raises(UsageError, match="not empty"):
        export_episodes(store, SCORED, out)


def test_hands_that_cannot_be_told_are_counted_by_reason(store, tmp_path: Path):
    pytest.importorskip("minari")
    keys = sorted({hand.game.game_id for hand in iter_hands(store, HandQuery(games=("othello",)))})
    with store.begin(writes=True) as connection:
        for change, key in zip(
            (
                "UPDATE games SET game = 'elsewhere' WHERE game_id = ?",
                "UPDATE events SET seq = 1 WHERE game_id = ?",
                "UPDATE events SET events = substr(events, 1, instr(events, char(10)) - 1) WHERE game_id = ?",
                "UPDATE decisions SET view = x'00' WHERE game_id = ?",
                "DELETE FROM decisions WHERE game_id = ?",
            ),
            keys,
            strict=True,
        ):
            connection.exec_driver_sql(change, (key,))
    query = HandQuery(games=("othello", "elsewhere"))
    matches = export_matches(store, query, tmp_path / "matches")
    untold = {"of a game that is not installed": 1, "with a gap in their events": 1, "that were never revealed": 1}
    assert (matches["matches"], matches["left_out"]) == ({"Reversi": 2}, untold)
    info = export_episodes(store, query, tmp_path / "episodes")
    reasons = ("of a game that is not installed", "with a gap in their events", "whose views cannot be decoded")
    assert info["left_out"] == dict.fromkeys((*reasons, "without a decision"), 2)
    assert info["datasets"]["bothost/othello-v0"]["episodes"] == 2


def test_a_hand_that_one_of_our_seats_can_tell_is_not_counted_as_left_out(store, tmp_path: Path):
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE events SET seq = 1 WHERE seat = 0")
    found = export_matches(store, HandQuery(games=("othello",)), tmp_path / "out")
    assert (found["matches"], found["left_out"]) == ({"Reversi": 5}, {})


def test_a_hand_without_a_score_of_our_seat_is_left_out(store, tmp_path: Path):
    pytest.importorskip("minari")
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE game_ends SET scores = '[1]'")
    info = export_episodes(store, HandQuery(scored=True, games=("othello",)), tmp_path / "out")
    assert info["datasets"]["bothost/othello-v0"]["episodes"] == 5 and info["left_out"] == {"without a score": 5}


def test_a_dataset_of_a_family_has_a_name_that_minari_takes(settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pyspiel")
    Plugins.load()
    minari = pytest.importorskip("minari")
    path = tmp_path / "hands.jsonl"
    steps = [[turn % 2, str(turn)] for turn in range(7)]
    path.write_text(json.dumps({"game": "openspiel:tic_tac_toe", "actions": steps}))
    with Store.open(settings) as store:
        assert import_files(store, "jsonl", [path], Origin(lobby="imported", format="jsonl", file="", line=0)).imported
        written = export_episodes(store, SCORED, tmp_path / "out")["datasets"]
    assert list(written) == ["bothost/openspiel-tic_tac_toe-v0"]
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "out"))
    assert minari.load_dataset("bothost/openspiel-tic_tac_toe-v0").total_episodes == 2


def test_a_full_disk_is_named_and_leaves_nothing(store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """HDF5 would end the process."""
    pytest.importorskip("minari")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1 << 20))
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match="No space left on device") as caught:
        export_episodes(store, HandQuery(scored=True, games=("pairing",)), tmp_path / "out")
    assert caught.value.filename == str(tmp_path / "out") and set(tmp_path.iterdir()) == before


def test_blocks_of_the_observations_may_be_chosen(store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    minari = pytest.importorskip("minari")
    query = HandQuery(scored=True, games=("mahjong",))
    export_episodes(store, query, tmp_path / "out", blocks=("numbers", "integers"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "out"))
    dataset = minari.load_dataset("bothost/mahjong-v0")
    assert dataset.observation_space.shape == (34 + 13 * 4 * 34,)
    assert dataset.storage.metadata["bothost_blocks"] == [["numbers", 1], ["integers", 1]]
    with pytest.raises(UsageError, match="no view block 'hidden'"):
        export_episodes(store, query, tmp_path / "other", blocks=("hidden",))
    assert not list(tmp_path.glob("*other*"))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    pytest.importorskip("minari")
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    assert main(["import", "jsonl", str(lines(tmp_path / "hands.jsonl", 1))]) == 0
    capsys.readouterr()
    assert main(["export", "--format", "botzone", "--out", "bz", "--game", "othello"]) == 0
    assert "1 match of Reversi" in capsys.readouterr().out
    assert main(["export", "--format", "minari", "--out", "mi", "--game", "othello", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"]["bothost/othello-v0"]["episodes"] == 2
    assert main(["export", "--format", "minari", "--out", "mi"]) == 2
    assert main(["export", "--format", "minari", "--out", "数据 2", "--game", "othello"]) == 0
    assert "MINARI_DATASETS_PATH='数据 2' python -c 'import minari" in capsys.readouterr().out
    assert main(["export", "--format", "botzone", "--pseudonyms", "--out", "nameless", "--game", "othello"]) == 0
    text = (tmp_path / "nameless" / "matches.jsonl").read_text()
    assert '"p0"' not in text and '"player-' in text
    assert main(["export", "--format", "botzone", "--raw", "--out", "other"]) == 2
    assert main(["export", "--format", "botzone", "--out", "none", "--game", "mahjong"]) == 0
    assert main(["export", "--format", "botzone", "--out", "unknown", "--game", "chess"]) == 2
    assert load().store.url


def test_a_hand_is_written_once_and_later_ones_of_the_same_name_too(settings, tmp_path):
    hands = []
    for after_s, seat in ((0, 0), (40, 1), (90, 0), (3600, 1)):
        rows = played_hand(rules.game("othello"), 1, seat=seat, started_us=1_700_000_000_000_000 + after_s * 10**6)
        rows[0].table = "table-1"
        hands.append(rows)
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        found = export_matches(store, SCORED, tmp_path / "out")
    assert found["matches"] == {"Reversi": 3} and found["left_out"] == {}

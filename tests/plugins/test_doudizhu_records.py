"""Records of doudizhu-mcts: what is collected, that collecting resumes, and what logged games give."""

from concurrent.futures import Executor, Future

import numpy as np
import pytest

from bothost import TrainingRun, cli
from bothost.config import StoreSettings
from bothost.errors import ConfigError, UsageError
from bothost.plugins import check_options
from bothost.rules import game
from bothost.store import DecisionRecord, OutcomeRecord, schema
from bothost.testing.sample_rows import played_hand, write_rows
from bothost_doudizhu_mcts import records
from bothost_doudizhu_mcts.ahead import in_order
from bothost_doudizhu_mcts.collect import Collector, Options, SelfPlay
from bothost_doudizhu_mcts.samples import gather

GAME = game("doudizhu")
QUICK = Options(iterations=8, workers=2)


def collect(out, *, seed=1, resume=False, **options):
    told = []
    run = TrainingRun(out=out, seed=seed, resume=resume, command="collect")
    figures = Collector(Options(**{"iterations": 8, "workers": 2, **options})).train(
        run, lambda *args: told.append(args)
    )
    return figures, told


def same(one, other):
    assert one.deals == other.deals and one.views == other.views
    for name in ("offsets", "actions", "values", "visits"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_hand_is_a_function_of_its_number():
    first, again, other = (SelfPlay(QUICK, 1).hand(number) for number in (0, 0, 1))
    assert first.columns == again.columns != other.columns


def test_an_evaluator_values_the_leaves_of_a_collection():
    asked = []

    class Worth:
        def action_values(self, views, legal):
            asked.extend(views)
            return [np.full(len(actions), 0.25, np.float32) for actions in legal]

    batch = SelfPlay(QUICK, 1, Worth()).hand(0)
    playouts = SelfPlay(QUICK, 1).hand(0)
    assert asked and batch.columns != playouts.columns
    assert set(np.round(np.abs(playouts.columns["value"]), 3)) != {0.25}
    searched = np.abs(batch.columns["value"])
    assert 0.25 in np.round(searched, 3) and np.mean(np.isclose(searched, 0.25)) > 0.3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"preset": "eight-cards"}, "preset"),
        ({"search": {"explore": 1}}, "no option"),
        ({"search": {"exploration": -1}}, "is not within"),
        ({"search": {"leaf": "evaluator"}}, "needs an evaluator"),
    ],
)
def test_rules_and_searches_that_do_not_exist_are_refused_before_a_collection(wrong, words):
    with pytest.raises(ConfigError, match=words):
        check_options(Collector, wrong)


def test_only_contested_positions_are_searched():
    """Here the lowest action is the best of each position, by 0.5."""

    class Lowest:
        def action_values(self, views, legal):
            return [np.where(actions == actions[0], 0.5, 0.0).astype(np.float32) for actions in legal]

    def hand(contested):
        options = Options(iterations=8, evaluator="lowest", forced_share=0.0, contested=contested)
        return SelfPlay(options, 1, Lowest()).hand(0)

    assert not len(hand(0.4)) and len(hand(0.6)) == len(hand(None)) > 0


def test_records_are_what_the_search_found_of_legal_moves(tmp_path):
    figures, told = collect(tmp_path / "r", records=300)
    found = records.load(tmp_path / "r")
    assert len(found.actions) == figures["records"] >= 300 and told[-1][0] == 300
    assert len(set(found.deals)) == figures["hands"]
    several = 0
    for position in range(len(found)):
        part = slice(found.offsets[position], found.offsets[position + 1])
        view = found.view(position)
        assert view.asked and set(found.actions[part]) <= set(view.legal())
        assert found.visits[part].sum() == 8 and (found.visits[part] > 0).all()
        several += len(view.legal()) > 1
    assert 0.5 < several / len(found) < 1.0  # some positions without a choice are among them
    assert np.abs(found.values).max() <= 1.0 and found.values.std() > 0.1


def test_a_collection_that_was_stopped_goes_on_as_if_it_had_not(tmp_path):
    collect(tmp_path / "once", records=900)
    collect(tmp_path / "twice", records=300)
    figures, _ = collect(tmp_path / "twice", records=900, resume=True, workers=1)
    same(records.load(tmp_path / "once"), records.load(tmp_path / "twice"))
    assert figures["records"] >= 900 and len(records.files(tmp_path / "twice")) == 2
    again, _ = collect(tmp_path / "twice", records=900, resume=True)  # there is nothing left to do
    assert {**again, "minutes": 0} == {**figures, "minutes": 0}

    with pytest.raises(UsageError, match="is not empty"):
        collect(tmp_path / "once", records=900)
    with pytest.raises(UsageError, match="was collected with other settings"):
        collect(tmp_path / "once", records=900, resume=True, seed=2)
    with pytest.raises(UsageError, match="was collected with other settings"):
        collect(tmp_path / "once", records=900, resume=True, iterations=9)
    with pytest.raises(UsageError, match="no stopping condition"):
        collect(tmp_path / "new")


def test_it_stops_when_the_time_is_over(tmp_path):
    run = TrainingRun(out=tmp_path, minutes=0.01, command="collect")
    figures = Collector(QUICK).train(run, lambda *_: None)
    assert figures["records"] > 0 and figures["minutes"] < 0.5


def test_what_waits_is_not_played_after_a_failure():
    submitted = []

    class Pool(Executor):
        def submit(self, work, number):
            submitted.append(Future())
            if number == 0:
                submitted[0].set_exception(OSError("the disk is full"))
            return submitted[-1]

    pool = Pool()
    with pytest.raises(OSError, match="full"):
        next(in_order(lambda number: pool.submit(abs, number), range(100), 4))
    assert [future.cancelled() for future in submitted] == [False, True, True, True]


def test_deals_are_held_out_whole_and_whatever_else_there_is(tmp_path):
    for seed in (1, 2):
        collect(tmp_path / str(seed), records=600, seed=seed)
    whole, part = records.load(tmp_path), records.load(tmp_path / "2")
    held = dict(zip(whole.deals, whole.held_out(0.5), strict=True))
    assert {*held.values()} == {True, False}
    assert all(held[deal] == out for deal, out in zip(whole.deals, whole.held_out(0.5), strict=True))
    assert all(held[deal] == out for deal, out in zip(part.deals, part.held_out(0.5), strict=True))
    assert not whole.held_out(0.0).any() and whole.held_out(1.0).all()


def test_a_file_that_is_no_records_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there are no records"):
        records.load(tmp_path)
    (tmp_path / "records-0000000.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="is not a file of records"):
        records.load(tmp_path)
    records.write(tmp_path / "records-0000000.parquet", records.Batch(), GAME.rules, {})
    with pytest.raises(UsageError, match="there are no records"):
        records.load(tmp_path)
    batch = SelfPlay(QUICK, 1).hand(0)
    records.write(tmp_path / "records-0000000.parquet", batch, {"bid": 1}, {})  # rules that there are not
    with pytest.raises(UsageError, match=r"records-0000000\.parquet is not a file of records"):
        records.load(tmp_path)
    records.write(tmp_path / "records-0000000.parquet", batch, GAME.rules, {})
    data = bytearray((tmp_path / "records-0000000.parquet").read_bytes())
    data[60:1200:3] = bytes(byte ^ 0x5A for byte in data[60:1200:3])
    (tmp_path / "records-0000000.parquet").write_bytes(data)
    with pytest.raises(UsageError, match=r"records-0000000\.parquet is not a file of records"):
        records.load(tmp_path)


@pytest.mark.parametrize(
    ("view", "action"), [(b"\xff" * 5, 0), (None, GAME.num_actions)], ids=["of no view", "of no action"]
)
def test_a_record_of_no_position_is_refused(tmp_path, view, action):
    state = GAME.new_state(1)
    batch = records.Batch()
    batch.add("a", 0, view or state.view(state.to_act[0]).to_bytes(), [(action, 1, 1.0)])
    records.write(tmp_path / "records-0000000.parquet", batch, GAME.rules, {})
    with pytest.raises(UsageError, match="a record cannot be read"):
        gather(records.load(tmp_path), [0], [np.arange(1)], 10.0)


@pytest.mark.parametrize(("column", "wrong"), [("value", float("nan")), ("value", float("inf")), ("visits", 0)])
def test_a_record_without_a_value_or_visits_is_refused_with_its_file(tmp_path, column, wrong):
    batch = records.Batch()
    batch.add("a", 0, GAME.new_state(1).view(0).to_bytes(), [(0, 1, 1.0)])
    batch.columns[column] = [wrong]
    records.write(tmp_path / "records-0000000.parquet", batch, GAME.rules, {})
    with pytest.raises(UsageError, match=r"records-0000000\.parquet is not a file of records"):
        records.load(tmp_path)


def test_logged_games_give_the_results_of_the_moves_that_were_played(tmp_path, monkeypatch):
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(settings)

    hands = [played_hand(GAME, i, seat=i % 3, account="ada", started_us=1_700_000_000_000_000 + i) for i in range(6)]
    made = [row for rows in hands for row in rows if isinstance(row, DecisionRecord)]
    refused = next(row for row in made if row.phase == "play")
    hands.append([OutcomeRecord(refused.id, "rejected", "late", refused.at_us)])
    write_rows(settings, tmp_path, hands)
    config = tmp_path / "config.toml"
    config.write_text(f'[store]\nurl = "{settings.url}"\n')
    assert cli.main(["export", "--out", str(tmp_path / "exports"), "--config", str(config)]) == 0
    out = tmp_path / "logged"
    figures = Collector(Options(exports=str(tmp_path / "exports"))).train(TrainingRun(out=out), lambda *_: None)
    found = records.load(out)
    assert len(found) == len(found.actions) == figures["records"] > 30
    assert len(found) == sum(row.phase == "play" for row in made) - 1 and refused.view not in found.views
    assert len(set(found.deals)) == 6 and (found.visits == 1).all() and set(found.values) == {-1.0, 1.0}
    assert all(found.view(i).is_legal(int(found.actions[i])) for i in range(len(found)))
    with pytest.raises(UsageError, match="no export"):
        Collector(Options(exports=str(tmp_path / "spool"))).train(TrainingRun(out=tmp_path / "x"), lambda *_: None)

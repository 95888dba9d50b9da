"""``bothost replay``: views, encodings and outputs come out bit for bit; another model's as a difference."""

import json
import math
import types

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa

from bothost import Budget, Decision, ModelError, Player, Strategy, Table, hookimpl, rules
from bothost.cli import main
from bothost.errors import ConfigErrors, PluginError, StoreError
from bothost.plugins import Plugins, weights
from bothost.retrain.replay import Replayer
from bothost.store import models
from bothost.store.reader import LoggedHand, Timeline, iter_hands, iter_timelines
from bothost.store.records import OutcomeRecord
from bothost.testing import misbehaving
from bothost_phase_ppo.decide import PhasePpo

SET = weights.manifest(PhasePpo).aliases["level-1"].rpartition("-")[0]
"""What the versions of the weaker levels are called, but for their number."""


@pytest.fixture
def replayer(tools):
    made = Replayer(tools.plugins, tools.registry)
    yield made
    made.close()


def timelines(tools):
    return list(iter_timelines(tools.store, iter_hands(tools.store)))


def all_of(replayer, tools, other=None):
    return [found for timeline in timelines(tools) for found in replayer.hand(timeline, other)]


def test_every_decision_comes_out_as_it_was_logged_whoever_is_champion_now(replayer, tools):
    tools.registry.point(PhasePpo, "champion", f"{SET}-1", reason="")
    found = all_of(replayer, tools)
    assert len(found) > 200 and all(item.exact for item in found)
    assert all(item.distance == 0.0 and item.differences == () for item in found)


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_model_replays_with_the_options_of_play_that_it_brings(replayer, tools, log_hand):
    strategy = tools.plugins.resolve("phase-ppo:level-5").make()
    log_hand(strategy, seed=99)
    found = [item for item in all_of(replayer, tools) if item.model_sha256 == strategy.model.sha256]
    assert len(found) > 10 and all(item.exact for item in found)
    with tools.store.begin() as connection:
        query = sa.select(models.decisions.c.stats).where(models.decisions.c.model_sha256 == strategy.model.sha256)
        logged = [json.loads(stats) for stats in connection.scalars(query) if stats]
    assert sum(stats["playouts"] > 0 for stats in logged) > 5 and any("leads" in stats for stats in logged)


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_move_that_was_drawn_is_drawn_again_whatever_the_options_are_now(replayer, tools, log_hand):
    log_hand(tools.plugins.resolve("phase-ppo:level-3", {"temperature": 1.0}).make(), seed=99)
    found = [item for item in all_of(replayer, tools) if item.strategy == "phase-ppo" and item.model_sha256]
    drawn = {item.model_sha256 for item in found} - {timelines(tools)[0].decisions[0].model_sha256}
    assert len(drawn) == 1 and all(item.exact for item in found)
    now = Replayer(tools.plugins, tools.registry, {"phase-ppo": {"temperature": 5.0}})
    again = [item for item in all_of(now, tools) if item.model_sha256 in drawn]
    assert len(again) > 10 and all(item.exact for item in again)
    now.close()


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("other", [None, "phase-ppo:level-2"])
def test_a_move_that_the_lobby_refused_is_not_open_again(replayer, tools, other):
    timeline = next(iter(timelines(tools)))
    first = next(row for row in timeline.decisions if len(row.legal) > 4 * 3)
    legal = np.frombuffer(first.legal, "<i4")
    view = rules.game("pairing").view_from_bytes(first.view)
    player = tools.plugins.resolve("phase-ppo:level-2").make().player(seat_of(timeline))
    made = player.decide(view, legal[legal != first.action], Budget(math.inf))
    second = msgspec.structs.replace(
        first,
        id=bytes(16),
        attempt=1,
        legal=legal[legal != first.action].astype("<i4").tobytes(),
        action=made.action,
        notation=view.notation(made.action),
        policy=np.array(made.policy, "<f4").tobytes(),
    )
    at = timeline.decisions.index(first) + 1
    refused = msgspec.structs.replace(
        timeline,
        decisions=[*timeline.decisions[:at], second, *timeline.decisions[at:]],
        outcomes={first.id: [OutcomeRecord(first.id, "rejected", None, 0)]},
    )
    found = list(replayer.hand(refused, other))
    assert [item.attempt for item in found[at - 1 : at + 1]] == [0, 1]
    assert all(item.exact for item in found)


class ListeningPlayer(Player):
    def __init__(self, table):
        self.table, self.heard = table, []

    def observe(self, events):
        self.heard += events

    def decide(self, view, legal, budget):
        assert view.seq == len(self.heard)
        return Decision(action=int(legal[0]), stats={"reasons": [self.table.level, *self.heard]})


class Listening(Strategy):
    name, version, games, wants_events, levels = "listening", "1", ("*",), True, ("hard",)

    def player(self, table):
        return ListeningPlayer(table)


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_player_receives_the_events_and_the_level_of_its_table(tools):
    module = types.ModuleType("listening")
    module.bothost_strategies = hookimpl(specname="bothost_strategies")(lambda: [Listening])
    replayer = Replayer(Plugins.load(modules=[module]), None)
    timeline = next(iter(timelines(tools)))
    game = msgspec.structs.replace(timeline.hand.game, attributes='{"strategy_level": "hard"}')
    found = list(
        replayer.hand(msgspec.structs.replace(timeline, hand=LoggedHand(game, timeline.hand.end)), "listening")
    )
    assert len(found) > 10
    assert all(item.again.reasons == ["hard", *timeline.lines()[: item.seq]] for item in found)
    replayer.close()


class ListsItsStats(Strategy):
    name, version, games = "lists-its-stats", "1", ("*",)

    def player(self, table):
        made = ListeningPlayer(table)
        made.decide = lambda view, legal, budget: Decision(action=int(legal[0]), stats=["no mapping"])
        return made


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_stats_that_are_no_mapping_have_no_reasons(tools):
    """The log takes them as they are, so they are read as they are."""
    module = types.ModuleType("lists_its_stats")
    module.bothost_strategies = hookimpl(specname="bothost_strategies")(lambda: [ListsItsStats])
    replayer = Replayer(Plugins.load(modules=[module]), None)
    found = list(replayer.hand(next(iter(timelines(tools))), "lists-its-stats"))
    assert len(found) > 10 and all(item.again.reasons is None for item in found)
    replayer.close()


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["crash", "exit", "player", "no-decision", "fraction", "close"])
def test_a_strategy_that_fails_is_named(tools, name):
    replayer = Replayer(Plugins.load(modules=[misbehaving]), None)
    with pytest.raises(PluginError, match=f"plugin misbehaving-{name}: "):
        all_of(replayer, tools, f"misbehaving-{name}")
    replayer.close()


def seat_of(timeline):
    record = timeline.hand.game
    game = rules.game(record.game)
    return Table(lobby=record.lobby, table=record.table, game=game, seat=record.seat, seed=record.seed)


def test_another_model_is_told_as_a_difference(replayer, tools):
    same = all_of(replayer, tools, "phase-ppo:level-2")
    assert all(item.exact for item in same)  # the one that played
    other = all_of(replayer, tools, "phase-ppo:level-4")
    assert all(item.view_exact for item in other) and not any(item.exact for item in other if len(item.legal) > 1)
    assert any(item.again.action != item.logged.action for item in other)
    assert all(0.0 <= item.distance <= 1.0 + 1e-6 for item in other)


def test_the_farthest_disagreements_are_found(replayer, tools):
    figures, farthest = replayer.disagreements(timelines(tools), "phase-ppo:level-4", 5, lambda done: None)
    other = all_of(replayer, tools, "phase-ppo:level-4")
    assert figures["decisions"] == len(other)
    assert figures["same_action"] == sum(i.again.action == i.logged.action for i in other) / len(other)
    assert [i.distance for i in farthest] == sorted((i.distance for i in other), reverse=True)[:5]


def change(tools, **values):
    with tools.store.begin() as connection:
        connection.execute(sa.update(models.decisions).values(**values))


def test_a_log_that_was_changed_does_not_come_out(replayer, tools):
    change(tools, value=models.decisions.c.value + 1.0)
    assert all(item.differences == ("value",) for item in all_of(replayer, tools))
    change(tools, state_hash=0)
    assert not any(item.view_exact for item in all_of(replayer, tools))


def test_fallbacks_are_not_asked_and_a_model_that_is_gone_is_named(replayer, tools):
    change(tools, fallback="late")
    assert all(item.again is None and "late" in item.note for item in all_of(replayer, tools))
    change(tools, fallback=None, model_sha256="0" * 64)
    with pytest.raises(ModelError, match="neither in the registry"):
        all_of(replayer, tools)


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_of_programs_the_command_is_asked_for_and_a_routed_first_legal_is_no_fallback(replayer, tools):
    change(tools, strategy="exec", model_sha256=None)
    assert all(item.again is None and "--model exec:COMMAND" in item.note for item in all_of(replayer, tools))
    change(tools, strategy="first-legal")
    assert all(item.again.action == item.legal[0] and not item.note for item in all_of(replayer, tools))


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_command_in_the_log_is_not_run(replayer, tools, tmp_path):
    """Who restores a stranger's backup runs none of its programs."""
    change(tools, strategy=f"exec:touch {tmp_path}/planted", model_sha256=None)
    assert all(item.again is None and "--model exec:COMMAND" in item.note for item in all_of(replayer, tools))
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_language_model_is_not_asked_and_paid_again_unless_it_is_named(replayer, tools):
    change(tools, strategy="llm-player", model_sha256=None)
    assert all(item.again is None and "--model llm-player" in item.note for item in all_of(replayer, tools))
    with pytest.raises(ConfigErrors, match="url"):
        all_of(replayer, tools, "llm-player")


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_decision_of_a_retired_model_names_the_commit_that_has_it(replayer, tools):
    manifest = weights.manifest(PhasePpo)
    version, retired = next(iter(manifest.retired.items()))
    change(tools, model_sha256=weights.model_sha256(retired.files))
    with pytest.raises(ModelError, match=f"phase-ppo:{version} .* is retired") as caught:
        all_of(replayer, tools)
    assert retired.last_in in caught.value.advice and "commit" in retired.last_in


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_hands_of_a_game_that_is_not_installed_are_skipped(replayer, tools):
    made = list(timelines(tools))
    made[0] = Timeline(
        LoggedHand(msgspec.structs.replace(made[0].hand.game, game="elsewhere"), made[0].hand.end),
        *(getattr(made[0], name) for name in ("decisions", "events", "snapshots", "outcomes")),
    )
    figures, _ = replayer.disagreements(made, "phase-ppo:level-4", 1, lambda done: None)
    assert figures["decisions"] == sum(len(each.decisions) for each in made[1:])
    with pytest.raises(StoreError, match="the game elsewhere of this hand cannot be loaded"):
        list(replayer.hand(made[0]))


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_the_command_finds_where_two_models_disagree_most(replayer, tools, any_settings, tmp_path, capsys):
    (tmp_path / "config.toml").write_text(f'[host]\ndata_dir = "."\n[store]\nurl = "{any_settings.url}"\n')

    def replay(*words):
        code = main(["replay", *words, "--config", str(tmp_path / "config.toml")])
        return code, *capsys.readouterr()

    since = ["--all-since", "2023-01-01"]
    code, out, err = replay(*since, "--model", "phase-ppo:level-4", "--top", "5", "--json")
    assert code == 0, err
    found = json.loads(out)
    figures, farthest = replayer.disagreements(timelines(tools), "phase-ppo:level-4", 5, lambda done: None)
    assert {key: found[key] for key in figures} == figures and figures["decisions"] > 200
    assert [item["id"] for item in found["farthest"]] == [item.id for item in farthest]
    assert found["farthest"][0]["distance"] == farthest[0].distance > 0.1
    # For people: the figures, and a line for each disagreement with what was played and what would have been.
    code, out, _ = replay(*since, "--model", "phase-ppo:level-4", "--top", "5")
    lines = out.splitlines()
    said = f"{figures['decisions']:,} decisions: phase-ppo:level-4 would have chosen the same action"
    assert code == 0 and said in lines[0]
    assert len(lines) == 2 + 5 and lines[2].startswith(farthest[0].id) and f"{farthest[0].distance:.4f}" in lines[2]
    # The same model disagrees nowhere, another strategy has decided nothing, the far future holds no hand.
    same = json.loads(replay(*since, "--model", "phase-ppo:level-2", "--json")[1])
    assert same["same_action"] == 1.0 and same["farthest"] == []
    assert replay(*since, "--model", "deep-mc")[1].startswith("no decisions")
    assert json.loads(replay("--all-since", "2040-01-01", "--model", "phase-ppo", "--json")[1])["decisions"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all-since", "7d"], "needs --model"),
        (["--all-since", "last week", "--model", "phase-ppo"], "7d"),
        (["--all-since", "7d", "--model", "phase-ppo:level-9"], "no version or level"),
        (["--all-since", "7d", "--model", "nobody"], "there is no"),
        (["--all-since", "7d", "--model", "phase-ppo", "--strategy", "phase-po"], "did you mean 'phase-ppo'"),
        (["ffff", "--all-since", "7d", "--model", "phase-ppo"], "or --all-since"),
        ([], "name a decision"),
    ],
)
def test_what_cannot_be_replayed_is_said(settings, tmp_path, capsys, words, said):
    (tmp_path / "config.toml").write_text(f'[store]\nurl = "{settings.url}"\n')
    assert main(["replay", *words, "--config", str(tmp_path / "config.toml")]) != 0
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err

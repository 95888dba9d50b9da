"""Hands of an earlier process whose tables are gone do not stay live for ever."""

import asyncio
import random
import time
import types

import pytest

from bothost import messages as m
from bothost.config import AccountSettings, Secret
from bothost.host import lost_hands
from bothost.host.account import Timeouts
from bothost.host.lost_hands import LostHands
from bothost.host.memory import StoreMemory
from bothost.host.reconnect import ConnectionSettings
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.rules import game
from bothost.store import DecisionLog, Store
from bothost.tables.games import Games
from bothost.testing.hosting import until
from bothost.testing.sample_rows import sample_hand

RNG = random.Random(3)


class Forgetful(EmbeddedLobby):
    """The lobby knows none of our tables; it says how one of them ended."""

    name = "forgetful"
    Options = EmbeddedOptions
    events: tuple[m.Event, ...] = ()

    def feed(self, item):
        return [m.Connected("ada", resumed=False), *self.events] if isinstance(item, m.Authenticate) else []


@pytest.fixture
def crashed(kit):
    """Write hands into the database as a host that was killed left them; then run a host at this lobby."""
    kit.connection = ConnectionSettings()
    kit.timeouts = Timeouts(confirm_s=0.2)

    async def run(hands, *events, lost):
        adapter = type("Adapter", (Forgetful,), {"events": events})
        log = DecisionLog.open(kit.store_settings, "test", kit.folder / "spool")
        await log.submit([row for hand in hands for row in hand])
        await log.aclose()
        account = AccountSettings(name="ada", token=Secret("adaadaada", "test"))
        lobby = super(type(kit), kit).lobby("home", adapter.name, "ws://127.0.0.1:9/", [account])
        plugin = kit.module("lobby", bothost_lobbies=lambda: [adapter])
        async with kit.running(super(type(kit), kit).settings(lobby), plugin, drain=False):
            await kit.until(lambda: kit.count("game_ends") >= lost)
        rows = kit.rows("SELECT game_id, reason, scores FROM game_ends")
        return {bytes(game_id): (reason, scores) for game_id, reason, scores in rows}

    return run


async def test_a_hand_whose_table_is_gone_closes_as_aborted(crashed):
    hands = [sample_hand(RNG, ended=False, account="ada") for _ in range(3)]
    stranger = sample_hand(RNG, ended=False, account="bob")
    ends = await crashed([*hands, stranger], lost=3)
    assert ends == {hand[0].game_id: ("aborted", None) for hand in hands}


async def test_it_closes_as_the_lobby_says_that_its_table_ended(crashed):
    gone, ended = (sample_hand(RNG, ended=False, account="ada") for _ in range(2))
    ends = await crashed([gone, ended], m.TableEnded(ended[0].table, "normal", (2.0, -1.0, -1.0)), lost=2)
    assert ends == {gone[0].game_id: ("aborted", None), ended[0].game_id: ("normal", "[2.0,-1.0,-1.0]")}


async def test_a_hand_that_ends_while_it_is_looked_up_has_the_scores_of_its_end(crashed, monkeypatch):
    """The look-up waits until the rows of the spool are in the database, which may take minutes."""
    monkeypatch.setattr(lost_hands, "AGAIN_S", 0.02)
    find = StoreMemory.find
    monkeypatch.setattr(StoreMemory, "find", lambda *of: time.sleep(0.5) or find(*of))  # longer than confirm_s
    hand = sample_hand(RNG, ended=False, account="ada")
    logged = hand[0]
    view = game(logged.game).new_state(seed=1).view(logged.seat)
    seated = m.Seated(logged.table, logged.game, {}, logged.seat, (), {}, None)
    ends = await crashed(
        [hand],
        seated,
        m.Snapshot(logged.table, logged.hand, logged.seat, view.to_json()),
        m.HandEnded(logged.table, logged.hand, (2.0, -1.0, -1.0), "normal"),
        m.TableEnded(logged.table, "normal", None),
        lost=1,
    )
    assert ends == {logged.game_id: ("normal", "[2.0,-1.0,-1.0]")}


async def test_scores_that_do_not_fit_the_game_are_not_logged(crashed):
    hand = sample_hand(RNG, ended=False, account="ada")
    ends = await crashed([hand], m.TableEnded(hand[0].table, "normal", (2.0, -1.0)), lost=1)
    assert ends == {hand[0].game_id: ("normal", None)}


async def test_a_host_that_quits_closes_no_lost_hands_any_more(kit, monkeypatch):
    """Its tables stay open at the lobby, and the next process resumes them."""
    asked = []
    monkeypatch.setattr(Store, "unfinished_hands", lambda *of: asked.append(of) or [])
    kit.connection, kit.timeouts = ConnectionSettings(), Timeouts(confirm_s=0.3)
    account = AccountSettings(name="ada", token=Secret("adaadaada", "test"))
    lobby = super(type(kit), kit).lobby("home", Forgetful.name, "ws://127.0.0.1:9/", [account])

    class Last(Forgetful):
        """The host quits as soon as it is connected."""

        def feed(self, item):
            if isinstance(item, m.Authenticate):
                asyncio.get_running_loop().call_soon(host.quit)
            return super().feed(item)

    plugin = kit.module("lobby", bothost_lobbies=lambda: [Last])
    async with kit.running(super(type(kit), kit).settings(lobby), plugin, drain=False) as host:
        await kit.until(lambda: host.accounts and host.accounts[0].ever_connected)
    await asyncio.sleep(0.5)
    assert asked == []


async def test_a_hand_that_goes_on_stays_open(crashed):
    gone, goes_on = (sample_hand(RNG, ended=False, account="ada") for _ in range(2))
    row = goes_on[0]
    seated = m.Seated(row.table, "doudizhu", game("doudizhu").rules, row.seat, ())
    ends = await crashed([gone, goes_on], seated, m.HandStarted(row.table, row.hand, row.seat), lost=1)
    assert ends == {gone[0].game_id: ("aborted", None)}


async def test_a_hand_whose_table_was_between_two_hands_closes_when_the_next_one_starts(monkeypatch):
    monkeypatch.setattr(lost_hands, "AGAIN_S", 0.02)
    (row, *_) = sample_hand(RNG, ended=False, account="ada")
    state, looks, closed = {row.table: None}, [], []

    def find(lobby, account, before_us):
        looks.append(before_us)
        return [] if closed else [row]

    recorder = types.SimpleNamespace(hand_lost=lambda *of: closed.append(of))
    lost = LostHands(find, recorder, Games(), lambda table, hand: False)
    closing = asyncio.create_task(lost.close(("home", "ada"), 7, lambda table, hand: state[table], {}))
    await until(lambda: len(looks) > 2)
    assert closed == [] and not closing.done(), "the lobby may still show that the hand goes on"
    state[row.table] = False
    await asyncio.wait_for(closing, 10)
    assert closed == [(row.game_id, row.seat, "aborted", None)]


async def test_who_lost_the_lease_leaves_lost_hands_to_the_new_holder(kit, monkeypatch):
    """The table was between two hands, so it was not known yet whether the hand goes on."""
    monkeypatch.setattr(lost_hands, "AGAIN_S", 0.02)
    hand, looks = sample_hand(RNG, ended=False, account="ada"), []
    monkeypatch.setattr(Store, "unfinished_hands", lambda *of: looks.append(of) or hand[:1])
    seated = m.Seated(hand[0].table, "doudizhu", game("doudizhu").rules, hand[0].seat, ())
    adapter = type("Adapter", (Forgetful,), {"events": (seated,)})
    kit.connection, kit.timeouts = ConnectionSettings(), Timeouts(confirm_s=0.1)
    account = AccountSettings(name="ada", token=Secret("adaadaada", "test"))
    lobby = super(type(kit), kit).lobby("home", adapter.name, "ws://127.0.0.1:9/", [account])
    plugin = kit.module("lobby", bothost_lobbies=lambda: [adapter])
    async with kit.running(super(type(kit), kit).settings(lobby), plugin, drain=False) as host:
        await kit.until(lambda: len(looks) > 2)
        host.accounts[0].let_go("another host took the account over")
        await asyncio.sleep(0.2)
    assert kit.count("game_ends") == 0

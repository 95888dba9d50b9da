"""What an account does with seats: silent tables are left, unusable ones declined."""

import time
import types

import pytest

from bothost import messages as m
from bothost.config import AccountSettings, MannersSettings, Secret, WishSettings
from bothost.host.limited_lines import lobby_lines
from bothost.host.manners import Manners
from bothost.host.reconnect import ConnectionSettings
from bothost.host.seeking import Seeking
from bothost.lobbies.base import out_of_range
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.lobbies.embedded import protocol as wire
from bothost.rules import game
from bothost.tables.slots import Capacity, Slots


class Scripted(EmbeddedLobby):
    """Seats us at one table when we log in, and says nothing after that."""

    name = "scripted"
    Options = EmbeddedOptions
    attributes = types.MappingProxyType({})

    def __init__(self, account, options):
        super().__init__(account, options)
        self.inputs = []

    def feed(self, item):
        self.inputs.append(item)
        if isinstance(item, m.Authenticate):
            seated = m.Seated("t", "doudizhu", game("doudizhu").rules, 0, (), dict(self.attributes))
            return [m.Connected("ada", resumed=False), seated]
        return []

    def given(self, kind):
        return [item for item in self.inputs if isinstance(item, kind)]


@pytest.fixture
def playing(kit):
    """A host with one account at this adapter."""

    def running(adapter, **more):
        kit.connection = ConnectionSettings()
        account = AccountSettings(name="ada", token=Secret("adaadaada", "test"), **more)
        lobby = super(type(kit), kit).lobby("home", adapter.name, "ws://127.0.0.1:9/", [account])
        settings = super(type(kit), kit).settings(lobby)
        return kit.running(settings, kit.module("lobby", bothost_lobbies=lambda: [adapter]), drain=False)

    return running


async def test_a_table_that_stays_silent_is_left_so_that_the_adapter_forgets_it(kit, playing):
    async with playing(Scripted) as host:
        await kit.until(lambda: host.accounts and host.accounts[0].tables.sessions)
        (account,) = host.accounts
        adapter, now = account.connection.adapter, time.monotonic()
        for silence in range(1, 5):
            assert account.tables.sessions, "it was asked in vain, but not often enough"
            account.tick(now + silence * 1000.0)
        assert len(adapter.given(m.Resync)) == 3
        assert adapter.given(m.Leave) == [m.Leave("t")] and not account.tables.sessions and account.slots.used == 0


@pytest.mark.parametrize("order", ["drain, confirm", "confirm, drain"])
async def test_a_drain_leaves_a_table_without_a_hand_when_the_lobby_had_the_time_to_show_one(kit, playing, order):
    class Reconnecting(Scripted):
        name = "reconnecting"

        def feed(self, item):
            self.inputs.append(item)
            if isinstance(item, m.Authenticate | m.Resume):
                return [m.Connected("ada"), m.Seated("t", "doudizhu", game("doudizhu").rules, None)]
            return [m.Disconnected("lost")] if isinstance(item, m.Ping) else []

    async with playing(Reconnecting) as host:
        await kit.until(lambda: host.accounts and host.accounts[0].tables.sessions)
        (account,) = host.accounts
        account.connection.feed(m.Ping())
        await kit.until(lambda: account.connection.connected)
        for step in order.split(", "):
            assert not account.finished
            host.drain() if step == "drain" else account.roll_call.end()
        assert account.finished and account.connection.adapter.given(m.Leave) == [m.Leave("t")]


@pytest.mark.parametrize(("player", "sits"), [("bob", False), ("cyd", True)])
async def test_a_table_that_crosses_the_end_of_its_seek_is_judged_like_any_other_new_one(kit, playing, player, sits):
    class Crossing(Scripted):
        name = "crossing"

        def feed(self, item):
            self.inputs.append(item)
            if isinstance(item, m.Authenticate):
                return [m.Connected("ada", resumed=False)]
            if not isinstance(item, m.CancelSeek):
                return []
            players = (m.PlayerInfo("ada", 0), m.PlayerInfo(player, 1))
            return [m.Seated("t", "pairing", game("pairing").rules, 0, players, {}, seek=item.seek)]

    wish = WishSettings(game="pairing")
    async with playing(Crossing, wishes=(wish,), manners=MannersSettings(block=("bob",))) as host:
        await kit.until(lambda: host.accounts and host.accounts[0].connection.adapter.given(m.Seek))
        (account,) = host.accounts
        account.seeking.pause()
        await kit.until(lambda: account.connection.adapter.given(m.CancelSeek))
        assert bool(account.tables.sessions) == sits
        assert account.connection.adapter.given(m.Leave) == ([] if sits else [m.Leave("t")])


async def test_a_seat_with_an_integer_of_65_bits_is_declined(kit, playing):
    """No row and no message to a strategy's process could hold it."""

    class Huge(Scripted):
        name = "huge"
        attributes = types.MappingProxyType({"level": {"of": [1, 2**64]}})

    async with playing(Huge) as host:
        await kit.until(lambda: host.accounts and host.accounts[0].connection.connected)
        (account,) = host.accounts
        assert account.connection.adapter.given(m.Leave) == [m.Leave("t")]
        assert not account.tables.sessions and account.slots.used == 0


@pytest.mark.parametrize(("value", "unfit"), [(2**63 - 1, None), (2**63, 2**63), (-(2**63) - 1, -(2**63) - 1)])
def test_the_bounds_are_those_of_64_bits(value, unfit):
    assert out_of_range({"a": ["x", {"b": value}]}) == unfit


@pytest.mark.parametrize("value", [2**63, 2**64, -(2**63) - 1])
def test_the_embedded_lobby_refuses_larger_attributes(value):
    import msgspec

    frame = msgspec.json.encode({"x": 1})[:-2] + str(value).encode() + b"}"
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        msgspec.json.decode(frame, type=wire.Attributes)
    assert msgspec.json.decode(b'{"x":9223372036854775807}', type=wire.Attributes) == {"x": 2**63 - 1}


@pytest.mark.parametrize("seconds", [1e15, float("nan"), -5.0, 0.0, None])
async def test_a_challenge_without_an_end_holds_its_slot_no_longer_than_a_seek(seconds):
    heard = []
    slots, manners = Slots(1, Capacity(1)), Manners(MannersSettings(games=("othello",)), "ada")
    connection = types.SimpleNamespace(feed=heard.append, connected=True)
    seeking = Seeking(
        AccountSettings(name="ada"), slots, connection, lambda: False, 60.0, manners, lobby_lines("home", "ada")
    )
    seeking.invited(m.Invitation("i", m.TableInfo("t", "othello"), seconds), 100.0)
    assert isinstance(heard.pop(), m.Accept) and slots.used == 1
    seeking.invited(m.Invitation("j", m.TableInfo("u", "othello"), seconds, seek="not ours"), 100.0)
    assert heard.pop() == m.Decline("j")
    seeking.expire(161.0)
    assert isinstance(heard.pop(), m.CancelSeek) and slots.used == 0


def test_a_seek_that_the_adapter_refuses_at_once_is_not_repeated_at_once():
    """Beside a table that we have, the host would seek for ever and do nothing else."""
    slots, manners, sought = Slots(3, Capacity(3)), Manners(MannersSettings(), "ada"), []
    slots.seat("t")

    def feed(seek):
        assert len(sought) < 10
        sought.append(seek)
        seeking.ended(m.SeekEnded(seek.seek, "no such room"), now)

    connection = types.SimpleNamespace(feed=feed, connected=True)
    settings = AccountSettings(name="ada", wishes=(WishSettings(game="othello"),))
    seeking = Seeking(settings, slots, connection, lambda: False, 60.0, manners, lobby_lines("home", "ada"))
    for now in (100.0, 100.0, 200.0):
        seeking.seek_more(now)
    assert len(sought) == 2

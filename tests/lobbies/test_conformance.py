"""Every adapter of ours passes the conformance kit; the kit says why an adapter does not."""

import dataclasses
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from bothost import messages as m
from bothost.errors import UsageError
from bothost.lobbies import bothost_lobbies
from bothost.testing import adapter_memory, feed_thread, lobby_player
from bothost.testing import check_lobby as kit_of_lobbies
from bothost.testing.check_lobby import UNOBSERVED, check_lobby, find_kit
from bothost.testing.small_lobby.adapter import Frame, SmallLobby
from bothost.testing.small_lobby.fake import KIT

OURS = [
    pytest.param(adapter, id=adapter.name) for adapter in (*(lazy.load() for lazy in bothost_lobbies()), SmallLobby)
]


@pytest.mark.parametrize("adapter", OURS)
async def test_our_adapters_conform(adapter):
    report = await check_lobby(find_kit(adapter))
    report.require()
    assert report.requests > 2 and report.hostile > 1000


@pytest.fixture
def few_frames(monkeypatch):
    """What is wrong elsewhere is found without thousands of hostile frames."""
    monkeypatch.setattr(kit_of_lobbies, "PREFIXES", 5)
    monkeypatch.setattr(adapter_memory, "FRAMES", 50)


def broken(**changes):
    """The kit of the small lobby, with an adapter that differs in these members."""
    adapter = type("Broken", (SmallLobby,), {"__module__": __name__, **changes})
    return dataclasses.replace(KIT, adapter=adapter, timeout_s=3.0)


class Helper(SmallLobby):
    """What broken adapters need of the right one."""

    def requests(self, item, change):
        return [change(o) if isinstance(o, m.ActionRequest) else o for o in SmallLobby.feed(self, item)]


def raises(self, item):
    if isinstance(item, m.Frame):
        msgspec.json.decode(item.data, type=Frame)
    return SmallLobby.feed(self, item)


def returns_none(self, item):
    return SmallLobby.feed(self, item) or None


def numbers_by_connection(self, item):
    return Helper.requests(self, item, lambda o: msgspec.structs.replace(o, request_id=f"{o.request_id}.{id(self)}"))


def one_number_for_all(self, item):
    return Helper.requests(self, item, lambda o: msgspec.structs.replace(o, request_id="r"))


def no_snapshot(self, item):
    return [o for o in SmallLobby.feed(self, item) if not isinstance(o, m.Snapshot)]


def counts_down(self, item):
    def later(o):
        if not isinstance(o, m.Snapshot):
            return o
        return msgspec.structs.replace(o, view={**o.view, "seq": 1000 - o.view["seq"]})

    return [later(o) for o in SmallLobby.feed(self, item)]


def changes(kind, **fields):
    """A feed whose outputs of one kind have other fields."""

    def feed(self, item):
        outputs = SmallLobby.feed(self, item)
        return [msgspec.structs.replace(o, **fields) if isinstance(o, kind) else o for o in outputs]

    feed.__name__ = f"{kind.__name__}{fields}"
    return feed


def seated_before_the_login(self, item):
    outputs = SmallLobby.feed(self, item)
    return [m.Seated("t", "othello", {}, 0), *outputs] if isinstance(item, m.SocketOpened) else outputs


def tells(seq, *events):
    """A feed that follows each snapshot by a delta ``seq`` events later."""

    def feed(self, item):
        outputs = SmallLobby.feed(self, item)
        at = next((n for n, o in enumerate(outputs, 1) if isinstance(o, m.Snapshot)), None)
        if at is not None:
            shown = outputs[at - 1]
            outputs.insert(at, m.Delta(shown.table, shown.hand, shown.view["seq"] + seq, events))
        return outputs

    feed.__name__ = f"tells {seq} {events}"
    return feed


def keeps_every_frame(self, item):
    self.kept = [*getattr(self, "kept", []), item]
    return SmallLobby.feed(self, item)


def counts_every_frame(self, item):
    self.kept = getattr(self, "kept", [])
    self.kept.append(0)
    return SmallLobby.feed(self, item)


def keeps_every_table(self, item):
    outputs = SmallLobby.feed(self, item)
    self.kept = getattr(self, "kept", {})
    self.kept |= {o.table: [*range(1000, 1100)] for o in outputs if isinstance(o, m.Seated)}
    return outputs


def sleeps_for(kind):
    def feed(self, item):
        if isinstance(item, kind):
            time.sleep(0.05)
        return SmallLobby.feed(self, item)

    feed.__name__ = f"sleeps for {kind.__name__}"
    return feed


def hangs_for(kind):
    def feed(self, item):
        if isinstance(item, kind):
            self.let_go.wait()  # without it, the thread would outlive the test
        return SmallLobby.feed(self, item)

    feed.__name__ = f"hangs for {kind.__name__}"
    return feed


def never_rejects(self, item):
    return [o for o in SmallLobby.feed(self, item) if not isinstance(o, m.Rejected)]


def asks_again_by_the_old_id(self, item):
    return Helper.requests(self, item, lambda o: msgspec.structs.replace(o, request_id=o.request_id.partition(".")[0]))


def raises_for(kind):
    def feed(self, item):
        if isinstance(item, kind):
            raise KeyError("what the author forgot")
        return SmallLobby.feed(self, item)

    feed.__name__ = f"raises for {kind.__name__}"
    return feed


def ends_with_a_question(self, item):
    outputs = SmallLobby.feed(self, item)
    asked = [o for o in outputs if isinstance(o, m.ActionRequest)]
    return [*outputs, *(m.TableEnded(o.table, "aborted") for o in asked)]


def never_refused(self, item):
    return [o for o in SmallLobby.feed(self, item) if not isinstance(o, m.AuthFailed)]


@pytest.mark.parametrize(
    ("feed", "check", "said"),
    [
        (raises, "hostile input", "raised"),
        (returns_none, "plays a hand", "feed returned NoneType"),
        (numbers_by_connection, "comes back", "after a restart of the process, request"),
        (one_number_for_all, "plays a hand", "request ids: r is used at two positions"),
        (counts_down, "plays a hand", "seq: a snapshot at event"),
        (changes(m.Snapshot, seat=7), "plays a hand", "the event says 7"),
        (changes(m.ActionRequest, seq=99), "plays a hand", "is about event 99"),
        (changes(m.HandEnded, scores=(1.0,)), "plays a hand", "scores: 1 scores at a game of 2 seats"),
        (changes(m.HandEnded, table="another"), "plays a hand", "order: HandEnded of table another before Seated"),
        (tells(1, "place 0 a1"), "plays a hand", "seq: Delta from event"),
        (tells(0, "dance 0"), "plays a hand", "events: the game refuses"),
        (raises_for(m.Seek), "plays a hand", "KeyError: 'what the author forgot' (test_conformance.py:"),
        (raises_for(m.Act), "plays a hand", "KeyError: 'what the author forgot' (test_conformance.py:"),
        (keeps_every_frame, "bounded memory", "bytes more after 2,000 frames"),
        (counts_every_frame, "bounded memory", "bytes more after 2,000 frames"),
        (keeps_every_table, "bounded memory", "bytes more after 16 tables have ended"),
        (sleeps_for(m.Act), "feed does not block", "feed(Act) takes 5"),
        (sleeps_for(m.Frame), "feed does not block", "feed(Frame) takes 5"),
        (never_rejects, "refused action", "which is not legal, did not come"),
        (asks_again_by_the_old_id, "refused action", "has the id of the refused one, 1"),
        (never_refused, "needs_secret", "AuthFailed did not come"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_what_is_wrong_with_an_adapter_is_said(feed, check, said, request):
    if check != "bounded memory":
        request.getfixturevalue("few_frames")
    report = await check_lobby(broken(feed=feed))
    details = {finding.check: finding.detail for finding in report.findings if not finding.ok}
    assert said in details.get(check, ""), details


@pytest.mark.parametrize(
    ("feed", "said"),
    [
        (no_snapshot, "before the position"),
        (changes(m.Seated, rules={"board": 10}), "rules: Seated names rules that no game has"),
        (changes(m.Snapshot, view={"seq": 0}), "snapshot: the game refuses it"),
        (seated_before_the_login, "session: Seated without a session"),
        (ends_with_a_question, "the end of a hand did not come"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.usefixtures("few_frames")
async def test_what_is_wrong_is_said_even_if_no_hand_ends(feed, said):
    report = await check_lobby(dataclasses.replace(broken(feed=feed), timeout_s=1.0))
    details = {finding.check: finding.detail for finding in report.findings if not finding.ok}
    assert said in details["plays a hand"], details


async def test_after_a_broken_law_the_kit_does_not_wait_for_a_silent_lobby(monkeypatch):
    monkeypatch.setattr(lobby_player, "SILENCE_S", 0.0)
    report = await check_lobby(dataclasses.replace(broken(feed=no_snapshot), timeout_s=20.0))
    details = {finding.check: finding.detail for finding in report.findings}
    assert "before the position" in details["plays a hand"] and "within 20 s" not in details["plays a hand"]
    assert details["comes back"] == "not checked, because no hand was played"


@pytest.mark.parametrize(
    ("feed", "check"),
    [
        (hangs_for(m.Authenticate), "plays a hand"),
        (hangs_for(m.SocketOpened), "plays a hand"),
        (hangs_for(m.Frame), "plays a hand"),
        (hangs_for(m.Resume), "comes back"),
        (hangs_for(m.Say), "chat"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.usefixtures("few_frames")
async def test_a_feed_that_never_returns_is_found(feed, check, monkeypatch):
    monkeypatch.setattr(feed_thread, "LIMIT_S", 0.5)
    kit = broken(feed=feed, let_go=(let_go := threading.Event()))
    try:
        report = await check_lobby(dataclasses.replace(kit, timeout_s=60.0))
    finally:
        let_go.set()
    details = [finding.detail for finding in report.findings if finding.check == check]
    kind = feed.__name__.rpartition(" ")[2]
    assert f"feed({kind}) has not returned after 0.5 s (test_conformance.py:" in details[0]
    if check == "plays a hand":
        assert report.findings[1].detail == "not checked, because feed hangs"


@pytest.mark.usefixtures("few_frames")
async def test_a_failure_before_any_event_is_not_waited_out():
    report = await check_lobby(dataclasses.replace(broken(feed=raises_for(m.SocketOpened)), timeout_s=60.0))
    assert "feed(SocketOpened) raised KeyError" in report.findings[0].detail


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks_moves", False),
        ("sends_legal_actions", True),
        ("clock", "per_move"),
        ("resume", "token"),
        ("heartbeat", "app"),
        ("transport", "long_poll"),
        ("games", ("doudizhu",)),
        ("chat", True),
    ],
)
@pytest.mark.usefixtures("few_frames")
async def test_a_capability_that_is_not_there_is_found(name, value):
    capabilities = msgspec.structs.replace(SmallLobby.capabilities, **{name: value})
    report = await check_lobby(broken(capabilities=capabilities))
    assert name in {finding.check for finding in report.findings if not finding.ok}


async def test_without_a_hand_nothing_is_said_of_what_needs_one():
    def silent(self, item):
        return []

    report = await check_lobby(dataclasses.replace(broken(feed=silent), timeout_s=0.1))
    details = {finding.check: finding.detail for finding in report.findings if not finding.ok}
    for name in (
        "comes back",
        "hostile input",
        "bounded memory",
        "acks_moves",
        "clock",
        "resume_delivers",
        "transport",
    ):
        assert details[name] == "not checked, because no hand was played"
    assert "games" not in details


@pytest.mark.usefixtures("few_frames")
async def test_a_capability_that_nobody_proves_is_found():
    report = await check_lobby(dataclasses.replace(KIT, proven_by={}))
    unproven = {finding.check: finding.advice for finding in report.findings if not finding.ok}
    assert set(unproven) == set(UNOBSERVED)
    assert "LobbyKit.proven_by" in unproven["plays_for_us"]


@pytest.mark.parametrize(
    "source", ["raise RuntimeError('boom')", "def", "raise SystemExit", "KIT = 1 / 0", "OTHER = 1", "KIT = 1"]
)
def test_a_kit_that_cannot_be_used_is_a_wrong_argument(source, tmp_path, monkeypatch):
    (tmp_path / "broken_kit.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_kit", raising=False)
    with pytest.raises(UsageError, match="broken_kit:KIT"):
        find_kit(SmallLobby, "broken_kit:KIT")


@pytest.mark.parametrize("name", [":KIT", "..x:KIT", "no_such_module:KIT", "json"])
def test_a_name_of_a_kit_that_is_none_is_a_wrong_argument(name):
    with pytest.raises(UsageError):
        find_kit(SmallLobby, name)


@pytest.mark.parametrize("adapter", OURS)
def test_the_tests_that_our_kits_name_exist(adapter):
    for test in set(find_kit(adapter).proven_by.values()):
        path, found, name = test.partition("::")
        if not found:
            assert adapter is SmallLobby, test
            continue
        assert f"def {name}(" in (Path(__file__).parents[2] / path).read_text(), test

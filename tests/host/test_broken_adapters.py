"""An adapter that returns nonsense costs its connection, and the log says which adapter and why."""

import pytest
import structlog.testing

from bothost import messages as m
from bothost.host.connection import Connection, ConnectionSettings
from bothost.lobbies.base import Account
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions


class Broken(EmbeddedLobby):
    """Its ``feed`` returns what the test wants."""

    name = "broken"
    answer = None

    def feed(self, item):
        return self.answer


class Owner:
    """Keeps what the connection reports."""

    def __init__(self):
        self.events = []

    def event(self, event, now):
        self.events.append(event)

    def known_tables(self):
        return ()

    def memo(self):
        return {}

    def remember(self, memo):
        raise AssertionError("nothing is remembered")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (None, "feed returned NoneType"),
        (m.Alive(), "feed returned Alive"),
        ("connected", "feed returned str"),
        ([m.Connected("ada"), m.Delta("t", "h", "1", ())], "Delta.seq is str"),
        ([m.Snapshot("t", "h", 0, {"board": ""})], "Snapshot.view has no key seq"),
    ],
)
async def test_the_log_names_adapter_and_cause(answer, cause):
    adapter, owner = Broken(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions()), Owner()
    adapter.answer = answer
    connection = Connection(adapter, owner, ConnectionSettings(backoff_first_s=60.0))
    with structlog.testing.capture_logs() as logs:
        connection.start()
    (failed,) = [line for line in logs if line["event"] == "adapter_failed"]
    assert failed["adapter"] == "broken" and cause in failed["cause"]
    assert owner.events == [m.Disconnected("the adapter failed")], "nothing of a bad answer is performed"
    await connection.aclose()

"""A log of hands that were really played."""

from pathlib import Path

import pytest

from bothost import rules
from bothost.config import StoreSettings
from bothost.store import OutcomeRecord, Record, Store, schema
from bothost.testing.sample_rows import played_hand, write_rows

HANDS = 30
START = 1_700_000_000_000_000


@pytest.fixture(scope="session")
def played() -> list[list[Record]]:
    """Hands of Dou Dizhu by two accounts; the first is live, the second aborted, in the third a move was refused."""
    game = rules.game("doudizhu")
    hands = [
        played_hand(game, i, seat=i % 3, account="ada" if i % 2 else "bob", started_us=START + i * 60_000_000)
        for i in range(HANDS)
    ]
    hands[0].pop()
    hands[1][-1].scores, hands[1][-1].reason = None, "aborted"
    hands[3][-1].away, hands[4][-1].away = "[]", "[0,2]"
    decision = hands[2][2]
    hands[2].append(OutcomeRecord(decision.id, "rejected", "too late", decision.at_us + 700))
    return hands


@pytest.fixture(scope="session")
def log_settings(played, tmp_path_factory: pytest.TempPathFactory) -> StoreSettings:
    folder: Path = tmp_path_factory.mktemp("log")
    settings = StoreSettings(url=f"sqlite:///{folder}/bothost.db")
    schema.upgrade(settings)
    write_rows(settings, folder, played)
    return settings


@pytest.fixture
def store(log_settings):
    with Store.open(log_settings) as opened:
        yield opened

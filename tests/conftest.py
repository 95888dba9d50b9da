import pytest

from bothost import rules


@pytest.fixture(autouse=True)
def _games_of_a_test_end_with_it(monkeypatch):
    """Games that plugins bring are registered for the whole process: no test may see those of another."""
    monkeypatch.setattr(rules, "_factories", dict(rules._factories))

import pytest
from hypothesis import HealthCheck, settings

from bothost import rules

# How long an example takes says how busy the machine is: that is what benchmarks are for.
settings.register_profile("bothost", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bothost")


@pytest.fixture(autouse=True)
def _games_of_a_test_end_with_it(monkeypatch):
    """Games that plugins bring are registered for the whole process: no test may see those of another."""
    monkeypatch.setattr(rules, "_factories", dict(rules._factories))

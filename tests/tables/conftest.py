import pytest

from bothost.testing.seat import Seat


@pytest.fixture
def seat():
    return Seat().start()

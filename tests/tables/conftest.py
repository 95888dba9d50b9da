import pytest
from table_seat import Seat


@pytest.fixture
def seat():
    return Seat().start()

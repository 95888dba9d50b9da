from collections.abc import Iterator

import pytest

from bothost import rules
from bothost.config import Settings, StoreSettings
from bothost.plugins import Plugins
from bothost.store import Store
from bothost.web.site import Site


@pytest.fixture
def site(settings: StoreSettings) -> Iterator[Site]:
    """A site on an empty database."""
    with Store.open(settings) as store:
        yield Site(Settings(store=settings), store, Plugins.load(None), rules.game)

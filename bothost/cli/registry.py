"""The registry as the command line uses it: opened when an address first asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bothost.config import Settings
from bothost.errors import BothostError

if TYPE_CHECKING:
    from bothost.plugins import AliasResolver
    from bothost.store.registry import Registry
    from bothost.strategy import Model


@contextmanager
def opened(settings: Settings) -> Iterator[Registry]:
    """The registry of the configured database. Raises as ``Store.open`` does."""
    from bothost.store import Store
    from bothost.store.registry import Registry

    with Store.open(settings.store) as store:
        yield Registry(store, settings.host.data_dir / "models")


def resolver(settings: Settings) -> AliasResolver:
    """Resolves aliases in the database, which is open for as long as that takes.

    Before there is a database there are no aliases in it: nothing is resolved then, and the package's count.
    """

    def resolve(strategy: str, alias: str) -> Model | str | None:
        from bothost.store.engine import sqlite_path

        try:
            path = sqlite_path(settings.store.url)
        except BothostError:  # a wrong URL: what needs the database says so
            return None
        if path is not None and not path.exists():
            return None
        with opened(settings) as registry:
            return registry.resolve(strategy, alias)

    return resolve

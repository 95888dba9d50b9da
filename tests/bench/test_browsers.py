"""The benchmark of watchers: they read from the pages of a host's database."""

import time

from bothost.bench.browsers import serving, watchers
from bothost.config import StoreSettings
from bothost.store import schema


def test_every_watcher_reads_the_list_of_tables(tmp_path):
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path}/bench.db"))
    with serving(tmp_path) as url, watchers(url, 3) as read:
        ends = time.monotonic() + 20
        while min(read) == 0 and time.monotonic() < ends:
            time.sleep(0.05)
        assert min(read) > 0

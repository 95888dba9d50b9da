"""The PostgreSQL server for tests leaves nothing behind, even where its test run was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bothost.locking import locked
from bothost.testing.postgres import PREFIX, remove_leftovers


@pytest.fixture
def leftover(tmp_path):
    def make(name, age_s=3600.0):
        folder = tmp_path / name
        (folder / "data").mkdir(parents=True)
        os.utime(folder, (0, time.time() - age_s))
        return folder

    return make


def test_only_old_folders_without_a_living_owner_are_removed(leftover, tmp_path):
    stale, own, young, other = (
        leftover(PREFIX + "stale"),
        leftover(PREFIX + "own"),
        leftover(PREFIX + "young", age_s=1.0),
        leftover("someone-else"),
    )
    with locked(own):
        remove_leftovers(tmp_path)
        assert set(tmp_path.iterdir()) == {own, young, other}
    assert not stale.exists()


@pytest.mark.parametrize("is_server", [True, False])
def test_the_server_of_a_killed_run_is_ended_and_no_process_that_has_its_number_by_now(leftover, tmp_path, is_server):
    folder = leftover(PREFIX + "stale")
    where = folder / "data" if is_server else Path.home()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], cwd=where)
    try:
        (folder / "data" / "postmaster.pid").write_text(f"{process.pid}\n{folder}\n")
        remove_leftovers(tmp_path)
        assert not folder.exists()
        assert psutil.pid_exists(process.pid) != is_server
    finally:
        process.kill()
        process.wait()

"""Pools of worker processes."""

import os
import signal
import struct
import subprocess
import sys
import time
from functools import partial

import pytest

from bothost.training.pool import WorkerPool
from bothost.training.processes import WorkerDied


class Worker:
    def __init__(self, number=0):
        self.number = 1 // (1 - number)

    def identity(self):
        return os.getpid()

    def end(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def send_a_part(self, told):
        """Begin to send a result of 1,000 bytes, and stop there."""
        frame = sys._getframe()
        while "result_queue" not in frame.f_locals:
            frame = frame.f_back
        os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000))
        told.write_text("sent")
        signal.pause()


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(os.path.dirname(__file__))  # spawned workers inherit it


def test_a_worker_is_built_once(importable):
    with WorkerPool(1, Worker, advice="") as pool:
        assert pool.submit(Worker.identity).result() == pool.submit(Worker.identity).result() != os.getpid()


def test_a_worker_that_cannot_be_built_reports_the_error(importable):
    with pytest.raises(ZeroDivisionError), WorkerPool(1, partial(Worker, 1), advice="") as pool:
        pool.submit(Worker.identity).result()


def test_a_killed_worker_ends_the_work_with_advice(importable):
    with pytest.raises(WorkerDied) as error, WorkerPool(1, Worker, advice="try again") as pool:
        pool.submit(Worker.end).result()
    assert error.value.advice == "try again"


@pytest.mark.timeout(60)
def test_a_worker_killed_while_it_sends_does_not_keep_the_pool(importable, tmp_path):
    told = tmp_path / "told"
    with pytest.raises(KeyError), WorkerPool(1, Worker, advice="") as pool:
        pool.submit(Worker.send_a_part, told)
        while not told.exists():
            time.sleep(0.01)
        raise KeyError


SCRIPT = """
import os, signal, sys
from bothost.training.pool import WorkerPool

class Worker:
    def wait(self):
        signal.pause()
    def identity(self):
        return os.getpid()

if __name__ == "__mp_main__" and "import" in sys.argv:  # a worker process imports it
    os.killpg(0, signal.SIGINT)
elif __name__ == "__main__":
    try:
        with WorkerPool(2, Worker, advice="") as pool:
            print(pool.submit(Worker.identity).result(), flush=True)
            if "idle" in sys.argv:
                os.killpg(0, signal.SIGINT)
            pool.submit(Worker.wait)
            pool.submit(Worker.wait).result()
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def started(*arguments):
        return subprocess.Popen(
            [sys.executable, tmp_path / "script.py", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    return started


@pytest.mark.parametrize("moment", ["import", "idle", "work"])
def test_ctrl_c_prints_no_traceback(start, moment):
    with start(moment) as script:
        if moment == "work":
            script.stdout.readline()
            os.killpg(script.pid, signal.SIGINT)
        _, errors = script.communicate(timeout=60)
    assert (script.returncode, errors) == (130, b"")


def test_workers_end_when_their_parent_is_killed(start):
    with start() as script:
        script.stdout.readline()
        script.kill()
        script.communicate(timeout=60)  # until no process has its stdout

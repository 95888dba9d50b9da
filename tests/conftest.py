import contextlib
import gc
import logging
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import psutil
import pytest
import structlog
from hypothesis import HealthCheck, settings

from bothost import rules
from bothost.config import StoreSettings
from bothost.store import schema
from bothost.testing.postgres import new_database, temporary_postgres

# experiments/ is beside the package. It comes last, so that the package under test need not be the checkout's.
sys.path.append(str(Path(__file__).parents[1]))

_numbers = count()

# How long an example takes says how busy the machine is: that is what benchmarks are for.
settings.register_profile("bothost", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bothost")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays: the garbage collector need not look through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.fixture(autouse=True)
def _games_of_a_test_end_with_it():
    """Games that plugins bring are registered for the whole process: no test may see those of another."""
    before = set(rules.games())
    yield
    for name in {"".join(name.partition(":")[:2]) for name in set(rules.games()) - before}:
        rules.forget_game(name)


@pytest.fixture(autouse=True)
def _logging_of_a_test_ends_with_it():
    """A command sets up the logs of its whole process: the next test must not write into the output of this one."""
    root = logging.getLogger()
    level, hooks = root.level, (sys.excepthook, threading.excepthook)
    yield
    for handler in [h for h in root.handlers if type(h).__module__ in ("logging", "logging.handlers")]:  # not pytest's
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    logging.captureWarnings(False)
    sys.excepthook, threading.excepthook = hooks
    structlog.reset_defaults()


def _not_drawn(records: Sequence[Mapping[str, float]], names: Sequence[str], path: Path) -> None:
    """In place of ``bothost.training.metrics.plot``."""
    assert all(any(name in record for record in records) for name in names), (names, records)
    path.touch()


@pytest.fixture(scope="session", autouse=True)
def _curves_of_trainings_are_not_drawn() -> Iterator[None]:
    """That takes longer than many a training here does. Where pictures are tested, a test draws them."""
    with pytest.MonkeyPatch.context() as patch:
        if "bothost.training.loop" in sys.modules:
            patch.setattr(sys.modules["bothost.training.loop"], "plot", _not_drawn)
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server."""
    with temporary_postgres(in_memory=True) as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgres_url: str) -> str:
    """The name of a migrated PostgreSQL database that stays empty: a copy of it is made faster."""
    schema.upgrade(StoreSettings(url=new_database(postgres_url, "migrated")))
    return "migrated"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database that stays empty: a copy of it is made faster."""
    path = tmp_path_factory.mktemp("migrated") / "bothost.db"
    schema.upgrade(StoreSettings(url=f"sqlite:///{path}"))
    return path


@pytest.fixture
def settings(tmp_path: Path, migrated_file: Path) -> StoreSettings:
    """Settings of a migrated SQLite database."""
    shutil.copy(migrated_file, tmp_path / "bothost.db")
    return StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")


@pytest.fixture
def postgres_settings(postgres_url: str, migrated: str) -> StoreSettings:
    """Settings of a migrated PostgreSQL database."""
    return StoreSettings(url=new_database(postgres_url, f"test{next(_numbers)}", template=migrated))


@pytest.fixture(params=["sqlite", "postgresql"])
def any_settings(request: pytest.FixtureRequest) -> StoreSettings:
    """Settings of a migrated database, of each kind in turn."""
    return request.getfixturevalue("settings" if request.param == "sqlite" else "postgres_settings")


@pytest.fixture
def run_ray_script(tmp_path: Path) -> Callable[..., None]:
    """Runs a script, the texts given together, in a process of its own, as Ray leaves threads behind. It may leave no
    process."""
    mark = tmp_path.name

    def started_by(process: psutil.Process) -> str | None:
        with contextlib.suppress(psutil.Error):
            return process.environ().get("BOTHOST_TEST_RUN")
        return None

    def run(*parts: str) -> None:
        (tmp_path / "script.py").write_text("".join(map(textwrap.dedent, parts)))
        environment = os.environ | {
            "BOTHOST_TEST_RUN": mark,
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else addresses of the loopback become the machine's own
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # else a busy machine lets actors wait for a minute
        }
        command = [sys.executable, "-X", "faulthandler", "script.py"]
        try:
            child = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=560, check=False
            )
            _, left = psutil.wait_procs([p for p in psutil.process_iter() if mark == started_by(p)], timeout=20)
        finally:
            for process in psutil.process_iter():
                if mark == started_by(process):
                    process.kill()
        assert child.returncode == 0, child.stderr[-3000:]
        assert not left

    return run

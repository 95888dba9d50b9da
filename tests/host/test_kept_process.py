"""What is kept beside a host is restarted whenever it ends, and ends with the host. Workers: see test_fleet."""

import asyncio
import sys

from bothost.host import kept_process
from bothost.host.kept_process import KeptProcess


async def test_what_ends_is_restarted_whatever_its_exit_code(kit):
    """Such as pages whose port is still taken by those of a killed host."""
    kept = KeptProcess("web", [sys.executable, "-c", "raise SystemExit(78)"])
    async with kept.beside():
        await kit.until(lambda: kept.starts == 3)
    assert kept.pid is None


async def test_what_does_not_end_is_killed(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_process, "END_S", 0.1)
    mark = tmp_path / "deaf"
    code = f"""
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({str(mark)!r}).touch()
time.sleep(600)
"""
    kept = KeptProcess("web", [sys.executable, "-c", code])
    async with asyncio.timeout(30), kept.beside():
        await kit.until(mark.exists)
    assert kept.code == -9 and kept.starts == 1

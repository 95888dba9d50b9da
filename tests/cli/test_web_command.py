"""``bothost web``: what its end leaves behind."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest


def test_sigterm_ends_open_games_and_removes_their_folders(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BOTHOST_")}
    argv = [sys.executable, "-m", "bothost", "web", "--port", "0"]
    with subprocess.Popen(argv, cwd=tmp_path, env=clean, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = re.search(r"http://\S+:\d+", server.stdout.readline())[0]
            with httpx.Client(base_url=url, headers={"Origin": url}, timeout=60, trust_env=False) as client:
                client.get("/api/session")
                wanted = {"name": "ada", "game": "othello", "opponents": ["random"]}
                number = client.post("/api/play", json=wanted).json()["id"]
                with client.stream("GET", f"/api/play/{number}") as answer:
                    next(line for line in answer.iter_lines() if '"state":"playing"' in line)
            assert len(list((tmp_path / "var" / "play").iterdir())) == 1
            server.terminate()
            assert server.wait(90) == 0
        finally:
            server.kill()
    assert list((tmp_path / "var" / "play").iterdir()) == []


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_it_without_a_word(tmp_path, times):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BOTHOST_")}
    argv = [sys.executable, "-m", "bothost", "web", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, env=clean, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            server.stdout.readline()
            for _ in range(times):
                server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=90)
        finally:
            server.kill()
    assert (server.returncode, err) == (130, "")

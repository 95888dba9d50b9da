"""``bothost tournament``: programs may enter, it writes a report, and a second call plays nothing again."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "hello", "version": 1, "name": "first", "games": ["othello"]}), flush=True)
    elif message["type"] == "decide":
        answer = {"type": "action", "table": message["table"], "id": message["id"], "action": message["legal"][0]}
        print(json.dumps(answer), flush=True)
"""


pytestmark = pytest.mark.usefixtures("elsewhere")


def test_strategies_and_programs_play_and_a_second_call_continues(tmp_path, run):
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ("othello", "random", f"exec:{sys.executable} program.py", "rule-othello", "-n", "2", "--json")
    code, out, err = run("tournament", *words)
    assert code == 0, err
    found = json.loads(out)
    assert found["standings"][0]["address"] == "rule-othello"
    program = next(row for row in found["standings"] if row["contestant"] == "B")
    assert (program["failed"], program["illegal"]) == (0, 0)
    folder = Path(found["folder"])
    assert {"results.json", "report.html", "matches"} <= {path.name for path in folder.iterdir()}
    page = (folder / "report.html").read_text()
    assert '<th class="text">contestant</th>' in page and '<div class="wide"><svg ' in page
    journals = {path: path.read_bytes() for path in (folder / "matches").iterdir()}
    code, out, err = run("tournament", *words)
    assert code == 0
    assert json.loads(out) == found
    assert f"6 of 6 deals are from an earlier run in {folder}; if a strategy's code has changed, raise its" in err
    code, out, err = run("tournament", *words[:4], "-n", "3", "--out", str(folder / "more"))
    assert code == 0 and "earlier run" not in err
    code, out, err = run("tournament", *words[:4], "-n", "4", "--out", str(folder / "more"))
    assert code == 0 and "9 of 12 deals are from an earlier run" in err
    assert {path: path.read_bytes() for path in (folder / "matches").iterdir()} == journals


def test_the_table_for_people_has_intervals(run):
    code, out, _ = run("tournament", "othello", "random", "first-legal", "-n", "4")
    assert code == 0
    assert "wins, %" in out
    assert "±" in out
    assert "report.html" in out


def test_errors_and_illegal_actions_are_printed_and_nothing_where_there_are_none(tmp_path, run):
    (tmp_path / "program.py").write_text(PROGRAM.replace('message["legal"][0]', '"nonsense"'))
    code, out, err = run("tournament", "othello", "random", f"exec:{sys.executable} program.py", "-n", "2")
    assert code == 0, err
    assert re.search(r"^errors: B [1-9]\d+$", out, flags=re.M)
    assert "illegal" not in out and "late answers" not in out
    code, out, _ = run("tournament", "othello", "random", "first-legal", "-n", "2")
    assert code == 0 and "errors" not in out


def test_what_is_wrong_is_explained(run):
    code, _, err = run("tournament", "mahjong", "random", "first-legal", "-n", "2", "--table", "3")
    assert code == 2
    assert "--table 2, or 4" in err
    for command in ("arena", "tournament"):
        code, _, err = run(command, "othello", "random", "exec:no-such-bot --x", "-n", "2")
        assert code == 2
        assert "exec:no-such-bot --x: there is no program 'no-such-bot'" in err


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_on_ray_the_figures_are_the_same(tmp_path, run_ray_script):
    words = ["tournament", "othello", "random", "first-legal", "rule-othello", "-n", "4", "--json"]
    run_ray_script(
        f"""
        import contextlib, io, json
        from bothost.cli import main

        def figures(*more):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                assert main([*{words!r}, *more]) == 0
            found = json.loads(out.getvalue())
            found.pop("folder")
            return found

        here = figures("--out", "here")
        there = figures("--out", "there", "--ray", "local", "--workers", "2")
        assert here == there
        """
    )

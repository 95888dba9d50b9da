"""Worker processes of matches."""

import subprocess
import sys

INTERRUPTED = """
import os, signal, sys
from bothost.arena.crew import ProcessCrew, Work
from bothost.arena.spec import MatchSpec

def build(spec):
    raise AssertionError("it was interrupted before")

if __name__ == "__mp_main__":  # the worker imports it
    os.killpg(0, signal.SIGINT)
elif __name__ == "__main__":
    spec = MatchSpec(game="othello", rules={}, contestants=("a",), options=({},), deals=1)
    try:
        with ProcessCrew(build, spec) as crew:
            crew.submit(Work(0, (0, 1), 0, (0,))).result()
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_ctrl_c_while_a_worker_imports_prints_no_traceback(tmp_path):
    script = tmp_path / "match.py"
    script.write_text(INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, start_new_session=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "")

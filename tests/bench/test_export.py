"""bothost bench export: every decision that was logged is exported, and the figures are there."""

import pytest

from bothost.bench import export
from bothost.errors import BothostError


def test_what_is_logged_is_exported(tmp_path):
    ballast = bytearray(500 << 20)  # the memory of the process that starts the export does not count
    figures = export.command(decisions=500, copies=3, view_json=True, folder=tmp_path)
    assert 1500 <= figures["decisions"] < 1600
    assert figures["decisions_per_s"] > 0 and figures["sqlite3_tuples_per_s"] > 0 and figures["reader_alone_per_s"] > 0
    assert figures["bytes_per_decision"] > 10 and 50 < figures["peak_rss_mb"] < len(ballast) >> 20
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_fails_says_why(tmp_path, monkeypatch):
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho 'Traceback' >&2\necho 'MemoryError: no memory' >&2\nexit 3\n")
    failing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(failing))
    with pytest.raises(BothostError, match=r"exit code 3\): MemoryError: no memory$"):
        export.command(decisions=10, copies=1, view_json=False, folder=tmp_path)

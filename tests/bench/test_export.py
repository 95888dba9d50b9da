"""bothost bench export: every decision that was logged is exported, and the figures are there."""

from bothost.bench import export


def test_what_is_logged_is_exported(tmp_path):
    ballast = bytearray(500 << 20)  # the memory of the process that starts the export does not count
    figures = export.command(decisions=500, copies=3, view_json=True, folder=tmp_path)
    assert 1500 <= figures["decisions"] < 1600
    assert figures["decisions_per_s"] > 0 and figures["sqlite3_tuples_per_s"] > 0 and figures["reader_alone_per_s"] > 0
    assert figures["bytes_per_decision"] > 10 and 50 < figures["peak_rss_mb"] < len(ballast) >> 20
    assert list(tmp_path.iterdir()) == []

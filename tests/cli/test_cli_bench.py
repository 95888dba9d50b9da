"""bothost bench: nouns are listed without importing them; the host's figures are complete and every row is there."""

import json
import subprocess
import sys

import pytest

FIGURES = {
    "decisions_per_s", "raw_echo_per_s", "ratio", "tables", "p50_ms", "p99_ms", "rss_mb",
    "rows_logged", "rows_expected", "echo_p50_ms", "echo_p99_ms",
}  # fmt: skip


def bothost(*args):
    return subprocess.run([sys.executable, "-m", "bothost", *args], capture_output=True, text=True, timeout=120)


def test_a_short_bench_of_the_host_counts_every_row():
    result = bothost("bench", "host", "--tables", "12", "--accounts", "4", "--seconds", "0.3", "--json")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert set(figures) >= FIGURES
    assert figures["rows_logged"] == figures["rows_expected"] > 100
    assert figures["fallbacks"] == 0
    assert 0.0 < figures["echo_p50_ms"] <= figures["echo_p99_ms"]


def test_the_help_of_a_benchmark_has_no_boxes():
    result = bothost("bench", "rules", "--help")
    assert result.returncode == 0 and "--json" in result.stdout and "─" not in result.stdout


@pytest.mark.parametrize(
    ("args", "said"), [(["nothing"], "'nothing'"), (["search", "--ms", "nan"], "nan is not a finite number")]
)
def test_a_wrong_argument_is_a_usage_error(args, said):
    result = bothost("bench", *args)
    assert result.returncode == 2 and said in result.stderr
    assert "Traceback" not in result.stderr

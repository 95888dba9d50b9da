"""The benchmark of the list of hands runs, and each filter finds what its name says."""

from bothost.bench.hands import FILTERS, command


def test_figures(tmp_path):
    figures = command(decisions=2400, repeats=1, folder=tmp_path, postgresql=False)
    assert (figures["database"], figures["hands"], figures["decisions"]) == ("SQLite", 200, 2400)
    asked = figures["filters"]
    assert set(asked) == {*FILTERS, "everything, from the middle"}
    assert asked["everything"]["hands"] == asked["everything, from the middle"]["hands"] == 50
    assert 0 < asked["a game"]["hands"] <= 50 and 0 < asked["a strategy"]["hands"] <= 50
    never = [name for name in FILTERS if "never" in name]
    assert len(never) > 5 and all(asked[name]["hands"] == 0 for name in never)
    assert all(of["answers"] >= 1 and of["first_answer_ms"] <= of["all_ms"] for of in asked.values())
    assert list(tmp_path.iterdir()) == []

"""From PostgreSQL an export has the very rows that it has from SQLite."""

import random

from bothost import rules
from bothost.export.job import export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.store import DecisionLog, OutcomeRecord, Store
from bothost.store.query import HandQuery
from bothost.testing.sample_rows import played_hand, sample_hand


async def test_same_rows_from_either_database(settings, postgres_settings, tmp_path):
    rng = random.Random(9)
    hands = [played_hand(rules.game("doudizhu"), seed, seat=seed % 3) for seed in range(8)]
    hands.append(sample_hand(rng, decisions=5))
    hands[3].append(OutcomeRecord(hands[3][2].id, "rejected", None, 1))
    data = {}
    for name, where in (("sqlite", settings), ("postgresql", postgres_settings)):
        log = DecisionLog.open(where, "test", tmp_path / "spool")
        for rows in hands:
            await log.submit(rows)
        await log.aclose()
        with Store.open(where) as store:
            query, out = HandQuery(scored=True), tmp_path / name
            options = ExportOptions(hands_per_file=4)
            info = export(store, query, out, ParquetExporter(), options)
        assert info["views_not_decoded"] == 5
        data[name] = [pq_rows(path) for path in sorted((tmp_path / name / "data").iterdir())]
    assert data["sqlite"] == data["postgresql"]


def pq_rows(path) -> list[dict]:
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()

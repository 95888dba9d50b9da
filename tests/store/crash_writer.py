"""Submits decisions until it is killed; appends each acknowledged id to a file. Run by test_decision_log_crash."""

import asyncio
import os
import random
import sys
from pathlib import Path

from bothost.config import StoreSettings
from bothost.store import DecisionLog
from bothost.testing.sample_rows import sample_decision, sample_game


async def main(url: str, spool: str, acknowledged: str) -> None:
    rng = random.Random()
    log = DecisionLog.open(StoreSettings(url=url), "crash", Path(spool))
    out = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        game = sample_game(rng)
        for seq in range(50):
            records = [sample_decision(rng, game, 3 * seq + i) for i in range(rng.randrange(1, 4))]
            await log.submit(records)
            os.write(out, b"".join(r.id for r in records))


asyncio.run(main(*sys.argv[1:]))

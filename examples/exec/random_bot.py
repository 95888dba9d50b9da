"""A bot in the exec protocol (docs/reference/exec-protocol.md): plays any game at random. It needs nothing but Python.

Try it: bothost plugin check "exec:python3 examples/exec/random_bot.py" --game pairing --games 20
"""

import json
import random
import sys

tables: dict[str, random.Random] = {}

for line in sys.stdin:
    message = json.loads(line)
    answer = None
    if message["type"] == "hello":
        answer = {"type": "hello", "version": 1, "name": "random-bot", "games": ["*"]}
    elif message["type"] == "open":
        tables[message["table"]] = random.Random(message["seed"])
    elif message["type"] == "decide":
        action = tables[message["table"]].choice(message["legal"])
        answer = {"type": "action", "id": message["id"], "action": action}
    elif message["type"] == "close":
        del tables[message["table"]]
    if answer is not None:
        print(json.dumps(answer), flush=True)

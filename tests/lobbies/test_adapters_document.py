"""The pages for adapter authors: the example plays whole games, and every adapter has its line."""

import json
import re
from pathlib import Path

from bothost import messages as m
from bothost import rules
from bothost.lobbies import bothost_lobbies
from bothost.lobbies.base import Account, NoOptions
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.fake_lobby import FakeLobby
from bothost.testing.small_lobby.adapter import SmallLobby

DOCS = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (DOCS / "adapters.md").read_text()


def test_every_adapter_has_its_line():
    for adapter in bothost_lobbies():
        assert f"| `{adapter.name}` |" in PAGE


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (DOCS / target).exists(), target


async def test_the_example_plays_a_whole_game():
    """Against a lobby that refuses its first move once."""

    async def script(line):
        assert json.loads(await line.recv()) == {"login": "ada", "token": "secret"}
        await line.send(json.dumps({"hello": "ada"}))
        assert json.loads(await line.recv()) == {"seek": "othello"}
        state, refused = rules.game("othello").new_state(1), False
        while not state.terminal:
            (turn,) = state.to_act
            view = state.view(0).to_json()
            board = {"table": "t1", "seat": 0, "board": view["board"], "turn": turn, "ply": state.view(0).seq}
            if turn == 0:
                await line.send(json.dumps(board))
                said = json.loads(await line.recv())
                if not refused:
                    refused = True
                    await line.send(json.dumps(board | {"no": "think again", "tries": 1}))
                    said = json.loads(await line.recv())
                state.apply(0, state.game.parse(said["move"]))
            else:
                state.apply(turn, int(state.legal(turn)[0]))
        await line.send(json.dumps({"table": "t1", "over": [1, -1]}))
        await line.recv()

    asked, refusals = [], 0
    async with FakeLobby(script=script) as lobby:
        adapter = SmallLobby(Account(name="ada", url=lobby.url, token="secret"), NoOptions())
        async with AdapterDriver(adapter) as driver:
            driver.do(m.Authenticate())
            await driver.expect(m.Connected)
            driver.do(m.Seek("s", m.Wish("othello")))
            assert (await driver.expect(m.Seated)).seek == "s"
            view = None
            while not any(isinstance(event, m.TableEnded) for event in driver.events):
                event = await driver.expect(m.Snapshot | m.ActionRequest | m.Rejected | m.TableEnded)
                if isinstance(event, m.Snapshot):
                    view = rules.game("othello").view_from_snapshot(event.view)
                elif isinstance(event, m.Rejected):
                    refusals += 1
                elif isinstance(event, m.ActionRequest):
                    asked.append(event.request_id)
                    assert view.asked and view.seq == event.seq
                    move = view.game.notation(int(view.legal()[0]))
                    driver.do(m.Act(event.table, event.request_id, (move,)))
    assert len(asked) > 10 and len(set(asked)) == len(asked)
    assert refusals == 1


def test_the_example_survives_what_is_no_frame():
    adapter = SmallLobby(Account(name="ada", url="ws://x", token="secret"), NoOptions())
    adapter.feed(m.Authenticate())
    for data in ("", "[", b"\xff", '{"over":"x"}'):
        assert isinstance(adapter.feed(m.Frame(1, data))[0], m.Unknown)

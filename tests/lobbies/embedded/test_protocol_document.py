"""docs/reference/lobby-protocol.md matches the codec: each example is a frame, and each frame has one."""

import json
import re
import typing
from pathlib import Path

import pytest
from memory_lobby import MemoryLobby, RandomClient

from bothost import messages as m
from bothost.lobbies.embedded import protocol as wire

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "lobby-protocol.md").read_text()
EXAMPLES = re.findall(r"^([→←]) (\{.*\})$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("way", "text"), EXAMPLES)
def test_every_example_is_a_frame(way, text):
    decode = wire.decode_client if way == "→" else wire.decode_server
    frame = decode(text)
    assert json.loads(wire.encode(frame)) == json.loads(text), "an example shows no unknown field and no default"


@pytest.mark.parametrize(("way", "union"), [("→", wire.ClientMessage), ("←", wire.ServerMessage)])
def test_every_frame_has_an_example(way, union):
    shown = {json.loads(text)["type"] for way_shown, text in EXAMPLES if way_shown == way}
    assert shown == {struct.__struct_config__.tag for struct in typing.get_args(union)}


def test_every_error_and_close_code_is_explained():
    for code in typing.get_args(wire.ErrorCode):
        assert f"`{code}`" in TEXT
    for name, value in vars(wire).items():
        if name.startswith("CLOSE_"):
            assert str(value) in TEXT, name


def test_the_limits_are_those_of_the_settings():
    lobby = MemoryLobby({"ada": "x"})
    s = lobby.settings
    limits = wire.Limits(s.frame_bytes, s.messages_per_s, s.burst, s.tables_per_account)
    shown = [wire.decode_server(text) for way, text in EXAMPLES if '"type":"welcome"' in text]
    assert [welcome.limits for welcome in shown] == [limits] * len(shown)
    assert f"{s.queue_frames:,} frames" in TEXT
    assert f"{s.remembered:,} tables" in TEXT
    assert s.queue_bytes == 8 * 2**20 and s.max_rejects == 8 and s.lag_ms == 100 and s.hello_s == 10


def test_the_sample_session_is_one():
    lobby = MemoryLobby({"ada": "token-of-ada"}, seed=9, robots_after_s=0.0)
    ada = RandomClient(lobby.shell("ada"), seed=9)
    ada.start(m.Wish("claims", {"seats": 3, "hand": 3}))
    lobby.run()
    lines = [f"{'→' if way == 'out' else '←'} {text}" for way, text in ada.shell.frames]
    session = "<!-- session -->\n```json\n" + "\n".join(lines) + "\n```\n<!-- /session -->"
    assert session in TEXT

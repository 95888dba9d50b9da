"""Text from others becomes one line that is safe to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost.lobbies.frames import MAX_CHAT, plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hello", "hello"),
        ("谢谢 👍", "谢谢 👍"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b2Jgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bc reset", "reset"),
        ("two\r\nlines\tand tabs", "two lines and tabs"),
        ("\u202eevil\u200b", "evil"),
        ("<b>& {game}", "<b>& {game}"),
        ("\ud800", ""),
    ],
)
def test_what_is_left(text, shown):
    assert plain_text(text) == shown


@given(st.text(max_size=2000))
def test_any_text_is_one_short_printable_line(text):
    shown = plain_text(text)
    assert shown.isprintable() and len(shown) <= MAX_CHAT
    assert plain_text(shown) == shown.strip()

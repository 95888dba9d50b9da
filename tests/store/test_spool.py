"""The spool: what was appended is read back, in order, whatever the crash left at its end."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost.store import spool as module
from bothost.store.spool import HEAD_BYTES, Spool, SpoolDamaged, frames_of

COLUMNS = {"a": ("x", "y"), "b": ("z",)}
values = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.floats(allow_nan=False)
)
batches = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"a": st.lists(st.tuples(values, values), min_size=1), "b": st.lists(st.tuples(values), min_size=1)},
    ),
    max_size=8,
)


def contents(spool: Spool) -> list[tuple[str, list[tuple]]]:
    found = []
    while (path := spool.oldest()) is not None:
        rows = 0
        for table, columns, frame in frames_of(path):
            assert columns == COLUMNS[table]
            found += [(table, tuple(row)) for row in frame]
            rows += len(frame)
        spool.drop(path, rows)
    return found


def flat(groups: list[dict[str, list[tuple]]]) -> list[tuple[str, tuple]]:
    return [(table, row) for group in groups for table, rows in group.items() for row in rows]


@settings(deadline=None, max_examples=40)
@given(batches, st.sampled_from([1, 200, 1 << 20]))
def test_rows_come_back_in_order_from_any_number_of_segments(tmp_path_factory, groups, segment_bytes):
    folder = tmp_path_factory.mktemp("spool") / "h"
    spool = Spool(folder, COLUMNS, segment_bytes=segment_bytes)
    for group in groups:
        spool.append(group)
    assert spool.rows == len(flat(groups))
    spool.close()
    again = Spool(folder, COLUMNS)
    assert again.rows == len(flat(groups))
    assert contents(again) == flat(groups)
    assert again.rows == 0
    again.close()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_torn_tail_costs_only_what_was_never_acknowledged(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("spool") / "h"
    spool = Spool(folder, COLUMNS)
    sizes = []
    for i in range(5):
        spool.append({"a": [(i, "row")]})
        sizes.append(spool.oldest().stat().st_size if i == 99 else next(folder.rglob("*.spool")).stat().st_size)
    spool.close()
    path = next(folder.rglob("*.spool"))
    cut = data.draw(st.integers(0, sizes[-1]))
    os.truncate(path, cut)
    again = Spool(folder, COLUMNS)
    assert contents(again) == [("a", (i, "row")) for i in range(sum(size <= cut for size in sizes))]
    again.close()


@pytest.mark.parametrize("damaged", [0, 1, 3, 5, 12, None], ids=lambda byte: f"byte {byte} of its frame")
def test_damage_inside_a_segment_is_told_apart_from_a_torn_tail(tmp_path: Path, damaged: int | None):
    """A changed length, checksum or payload costs the rows of its frame. Those before and behind it are read.

    None: its head consists of zeros.
    """
    spool = Spool(tmp_path / "h", COLUMNS)
    spool.append({"a": [(1, "first")]})
    size = next(tmp_path.rglob("*.spool")).stat().st_size
    spool.append({"a": [(2, "second")]})
    spool.append({"b": [(b"\x92\x92",)]})
    path = spool.oldest()
    data = bytearray(path.read_bytes())
    if damaged is None:
        data[size : size + HEAD_BYTES] = bytes(HEAD_BYTES)
    else:
        data[size + damaged] ^= 1
    path.write_bytes(data)
    frames = frames_of(path)
    assert [next(frames)[2], next(frames)[2]] == [[[1, "first"]], [[b"\x92\x92"]]]
    with pytest.raises(SpoolDamaged, match=f"damaged at byte {size}$"):
        next(frames)
    spool.set_aside(path, 2)
    assert spool.oldest() is None
    assert path.with_suffix(".damaged").read_bytes() == bytes(data)
    spool.close()
    later = Spool(tmp_path / "h", COLUMNS)
    later.append({"a": [(3, "third")]})
    assert later.oldest().stem != path.stem  # else the next damage would replace this file
    later.close()


@pytest.mark.parametrize("damaged", [0, 16, 30], ids=["magic", "length of the columns", "columns"])
def test_a_segment_without_columns_is_damaged(tmp_path: Path, damaged: int):
    spool = Spool(tmp_path / "h", COLUMNS)
    spool.append({"a": [(1, "row")]})
    path = spool.oldest()
    data = bytearray(path.read_bytes())
    data[damaged] ^= 1
    path.write_bytes(data)
    with pytest.raises(SpoolDamaged):
        list(frames_of(path))
    spool.close()


def test_two_processes_never_share_a_slot_and_leftovers_are_taken_over(tmp_path: Path):
    one, two = Spool(tmp_path / "h", COLUMNS), Spool(tmp_path / "h", COLUMNS)
    one.append({"b": [(1,)]})
    two.append({"b": [(2,)]})
    one.close()
    two.close()
    heir = Spool(tmp_path / "h", COLUMNS)
    assert heir.rows == 2
    assert sorted(contents(heir)) == [("b", (1,)), ("b", (2,))]
    third = Spool(tmp_path / "h", COLUMNS)
    assert third.rows == 0
    heir.close()
    third.close()


def test_a_renamed_host_takes_over_its_rows(tmp_path: Path):
    before, running = Spool(tmp_path / "before", COLUMNS), Spool(tmp_path / "running", COLUMNS)
    before.append({"b": [(1,)]})
    running.append({"b": [(2,)]})
    before.close()
    after = Spool(tmp_path / "after", COLUMNS)
    assert contents(after) == [("b", (1,))], "the other host still writes"
    after.append({"b": [(3,)]})
    assert len(list((tmp_path / "after").rglob("*.spool"))) == 1
    after.close()
    running.close()


@pytest.mark.parametrize("written", [0, 5, 30])
def test_a_full_disk_keeps_nothing_of_the_failed_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int):
    spool = Spool(tmp_path / "h", COLUMNS)
    spool.append({"a": [(1, "kept")]})
    real = os.write

    def full(file: int, data: memoryview) -> int:
        real(file, data[:written])
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(OSError, match="no space"):
        spool.append({"a": [(2, "lost")]})
    monkeypatch.undo()
    spool.append({"a": [(3, "kept too")]})
    assert contents(spool) == [("a", (1, "kept")), ("a", (3, "kept too"))]
    spool.close()


def test_a_segment_that_a_bad_disk_leaves_behind_does_not_end_the_spool(tmp_path, monkeypatch):
    """As a file system that was mounted read-only for a while: nothing can be written, and nothing removed."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, "read-only file system")

    spool = Spool(tmp_path / "h", COLUMNS)
    monkeypatch.setattr(module.os, "write", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="read-only"):
        spool.append({"a": [(1, "lost")]})
    monkeypatch.undo()
    spool.append({"a": [(2, "kept")]})
    assert contents(spool) == [("a", (2, "kept"))]
    spool.close()


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As some network shares: no slot would ever be found free."""
    asked = []

    def flock(*of: int) -> None:
        asked.append(of)
        assert len(asked) < 10
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", flock)
    with pytest.raises(OSError, match="No locks available"):
        Spool(tmp_path / "h", COLUMNS)

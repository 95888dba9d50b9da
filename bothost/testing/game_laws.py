"""The laws of a game, one function each. :func:`bothost.testing.check_game` plays hands and checks them.

A law checks one :class:`Position` without changing it, and raises :class:`Broken` if it does not hold.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from bothost.errors import described, raised_at
from bothost.native import _native
from bothost.rules import Game, Oracle, State, View, fnv1a

LONGEST_HAND = 20_000
"""A hand of random play with more actions than this counts as endless."""


class Broken(Exception):
    """A law does not hold. ``law`` is the law as a sentence, ``str()`` the detail."""

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(detail)
        self.law = law


@dataclass
class Position:
    """A position of a hand: its State, and a view of each seat that was folded from events."""

    game: Game
    state: State
    folded: list[View]
    """By seat: the view folded from the seat's events alone."""
    rng: random.Random

    @property
    def seats(self) -> range:
        return range(self.game.num_seats)

    @property
    def asked(self) -> tuple[int, ...]:
        return self.state.to_act

    def bytes(self) -> list[bytes]:
        return [self.state.view(seat).to_bytes() for seat in self.seats]


Law = Callable[[Position], None]
Hold = Callable[[bool, str], None]


def same(a: View, b: View) -> bool:
    """Whether two views are equal, by their bytes and their JSON."""
    return a.to_bytes() == b.to_bytes() and a.to_json() == b.to_json() and a.seq == b.seq


@contextmanager
def law(sentence: str) -> Iterator[Hold]:
    """Yields ``hold(condition, detail)``. Any other exception in the block also breaks the law."""

    def hold(condition: bool, detail: str) -> None:
        if not condition:
            raise Broken(sentence, detail)

    try:
        yield hold
    except Broken:
        raise
    except Exception as e:
        raise Broken(sentence, f"raised {described(e)} ({raised_at(e)})") from e


def refused(call: Callable[..., Any], *args: Any) -> bool:
    """Whether ``call(*args)`` raises ValueError; other exceptions pass through."""
    try:
        call(*args)
    except ValueError:
        return True
    return False


# Every step


def events_fold_to_the_view(at: Position) -> None:
    with law("Folding the events that a seat received gives exactly state.view(seat).") as hold:
        for seat, folded in enumerate(at.folded):
            view, events = at.state.view(seat), at.state.events(seat)
            hold(view.seat == seat and folded.seat == seat, f"seat {seat}: view.seat is {view.seat}")
            counts = type(view.seq) is int and view.seq == len(events)
            hold(counts, f"seat {seat}: seq is {view.seq!r} after {len(events)} events")
            hold(same(folded, view), f"seat {seat}: folded {folded.to_json()}, but view {view.to_json()}")


def legal_actions_agree(at: Position) -> None:
    with law(
        "state.legal(seat) and view.legal() are equal, ascending, int32 and not empty for an asked seat; "
        "empty for any other."
    ) as hold:
        for seat in at.seats:
            view, ids = at.state.view(seat), at.state.legal(seat)
            asked = seat in at.asked
            hold(view.asked == asked, f"seat {seat}: view.asked is {view.asked}, state.to_act {at.state.to_act}")
            hold(np.array_equal(ids, view.legal()), f"seat {seat}: state {ids}, view {view.legal()}")
            kinds = f"state {_kind(ids)}, view {_kind(view.legal())}"
            hold(kinds == "state int32, view int32", f"seat {seat}: {kinds}")
            hold((len(ids) > 0) == asked, f"seat {seat}: {len(ids)} actions, asked is {asked}")
            hold(bool(np.all(np.diff(ids) > 0)), f"seat {seat}: not ascending: {ids}")
            if len(ids):
                hold(bool(ids[0] >= 0 and ids[-1] < at.game.num_actions), f"seat {seat}: out of range: {ids}")
            legal = set(ids.tolist())
            for action in [*at.rng.sample(sorted(legal), min(3, len(legal))), at.rng.randrange(at.game.num_actions)]:
                hold(view.is_legal(action) == (action in legal), f"seat {seat}: is_legal({action}) is wrong")


def _kind(array: Any) -> str:
    return str(array.dtype) if isinstance(array, np.ndarray) else type(array).__name__


def the_phase_is_a_word(at: Position) -> None:
    with law("view.phase is a printable text that is not empty: the log holds it.") as hold:
        for seat in at.seats:
            phase: Any = at.state.view(seat).phase
            hold(isinstance(phase, str) and phase != "" and phase.isprintable(), f"seat {seat}: phase is {phase!r}")


def whose_turn_is_public(at: Position) -> None:
    with law("view.to_act is the same for all seats: the one seat on turn, or None; views know the end.") as hold:
        turns = {at.state.view(seat).to_act for seat in at.seats}
        hold(len(turns) == 1, f"view.to_act differs between seats: {turns}")
        turn = turns.pop()
        hold(turn is None or (turn,) == at.asked, f"view.to_act is {turn}, state.to_act is {at.asked}")
        hold(at.state.terminal == (not at.asked), f"terminal is {at.state.terminal}, to_act {at.asked}")
        for seat in at.seats:
            hold(at.state.view(seat).terminal == at.state.terminal, f"seat {seat}: the view disagrees about the end")


# Now and then


def illegal_actions_change_nothing(at: Position) -> None:
    with law("An illegal action raises ValueError and changes nothing.") as hold:
        before = at.bytes()
        for seat in at.seats:
            legal = set(at.state.legal(seat).tolist())
            view = at.state.view(seat)
            for action in [-1, at.game.num_actions, *(at.rng.randrange(at.game.num_actions) for _ in range(3))]:
                if action in legal:
                    continue
                hold(refused(at.state.apply, seat, action), f"seat {seat}: {action} was accepted")
                hold(refused(view.apply, action), f"seat {seat}: the view accepted {action}")
            hold(same(view, at.state.view(seat)), f"seat {seat}: the view was changed")
        for seat in (-1, at.game.num_seats):
            hold(refused(at.state.apply, seat, 0), f"seat {seat} was accepted")
        hold(before == at.bytes(), "the state was changed")


def notation_reads_back(at: Position) -> None:
    with law("parse(notation(action)) is the action; a notation is one printable word of its own.") as hold:
        for seat in at.asked:
            legal = at.state.legal(seat).tolist()
            words: dict[str, int] = {}
            for action in at.rng.sample(legal, min(50, len(legal))):
                word = at.game.notation(action)
                hold(word != "" and all("!" <= c <= "~" for c in word), f"the notation of {action} is {word!r}")
                hold(words.setdefault(word, action) == action, f"{word} is both {words[word]} and {action}")
                hold(at.game.parse(word) == action, f"parse({word!r}) is {at.game.parse(word)}, not {action}")
                hold(at.state.view(seat).notation(action) == word, f"view and game name {action} differently")


def views_read_back(at: Position) -> None:
    with law("A view reads back from its bytes, from its JSON (through text) and from its JSON as a snapshot.") as hold:
        for seat in at.seats:
            view = at.state.view(seat)
            data, tree = view.to_bytes(), msgspec.json.decode(msgspec.json.encode(view.to_json()))
            hold(same(at.game.view_from_bytes(data), view), f"seat {seat}: bytes {data.hex()}")
            hold(same(at.game.view_from_json(tree), view), f"seat {seat}: JSON {tree}")
            hold(same(at.game.view_from_snapshot(tree), view), f"seat {seat}: snapshot {tree}")
            other_order = backwards(tree)
            hold(same(at.game.view_from_json(other_order), view), f"seat {seat}: JSON with keys in another order")
            hold(fnv1a(data) == view.hash(), f"seat {seat}: hash() is not the FNV-1a of the bytes")


def backwards(tree: Any) -> Any:
    """The same JSON with the keys of all objects in reverse order."""
    if isinstance(tree, dict):
        return {key: backwards(tree[key]) for key in reversed(tree)}
    return [backwards(item) for item in tree] if isinstance(tree, list) else tree


def samples_fit_the_view(at: Position) -> None:
    with law("view.sample_state(seed) is a state whose view(seat) is this view, the same for equal seeds.") as hold:
        for seat in at.seats:
            view, seed = at.state.view(seat), at.rng.getrandbits(64)
            state, again = view.sample_state(seed), view.sample_state(seed)
            hold(same(state.view(seat), view), f"seat {seat}: {view.to_json()} became {state.view(seat).to_json()}")
            hold(np.array_equal(state.legal(seat), view.legal()), f"seat {seat}: other legal actions")
            hold(all(same(state.view(s), again.view(s)) for s in at.seats), f"seat {seat}: seed {seed} gave two states")
            hold(same(at.state.view(seat), view), f"seat {seat}: sampling changed the view")


def samples_play_to_the_end(at: Position) -> None:
    with law("A sampled state plays on to an end, and its events fold into the view that it was made from.") as hold:
        seat = at.rng.randrange(at.game.num_seats)
        view = at.state.view(seat)
        state = view.sample_state(at.rng.getrandbits(64))
        for _ in range(LONGEST_HAND):
            if state.terminal:
                return
            who = at.rng.choice(state.to_act)
            state.apply(who, int(at.rng.choice(state.legal(who))))
            view.observe_all(state.events(seat, view.seq))
            hold(same(view, state.view(seat)), f"seat {seat}: {view.to_json()}, but {state.view(seat).to_json()}")
        hold(False, f"no end after {LONGEST_HAND} actions")


def clones_are_independent(at: Position) -> None:
    with law("A clone equals its original, and neither changes with the other.") as hold:
        before, clone = at.bytes(), at.state.clone()
        hold([clone.view(s).to_bytes() for s in at.seats] == before, "a cloned state differs")
        hold(clone.actions == at.state.actions, "a cloned state has other actions")
        if at.asked:
            seat = at.rng.choice(at.asked)
            action = int(at.rng.choice(clone.legal(seat)))
            mine = at.state.view(seat)
            copy = mine.clone()
            clone.apply(seat, action)
            copy.apply(action)
            hold(same(mine, at.state.view(seat)), "a view changed with its clone")
        hold(at.bytes() == before, "a state changed with its clone")


def own_actions_fold(at: Position) -> None:
    with law("view.apply(action) folds the first events that the action causes; the rest follow by observe.") as hold:
        for seat in at.asked:
            action = int(at.rng.choice(at.state.legal(seat)))
            word = at.game.notation(action)
            view, state = at.state.view(seat), at.state.clone()
            view.apply(action)
            state.apply(seat, action)
            events = state.events(seat)
            if len(at.asked) > 1 and view.seq > len(events):
                continue  # a claim is folded as if no other seat beats it
            hold(view.seq <= len(events), f"seat {seat}, {word}: more events than there were")
            view.observe_all(events[view.seq :])
            hold(same(view, state.view(seat)), f"seat {seat}, {word}: {view.to_json()}, {state.view(seat).to_json()}")


def simultaneous_answers_stay_hidden(at: Position) -> None:
    with law("While several seats are asked, an answer is an event to its own seat alone.") as hold:
        if len(at.asked) < 2:
            return
        state, seat = at.state.clone(), at.rng.choice(at.asked)
        before = [len(state.events(s)) for s in at.seats]
        state.apply(seat, int(at.rng.choice(state.legal(seat))))
        for other in at.seats:
            if other != seat:
                hold(len(state.events(other)) == before[other], f"seat {other} saw the answer of seat {seat}")


def blocks_encode(at: Position) -> None:
    with law("Encoder blocks are finite float32 arrays of their declared shape, written into out where given.") as hold:
        for seat in at.asked:
            view = at.state.view(seat)
            again, legal = at.game.view_from_bytes(view.to_bytes()), view.legal()[:20]
            for name, block in at.game.blocks.items():
                if block.of == "oracle":
                    _oracle_encodes(at, seat, name, block.shape, hold)
                    continue
                shape = block.shape if block.of == "view" else (len(legal), *block.shape)
                out = np.full(shape, np.nan, np.float32)
                if block.of == "view":
                    made, _, values = view.encode(name), view.encode(name, out), again.encode(name)
                else:
                    made, values = view.encode_actions(name, legal), again.encode_actions(name, legal)
                    view.encode_actions(name, legal, out)
                hold(_kind(made) == "float32" and made.shape == shape, f"{name}: {_kind(made)} {np.shape(made)}")
                hold(bool(np.isfinite(made).all()), f"{name}: not finite")
                hold(np.array_equal(made, out), f"{name}: out was not filled with the same values")
                hold(np.array_equal(made, values), f"{name}: differs after a round trip through bytes")


def _oracle_encodes(at: Position, seat: int, name: str, shape: tuple[int, ...], hold: Hold) -> None:
    if isinstance(at.state, _native.State):
        made = Oracle(at.state, seat).encode(name)
        hold(made.shape == shape and bool(np.isfinite(made).all()), f"{name}: {made.shape}, or not finite")
        hold(refused(at.state.view(seat).encode, name), f"{name}: a view gave an oracle block")


def events_are_lines(at: Position) -> None:
    with law("An event is one line of text, 'kind seat …'; events(seat, since) is the stream from there on.") as hold:
        for seat in at.seats:
            events = at.state.events(seat)
            since = at.rng.randint(0, len(events) + 1)
            hold(at.state.events(seat, since) == events[since:], f"seat {seat}: since={since} is not a slice")
            for event in events:
                words = event.split(" ")
                hold(len(words) >= 2 and all(words), f"seat {seat}: {event!r}")
                hold(all(" " <= c <= "~" for c in event), f"seat {seat}: {event!r}")
                actor = words[1]
                known = actor == "-" or (actor.isdigit() and int(actor) < at.game.num_seats)
                hold(known, f"seat {seat}: no such actor in {event!r}")


def bad_events_change_nothing(at: Position) -> None:
    with law("An event that cannot be is refused with ValueError, and changes nothing.") as hold:
        seat = at.rng.randrange(at.game.num_seats)
        event = at.rng.choice(at.state.events(seat) or ["deal 0"])
        cut = at.rng.randrange(len(event))
        for bad in ["", "?", event[:cut], f"{event} x", event.replace(" ", "\n"), "é" * 9, "\x00", "x" * 5000]:
            view = at.state.view(seat)
            if refused(view.observe, bad):
                hold(same(view, at.state.view(seat)), f"seat {seat}: {bad!r} was refused, but the view changed")
        hold(refused(at.state.view(seat).observe, "no-such-event -"), "an unknown event was accepted")


def decoders_refuse_with_value_error(at: Position) -> None:
    with law("Decoders raise nothing but ValueError, and what they accept can be used.") as hold:
        view = at.state.view(at.rng.randrange(at.game.num_seats))
        data = view.to_bytes()
        hold(refused(at.game.view_from_bytes, b""), "empty bytes were accepted")
        hold(refused(at.game.view_from_bytes, data + b"\0"), "bytes left over were accepted")
        for _ in range(5):
            bad = bytearray(data)
            bad[at.rng.randrange(len(bad))] ^= 1 << at.rng.randrange(8)
            for form in (bytes(bad), bytes(bad[: at.rng.randrange(len(bad))])):
                _decode_and_use(at.game.view_from_bytes, form)
        for tree in mutations(view.to_json(), at.rng):
            _decode_and_use(at.game.view_from_json, tree)
            _decode_and_use(at.game.view_from_snapshot, tree)
        for tree in mutations(at.state.deal, at.rng):
            refused(at.game.state_from_deal, tree)
        for word in ["", "?", " ", "-1", "1.5", "é" * 9, "\x00", "x" * 5000]:
            refused(at.game.parse, word)
            refused(view.parse, word)


def _decode_and_use(decode: Callable[[Any], View], data: Any) -> None:
    try:
        view = decode(data)
    except ValueError:
        return
    use(view)


def use(view: View) -> None:
    """Call everything that a host may call on a view. ``sample_state`` may raise ValueError if no deal fits."""
    legal = view.legal()
    view.to_json()
    view.record()
    view.game.view_from_bytes(view.to_bytes())
    for name, block in view.game.blocks.items():
        if block.of == "view":
            view.encode(name)
        elif block.of == "action":
            view.encode_actions(name, legal[:5])
    refused(view.sample_state, 1)


def mutations(tree: Any, rng: random.Random, n: int = 6) -> Iterator[Any]:
    """``n`` JSON objects that differ from ``tree`` in one place."""
    junk: list[Any] = [None, True, -1, 0, 7, 2**40, 1.5, "", "x", [], {}, [[]], {"x": 1}]
    for _ in range(n):
        yield _mutated(tree, rng, junk)


def _mutated(tree: Any, rng: random.Random, junk: list[Any]) -> Any:
    if isinstance(tree, dict) and tree:
        key = rng.choice(sorted(tree))
        return {k: v for k, v in tree.items() if k != key or rng.random() < 0.8} | (
            {key: _mutated(tree[key], rng, junk)} if rng.random() < 0.8 else {}
        )
    if isinstance(tree, list) and tree and rng.random() < 0.8:
        i = rng.randrange(len(tree))
        return [*tree[:i], _mutated(tree[i], rng, junk), *tree[i + rng.randint(0, 1) :]]
    return rng.choice(junk)


def returns_come_at_the_end(at: Position) -> None:
    with law("returns is a tuple of finite Python floats, one per seat, and raises ValueError before the end.") as hold:
        if not at.state.terminal:
            hold(refused(lambda: at.state.returns), "returns were given before the end")
            return
        returns = at.state.returns
        hold(type(returns) is tuple, f"returns is of type {type(returns).__name__}")
        hold(len(returns) == at.game.num_seats, f"returns {returns} for {at.game.num_seats} seats")
        hold(all(type(r) in (float, int) and math.isfinite(r) for r in returns), f"returns {returns!r}")


def the_record_is_the_hand(at: Position) -> None:
    with law("After the reveal every seat's record() replays the hand; before it, record() is None.") as hold:
        for seat in at.seats:
            record = at.state.view(seat).record()
            hold((record is not None) == at.state.terminal, f"seat {seat}: record() is {record}")
            if record is not None:
                again = at.game.replay(*record)
                # By seat, because nobody can know the order of simultaneous answers.
                hold(
                    sorted(again.actions, key=itemgetter(0)) == sorted(at.state.actions, key=itemgetter(0)),
                    f"seat {seat}: {again.actions}, not {at.state.actions}",
                )
                _replay_is_the_hand(at, again, hold)


def deals_replay(at: Position) -> None:
    with law("replay(state.deal, state.actions) gives the same hand, with the same events.") as hold:
        deal = backwards(msgspec.json.decode(msgspec.json.encode(at.state.deal)))
        _replay_is_the_hand(at, at.game.replay(deal, at.state.actions), hold)


def _replay_is_the_hand(at: Position, again: State, hold: Hold) -> None:
    for seat in at.seats:
        hold(again.events(seat) == at.state.events(seat), f"seat {seat}: other events after a replay")
        hold(same(again.view(seat), at.state.view(seat)), f"seat {seat}: another view after a replay")
    if at.state.terminal:
        hold(again.returns == at.state.returns, f"returns {again.returns}, not {at.state.returns}")


EVERY_STEP: tuple[Law, ...] = (
    events_fold_to_the_view,
    legal_actions_agree,
    the_phase_is_a_word,
    whose_turn_is_public,
)
"""Checked at every position, because they are cheap and a breach may show at one position only."""

NOW_AND_THEN: tuple[Law, ...] = (
    returns_come_at_the_end,
    events_are_lines,
    notation_reads_back,
    views_read_back,
    own_actions_fold,
    simultaneous_answers_stay_hidden,
    illegal_actions_change_nothing,
    clones_are_independent,
    samples_fit_the_view,
    blocks_encode,
    deals_replay,
    the_record_is_the_hand,
    bad_events_change_nothing,
    decoders_refuse_with_value_error,
    samples_play_to_the_end,
)
"""Checked at some positions of every hand, including the first and the last."""

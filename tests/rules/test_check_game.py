"""The conformance kit passes a sound plain-Python game, and says in words which law a broken one breaks."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from bothost import rules
from bothost.errors import PluginError, UsageError
from bothost.testing.check_game import check_game
from bothost.testing.game_laws import Broken as BrokenLaw
from bothost.testing.game_laws import Position, the_record_is_the_hand
from bothost.testing.nim import NIM, Nim, NimState, NimView, make_nim


def test_a_sound_game_in_plain_python_passes():
    assert check_game(Nim(), n=30) == []
    assert check_game(Nim(stones=1), n=3) == []


@pytest.mark.parametrize("text", ["[" * 100_000, '{"seat":' + "[" * 900 + "]" * 900 + "}"])
def test_nested_bytes_are_no_view(text):
    """Bytes of a log may be anything: whoever reads them expects a ValueError."""
    with pytest.raises(ValueError):
        Nim().view_from_bytes(bytes([Nim.format_version]) + text.encode())


@dataclass(frozen=True)
class Broken(Nim):
    """Nim whose state or view is replaced by one with a fault."""

    state: type[NimState] = NimState
    view: type[NimView] = NimView

    def state_from_deal(self, deal):
        return self.state(self, super().state_from_deal(deal).bonus)

    def new_state(self, seed):
        return self.state(self, super().new_state(seed).bonus)

    def new_view(self, seat):
        sound = super().new_view(seat)
        return self.view(self, sound.seat)


class TellsTooLittle(NimState):
    def apply(self, seat, action):
        super().apply(seat, action)
        self.streams[1 - seat].pop()


class CountsWrong(NimView):
    @property
    def seq(self):
        return super().seq * 2


class ForgetsMoves(NimView):
    def to_bytes(self):
        return super().to_bytes()[:3] + bytes(len(super().to_bytes()[3:]))


class OverlooksAMove(NimView):
    def legal(self):
        return super().legal()[:1]


class ListsWideNumbers(NimView):
    def legal(self):
        return super().legal().astype(np.int64)


class EncodesNothing(NimView):
    def encode(self, block, out=None):
        values = super().encode(block, out)
        values[:] = np.nan
        return values


class TakesAnything(NimState):
    def apply(self, seat, action):
        if action in self.legal(seat):
            super().apply(seat, action)


class SharesItsMoves(NimState):
    def clone(self):
        return self.game.state(self.game, self.bonus, self.moves, self.streams)


class PeeksAtTheOther(NimView):
    """Samples states in which it holds another bonus itself."""

    def sample_state(self, seed):
        state = super().sample_state(seed)
        return self.game.state(self.game, [3 - b for b in state.bonus], state.moves, state.streams)


class PaysBeforeTheEnd(NimState):
    @property
    def returns(self):
        return (0.0, 0.0)


class PaysInNumpy(NimState):
    @property
    def returns(self):
        return tuple(np.array(super().returns))


class PaysInAList(NimState):
    @property
    def returns(self):
        return list(super().returns)


class CountsInNumpy(NimView):
    @property
    def seq(self):
        return np.int64(super().seq)


class ListsASet(Nim):
    @property
    def rules(self):
        return {"stones": {self.stones}}


class NeverEnds(NimState):
    @property
    def left(self):
        return 3


class NeverEndsView(NimView):
    @property
    def left(self):
        return 3


class KeepsTheRecord(NimView):
    def record(self):
        return None


class ChokesOnJson(Nim):
    def view_from_json(self, data):
        return super().view_from_json({**data, "seat": data["seat"] + 0})


class KnowsItsWordsAlone(Nim):
    def parse(self, text):
        return {self.notation(action): action for action in range(self.num_actions)}[text]


class EncodesDoubles(NimView):
    def encode(self, block, out=None):
        values = super().encode(block, out)
        return values if out is not None else values.astype(np.float64)


class ObservesHalf(NimView):
    def observe(self, event):
        if event.startswith("take"):
            self.moves.append(1)
            self.moves.pop() if event.split(" ")[2:] in (["1"], ["2"], ["3"]) else None
        super().observe(event)


class ListsAList(NimView):
    def legal(self):
        return super().legal().tolist()


class EncodesAList(NimView):
    def encode(self, block, out=None):
        return super().encode(block, out).tolist()


class HasNoPhase(NimView):
    phase = None


class Misspells(NimState):
    def apply(self, seat, action):
        self.move.append(action)


CASES = [
    (Broken(view=ListsAList), "state int32, view list"),
    (Broken(view=EncodesAList), r"pile: list \(2,\)"),
    (Broken(view=HasNoPhase), "phase is None"),
    (Broken(state=Misspells), r"no attribute 'move'.* \(test_check_game.py:\d+\)"),
    (Broken(state=TellsTooLittle), "Folding the events"),
    (Broken(view=CountsWrong), "Folding the events"),
    (Broken(view=ForgetsMoves), "reads back from its bytes"),
    (Broken(view=OverlooksAMove), r"state.legal\(seat\) and view.legal\(\) are equal"),
    (Broken(view=ListsWideNumbers), "state int32, view int64"),
    (Broken(view=EncodesNothing), "pile: not finite"),
    (Broken(state=TakesAnything), "An illegal action raises ValueError"),
    (Broken(state=SharesItsMoves), "neither changes with the other"),
    (Broken(view=PeeksAtTheOther), "a state whose view"),
    (Broken(state=PaysBeforeTheEnd), "raises ValueError before the end"),
    (Broken(state=PaysInNumpy), r"returns \(np.float64"),
    (Broken(state=PaysInAList), "returns is of type list"),
    (Broken(view=CountsInNumpy), r"seq is np.int64\(1\)"),
    (ListsASet(), r"rules reads back from its JSON"),
    (Broken(view=KeepsTheRecord), "record"),
    (ChokesOnJson(), "Decoders raise nothing but ValueError"),
    (KnowsItsWordsAlone(), "Decoders raise nothing but ValueError.*\n.*KeyError"),
    (Broken(view=EncodesDoubles), "float32"),
    (Broken(view=ObservesHalf), "changes nothing"),
]


@pytest.mark.parametrize(("game", "law"), CASES, ids=[law for _, law in CASES])
def test_a_breach_is_named(game: Nim, law: str):
    breaches = check_game(game, n=8)
    assert breaches
    assert any(re.search(law, str(b)) for b in breaches), breaches
    assert all(b.law in str(b) and "seed" in b.where for b in breaches)


def test_what_makes_a_game_is_no_game():
    with pytest.raises(UsageError, match="make_nim is no game") as told:
        check_game(make_nim)
    assert "check_game(make_my_game())" in told.value.advice


class Batch:
    """A sound VecEnv of Nim, one state for each environment."""

    def __init__(self, game, n, seed):
        self.game, self.n, self._seeds = game, n, iter(range(seed, seed + 1000))
        self._states = [game.new_state(next(self._seeds)) for _ in range(n)]
        self._returns, self.done = np.zeros((n, game.num_seats), np.float32), np.zeros(n, np.bool_)
        self._list()

    returns = property(lambda self: self._returns)

    def _list(self):
        self.seat = np.array([min(state.to_act) for state in self._states], np.int8)
        ids = [state.legal(seat) for state, seat in zip(self._states, self.seat.tolist(), strict=True)]
        self.legal_offsets = np.cumsum([0, *map(len, ids)]).astype(np.int64)
        self.legal_ids = np.concatenate(ids)

    def deal(self, index):
        return self._states[index].deal

    def step(self, actions):
        self._returns[:], self.done[:] = 0.0, False
        for i, state in enumerate(self._states):
            state.apply(int(self.seat[i]), int(actions[i]))
            if state.terminal:
                self._returns[i], self.done[i] = state.returns, True
                self._states[i] = self.game.new_state(next(self._seeds))
        self._list()


class BatchOfLists(Batch):
    returns = property(lambda self: self._returns.tolist())


@dataclass(frozen=True)
class NimInBatches(Nim):
    kind: type[Batch] = Batch

    def vec_env(self, n, seed):
        return self.kind(self, n, seed)


def test_a_batch_holds_arrays():
    assert check_game(NimInBatches(), n=2) == []
    breaches = check_game(NimInBatches(kind=BatchOfLists), n=2)
    assert [b.detail for b in breaches] == ["returns is a list, not float32 (3, 2)"]


class Pennies:
    """Both seats show a side at once. A game, a finished hand of it, and its view: what the law asks for, no more."""

    num_seats, terminal, deal, seq, returns = 2, True, {}, 1, (0.0, 0.0)

    def __init__(self, *actions, recorded=((0, 1), (1, 0))):
        self.actions, self.recorded = list(actions), list(recorded)

    def view(self, seat):
        return self

    def events(self, seat):
        return [f"show - {sorted(self.actions)}"]

    def record(self):
        return {}, self.recorded

    def replay(self, deal, actions):
        return Pennies(*actions)

    def to_json(self):
        return {"shown": sorted(self.actions)}

    def to_bytes(self):
        return str(self.to_json()).encode()


def test_a_record_has_all_simultaneous_answers_in_any_order():
    answers = (1, 0), (0, 1)
    the_record_is_the_hand(Position(Pennies(), Pennies(*answers), [], random.Random()))
    for recorded in ([], [(0, 1)], [(0, 0), (1, 1)]):
        with pytest.raises(BrokenLaw):
            the_record_is_the_hand(Position(Pennies(), Pennies(*answers, recorded=recorded), [], random.Random()))


def test_an_endless_game_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bothost.testing.game_laws.LONGEST_HAND", 40)
    breaches = check_game(Broken(state=NeverEnds, view=NeverEndsView), n=1)
    assert any("end" in b.law.lower() for b in breaches)


@pytest.fixture
def registered() -> Iterator[None]:
    rules.register_game(NIM)
    yield
    rules.forget_game("nim")


def test_a_registered_game_is_found_by_name(registered: None):
    assert "nim" in rules.games()
    assert rules.presets("nim") == ("default",)
    assert rules.game("nim", preset="default") == rules.game("nim") == Nim()
    with pytest.raises(ValueError, match="preset"):
        rules.game("nim", preset="other")
    game = rules.game("nim", stones=4)
    assert game.rules == {"stones": 4}
    assert isinstance(game, Nim)
    rules.register_game(NIM)  # twice the same is no conflict
    with pytest.raises(UsageError, match="already has the name 'nim'"):
        rules.register_game(rules.GameFactory("nim", lambda: Nim()))
    with pytest.raises(UsageError, match="already has the name 'othello'"):
        rules.register_game(rules.GameFactory("othello", lambda: Nim()))


def test_a_game_has_the_name_of_its_factory(registered: None):
    """Or that of another game. The log names it so: nobody could read the hands of a game of an unknown name."""
    rules.register_game(rules.GameFactory("nim-of-12", lambda: Nim(stones=12)))
    rules.register_game(rules.GameFactory("renamed", lambda: Nim(name="min")))
    try:
        assert rules.game("nim-of-12") == Nim(stones=12)
        with pytest.raises(PluginError, match="renamed: its game is named 'min'") as caught:
            rules.game("renamed")
        assert caught.value.advice == "name it 'renamed'"
    finally:
        rules.forget_game("nim-of-12")
        rules.forget_game("renamed")


def test_an_unknown_game_names_the_nearest():
    with pytest.raises(UsageError) as e:
        rules.game("otello")
    assert "othello" in e.value.advice
    with pytest.raises(UsageError) as e:
        rules.presets("zzz")
    assert "othello" in e.value.advice


def test_a_game_without_batches_says_so():
    with pytest.raises(UsageError, match="no batch environment"):
        rules.vec_env(Nim(), 4)

"""Real and made-up hands as Botzone tells them. The judge here follows the platform's protocol, not our reader."""

from __future__ import annotations

import json
from pathlib import Path

from bothost import rules
from bothost.rules.game import State

TESTS = Path(__file__).parents[1]
GAMES = [
    json.loads(line) for line in (TESTS / "rules" / "mahjong" / "games.jsonl").read_text(encoding="utf-8").splitlines()
]
"""44 real games of mahjong; ``tests/rules/mahjong/README.md`` describes them."""
WINDS = ("east", "south", "west", "north")
SHARED = TESTS.parents[1] / "shared" / "data"
"""Where the originals may lie beside a checkout."""
SUITS = "3456789TJQKA2"
SHORTEST = "e6 f4 e3 f6 g5 d6 e7 f5 c5"
"""The shortest game of Othello: black takes every disc."""


def claiming(state: State) -> bool:
    return not state.terminal and state.view(state.to_act[0]).phase in ("claims", "robbing")


def mahjong_steps(game: dict) -> list[dict]:
    """Requests and answers of the platform's judge for a game of ``games.jsonl``."""
    wall = game["wall"].split()
    shares = [wall[34 * seat : 34 * seat + 34] for seat in range(4)]
    wind = WINDS.index(game["prevalent_wind"])
    steps: list[dict] = []

    def ask(content: list[str], answers: dict[int, str]) -> None:
        steps.append({"judge": "request", "content": content})
        steps.append({"answers": [answers.get(seat, "PASS") for seat in range(4)]})

    ask([f"0 {seat} {wind}" for seat in range(4)], {})
    ask([f"1 0 0 0 0 {' '.join(shares[seat].pop() for _ in range(13))}" for seat in range(4)], {})
    turn, claimed, robbing, last = 0, False, False, ""
    for text in game["rounds"].split():
        answers = {} if text == "-" else {int(a[0]): a[2:].split("+") for a in text.split(",")}
        if claimed:  # answers to what was told last
            told = {seat: _answer(words) for seat, words in answers.items()}
            steps[-1]["answers"] = [told.get(seat, "PASS") for seat in range(4)]
            winner = _winner(answers, turn)
            claimed = False
            if winner is None:
                turn = turn if robbing else (turn + 1) % 4
                continue
            words = answers[winner]
            if words[0] == "hu":
                break
            turn = winner
            if words[0].startswith("gang"):
                ask([f"3 {winner} GANG"] * 4, {})
                continue
            event = "PENG" if words[0].startswith("peng") else f"CHI {words[0][4:]}"
            ask([f"3 {winner} {event} {words[1][5:]}"] * 4, {})
            claimed, robbing = True, False
            continue
        if not answers:  # nobody could do anything
            continue
        ((seat, words),) = answers.items()
        assert seat == turn, (seat, turn, text)
        tile = shares[seat].pop()
        draw = [f"2 {tile}" if each == seat else f"3 {seat} DRAW" for each in range(4)]
        verb, _, last = words[0].partition(":")
        said = {"play": f"PLAY {last}", "angang": f"GANG {last}", "bugang": f"BUGANG {last}", "hu": "HU"}[verb]
        ask(draw, {seat: said})
        if verb == "hu":
            break
        ask([f"3 {seat} " + {"play": f"PLAY {last}", "angang": "GANG", "bugang": f"BUGANG {last}"}[verb]] * 4, {})
        claimed, robbing = verb in ("play", "bugang"), verb == "bugang"
    return [*steps, {"judge": "finish", "content": game["scores"]}]


def _answer(words: list[str]) -> str:
    verb, _, tile = words[0].partition(":")
    discard = words[1][5:] if len(words) > 1 else "J1"  # of a beaten claim the text tells no discard
    return {"pass": "PASS", "hu": "HU", "gang": "GANG", "peng": f"PENG {discard}", "chi": f"CHI {tile} {discard}"}[verb]


def _winner(answers: dict[int, list[str]], turn: int) -> int | None:
    """The seat whose claim goes through: a win before a pung or kong before a chow, then the nearest."""
    rank = {"hu": 0, "gang": 1, "peng": 1, "chi": 2}
    wanted = [
        (rank[words[0].split(":")[0]], (seat - turn) % 4, seat) for seat, words in answers.items() if words[0] != "pass"
    ]
    return min(wanted)[2] if wanted else None


def flower_steps(seed: int) -> tuple[list[dict], State]:
    """Requests and answers of a game with flowers, whose players discard what they drew and claim nothing."""
    state = rules.game("mahjong", preset="botzone", flowers=True).new_state(seed)
    steps: list[dict] = []

    def ask(content: list[str], answers: dict[int, str]) -> None:
        steps.append({"judge": "request", "content": content})
        steps.append({"answers": [answers.get(seat, "PASS") for seat in range(4)]})

    def laid() -> list[list[str]]:
        return [event.split()[1:] for event in state.events(0) if event.startswith("flower")]

    ask([f"0 {seat} {WINDS.index(state.deal['prevalent_wind'])}" for seat in range(4)], {})
    hands = [state.view(seat).to_json()["hand"] for seat in range(4)]
    hands[0].remove(state.view(0).to_json()["drawn"])
    told = laid()
    flowers = [[flower for who, flower in told if who == str(seat)] for seat in range(4)]
    counts = " ".join(str(len(own)) for own in flowers)
    shown = " ".join(flower for own in flowers for flower in own)
    ask([f"1 {counts} {' '.join(hands[seat])} {shown}" for seat in range(4)], {})
    while not state.terminal:
        (seat,) = state.to_act
        for who, flower in laid()[len(told) :]:
            ask([f"3 {who} BUHUA {flower}"] * 4, {})
        told = laid()
        drawn = state.view(seat).to_json()["drawn"]
        ask([f"2 {drawn}" if each == seat else f"3 {seat} DRAW" for each in range(4)], {seat: f"PLAY {drawn}"})
        state.apply(seat, state.game.parse(f"play:{drawn}"))
        ask([f"3 {seat} PLAY {drawn}"] * 4, {})
        while claiming(state):
            state.apply(state.to_act[0], state.game.parse("pass"))
    return [*steps, {"judge": "finish", "content": list(state.returns)}], state


def match_log(steps: list[dict], **more: object) -> dict:
    """The same as a match log of the platform."""
    logs: list[dict] = []
    for step in steps:
        if "answers" in step:
            logs.append({str(s): {"verdict": "OK", "response": said} for s, said in enumerate(step["answers"])})
        else:
            content = {str(seat): said for seat, said in enumerate(step["content"])}
            logs.append({"output": {"command": step["judge"], "content": content, "display": {}}})
    return {"logs": logs, **more}


def doudizhu_match(seed: int, *, bidding: bool = False) -> tuple[dict, State]:
    """A match of three who play at random, as a match log, and its last state."""
    import random

    rng = random.Random(seed)
    state = rules.game("doudizhu", preset="botzone-bid" if bidding else "botzone").new_state(seed)
    numbers = {rank: [4 * at + suit for suit in range(4)] for at, rank in enumerate(SUITS)} | {"B": [52], "R": [53]}
    deal = state.deal
    hands = [[numbers[rank].pop() for rank in hand] for hand in deal["hands"]]
    bottom = [numbers[rank].pop() for rank in deal["bottom"]]
    dealt = [list(hand) for hand in hands]
    if not bidding:
        hands[0] += bottom
    logs: list[dict] = []
    bids: list[int] = []
    plays: list[list[int]] = []
    settled = not bidding
    while not state.terminal:
        (seat,) = state.to_act
        view = state.view(seat)
        action = int(rng.choice(list(view.legal())))
        word = view.notation(action)
        if view.phase == "bid":
            request: dict = {"own": dealt[seat], "bid": list(bids)}
            response: object = int(word[3:])
            bids.append(int(word[3:]))
        else:
            if not settled:
                landlord = view.to_json()["landlord"]
                hands[landlord] += bottom
                settled = True
            request = {"history": [[], [], *plays][-2:]}
            if not any(f"{seat}" in entry for entry in logs[1::2]) or (bidding and len(plays) < 3):
                own = dealt[seat] if bidding else hands[seat]
                request |= {"own": own, "publiccard": bottom}
                if bidding:
                    request |= {"landlord": view.to_json()["landlord"], "pos": seat, "finalbid": max(bids)}
            response = [] if word == "pass" else _pick(hands[seat], word)
            hands[seat] = [card for card in hands[seat] if card not in response]
            plays.append(response)
        logs.append({"output": {"command": "request", "content": {str(seat): request}}})
        logs.append({str(seat): {"verdict": "OK", "response": response}})
        state.apply(seat, action)
    content = {str(seat): score for seat, score in enumerate(state.returns)}
    logs.append({"output": {"command": "finish", "content": content}})
    return {"_id": f"5f{seed:022x}", "players": _bots(3), "logs": logs}, state


def _pick(hand: list[int], ranks: str) -> list[int]:
    picked: list[int] = []
    for rank in ranks:
        kind = {"B": 52, "R": 53}.get(rank)
        fitting = (c for c in hand if c not in picked and (c == kind if kind else c < 52 and SUITS[c // 4] == rank))
        picked.append(next(fitting))
    return picked


def _bots(seats: int) -> list[dict]:
    names = ("ada", "ben", "cat", "dan")
    return [{"type": "bot", "bot": {"_id": f"id-{name}", "name": name}} for name in names[:seats]]


def reversi_match() -> dict:
    logs: list[dict] = []
    before = {"x": -1, "y": -1}
    for number, square in enumerate(SHORTEST.split()):
        move = {"x": "abcdefgh".index(square[0]), "y": int(square[1]) - 1}
        logs.append({"output": {"command": "request", "content": {str(number % 2): before}}})
        logs.append({str(number % 2): {"verdict": "OK", "response": move}})
        before = move
    logs.append({"output": {"command": "finish", "content": {"0": 2, "1": 0}}})
    return {"_id": "5" * 24, "players": _bots(2), "logs": logs}


def competition_text(game: dict, name: str) -> str:
    """A game of ``games.jsonl`` in the text of the competitions."""
    state = rules.game("mahjong", preset="botzone").state_from_deal(
        {"prevalent_wind": game["prevalent_wind"], "wall": game["wall"].split()}
    )
    wall = game["wall"].split()
    shares = [wall[34 * seat : 34 * seat + 34] for seat in range(4)]
    lines = [f"Match {name}", f"Wind {WINDS.index(game['prevalent_wind'])}"]
    lines += [f"Player {seat} Deal {' '.join(shares[seat].pop() for _ in range(13))}" for seat in range(4)]
    verbs = {"play": "Play", "angang": "AnGang", "bugang": "BuGang", "hu": "Hu", "peng": "Peng", "gang": "Gang"}
    verbs["chi"] = "Chi"
    last, drawn = "", ""
    for text in game["rounds"].split():
        answers = {} if text == "-" else {int(a[0]): a[2:].split("+") for a in text.split(",")}
        if claiming(state):
            turn = int(state.view(state.to_act[0]).to_json()["actor"])
            for seat in state.to_act:
                state.apply(seat, state.game.parse(answers.get(seat, ["pass"])[0]))
            winner = _winner(answers, turn)
            if winner is None:
                continue
            order = [winner, *(seat for seat in answers if seat != winner and answers[seat][0] != "pass")]
            said = [(s, *answers[s][0].partition(":")[::2]) for s in order]
            told = [f"Player {s} {verbs[verb]} {tile or last}" for s, verb, tile in said]
            lines.append(" Ignore ".join(told))
            if not state.terminal and state.view(winner).phase == "discard":
                state.apply(winner, state.game.parse(answers[winner][1]))
                last = answers[winner][1][5:]
                lines.append(f"Player {winner} Play {last}")
            continue
        if not answers:
            continue
        ((seat, words),) = answers.items()
        drawn = shares[seat].pop()
        lines.append(f"Player {seat} Draw {drawn}")
        verb, _, tile = words[0].partition(":")
        lines.append(f"Player {seat} {verbs[verb]} {tile or drawn}")
        last = tile
        state.apply(seat, state.game.parse(words[0]))
    if not game["fans"]:
        lines.append("Huang")
    fans = "+".join(f"{name}*{count}" for name, count in game["fans"].items())
    lines += [f"Fan {sum(game['fans'].values())} {fans}", f"Score {' '.join(map(str, game['scores']))}", ""]
    return "\n".join(lines)

"""Warm start: imitating the rule player before PPO, to be reported separately from pure training."""

from __future__ import annotations

import numpy as np
import torch

from bothost.rules import Game, mahjong
from bothost.training.ppo import Float, masked_log_probs, value_loss
from bothost_mahjong_ppo.decide import REWARD_SCALE
from bothost_mahjong_ppo.encode import ACTIONS
from bothost_mahjong_ppo.model import OBSERVATION
from bothost_mahjong_ppo.selfplay import observe

MINIBATCH = 64
PASSES = 3
"""Over each chunk of hands."""


def lessons(game: Game, hands: int, seed: int) -> tuple[Float, np.ndarray, np.ndarray, Float]:
    """Decisions of four rule players: observations (n, 6836), masks (n, 193), actions (n,), scaled scores (n,)."""
    rng = np.random.default_rng(seed)
    observations: list[Float] = []
    masks: list[np.ndarray] = []
    actions: list[int] = []
    scores: list[float] = []
    for number in range(hands):
        state = game.new_state((seed + number) % 2**63)
        seats = []
        while not state.terminal:
            seat = state.to_act[0]
            observation, mask = np.empty(OBSERVATION, np.float32), np.zeros(ACTIONS, np.bool_)
            mask[observe(state, seat, observation, 0.0, rng)] = True
            action = mahjong.rule_choice(state.view(seat))[0]
            if mask.sum() > 1:
                observations.append(observation)
                masks.append(mask)
                actions.append(action)
                seats.append(seat)
            state.apply(seat, action)
        scores += [state.returns[seat] * REWARD_SCALE for seat in seats]
    return np.stack(observations), np.stack(masks), np.array(actions, np.int64), np.array(scores, np.float32)


def imitate(model: torch.nn.Module, game: Game, hands: int, seed: int, *, rate: float, chunk: int = 64) -> float:
    """Teach the model ``hands`` hands of the rule player; returns its agreement on the last tenth, which it
    had not seen.

    Minimises cross-entropy of the actions and half the squared error of the scores.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, eps=1e-5)
    generator = torch.Generator().manual_seed(seed)
    taught = max(1, hands * 9 // 10)
    for begin in range(0, taught, chunk):
        fields = [torch.from_numpy(f) for f in lessons(game, min(chunk, taught - begin), seed + begin)]
        for group in optimizer.param_groups:
            group["lr"] = rate * (1.0 - begin / taught)
        orders = [torch.randperm(len(fields[0]), generator=generator) for _ in range(PASSES)]
        for index in (part for order in orders for part in torch.split(order, MINIBATCH)):
            observations, masks, actions, scores = (field[index] for field in fields)
            logits, values = model(observations)
            loss = torch.nn.functional.nll_loss(masked_log_probs(logits, masks), actions) + value_loss(values, scores)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return agreement(model, game, max(1, hands - taught), seed + taught)


@torch.inference_mode()
def agreement(model: torch.nn.Module, game: Game, hands: int, seed: int) -> float:
    """Share of the rule player's decisions among several actions that are the model's most probable ones."""
    observations, masks, actions, _ = (torch.from_numpy(f) for f in lessons(game, hands, seed))
    logits, _ = model(observations)
    return float((masked_log_probs(logits, masks).argmax(dim=1) == actions).float().mean())

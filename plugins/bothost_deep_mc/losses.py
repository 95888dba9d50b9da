"""The losses, as pure functions of tensors.

The total is L = L_q + α_d L_d + α_e R_e + α_s L_s. R_e and L_s, and the idea to add them to the loss of self-play, are
from the adaptive policy adjustment that this strategy implements. L_d is new.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def self_play_loss(values: Tensor, returns: Tensor) -> Tensor:
    """L_q = E[(Q(s, a) - G)²] of the played moves. ``values`` and ``returns`` (n,).

    Source: deep Monte-Carlo, Zha et al., "DouZero", arXiv:2106.06135 (2021), section 3.1.
    """
    return functional.mse_loss(values, returns)


def difference_loss(first: Tensor, second: Tensor, first_returns: Tensor, second_returns: Tensor) -> Tensor:
    """L_d = E[((Q(s, a) - Q(s, b)) - (G_a - G_b))²], where a and b were both played out from s in one deal; all (n,).

    The deal's part of both returns cancels, and with it most of the variance that hides which move is better (common
    random numbers; Glasserman and Yao, "Some guidelines and guarantees for common random numbers", 1992).
    """
    return functional.mse_loss(first - second, first_returns - second_returns)


def experience_regularizer(values: Tensor, expert: Tensor, margins: Tensor | float = 0.0) -> Tensor:
    """R_e(θ) = E[max(Q(s, a) + μ(s, a) - Q(s, f(s)), 0)]: penalizes moves with a value above the expert's f(s) less μ.

    ``values`` (n, k): of k moves of each of n positions. ``expert`` (n,): of the expert's moves. ``margins`` (n, k): 0
    for the expert's own move. The mean is over all values. Without margins it is the source's regularizer. Equal values
    of all moves minimize that one, so a large weight removes the differences between moves. The margin is from
    Hester et al., "Deep Q-learning from demonstrations", arXiv:1704.03732 (2017).
    """
    return functional.relu(values + margins - expert[:, None]).mean()


def similarity(first: Tensor, second: Tensor, beta: float) -> Tensor:
    """U(φ_i, φ_j) = (‖φ_i‖² + ‖φ_j‖²) / 2 + β·angle(φ_i, φ_j), (n,), of representations (n, width).

    The angle is atan2(‖u - v‖, ‖u + v‖) · 2 of the unit vectors u and v. It has a gradient unless they are equal or
    opposite; there, and for a representation of 0, the gradient is 0. Source: MICo, Castro et al., arXiv:2106.08229
    (2021), section 4 and appendix.
    """
    norms = (first.square().sum(dim=1) + second.square().sum(dim=1)) / 2
    u, v = functional.normalize(first, dim=1, eps=1e-6), functional.normalize(second, dim=1, eps=1e-6)
    # √(x + ε) - √ε instead of √x, so that the gradient at 0 is finite.
    apart, together = ((w.square().sum(dim=1) + 1e-8).sqrt() - 1e-4 for w in (u - v, u + v))
    return norms + beta * 2 * torch.atan2(apart, together.clamp_min(1e-8))


def reduction_loss(representations: Tensor, returns: Tensor, partners: Tensor, beta: float) -> Tensor:
    """L_s = E[huber(U(φ_i, φ_j) - |G_i - G_j|)] over the pairs i, j = ``partners[i]`` with i ≠ j.

    ``representations`` (n, width), ``returns`` (n,), ``partners`` (n,) indices. State-action pairs with equal returns
    should have small and parallel representations, others not. Huber with δ = 1 replaces the square.
    """
    own = torch.arange(len(partners), device=partners.device)
    kept = partners != own
    if not bool(kept.any()):
        return representations.sum() * 0.0
    i, j = own[kept], partners[kept]
    distance = similarity(representations[i], representations[j], beta)
    return functional.huber_loss(distance, (returns[i] - returns[j]).abs())


def adaptive_weight(alpha: float, win_rate: float, parity: float = 0.5) -> float:
    """α_e = α · max(0, 1 - w / w₀): it falls to 0 when the network's win rate w against the expert reaches w₀.

    From then on the regularizer has no effect. Raises ValueError for an invalid rate.
    """
    if not 0.0 <= win_rate <= 1.0 or parity <= 0.0:
        raise ValueError(f"win rate {win_rate} must be within 0 and 1, and parity {parity} above 0")
    return alpha * max(0.0, 1.0 - win_rate / parity)

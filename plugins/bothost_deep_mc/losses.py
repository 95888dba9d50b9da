"""The losses, as pure functions of tensors.

The whole is L = L_q + α_d L_d + α_e R_e + α_s L_s. Source of R_e and L_s, and of their being added to the loss of
self-play: the adaptive policy adjustment that this strategy restates. L_d is ours.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def self_play_loss(values: Tensor, returns: Tensor) -> Tensor:
    """L_q = E[(Q(s, a) - G)²] of the moves that were played; values and returns (n,).

    Source: deep Monte-Carlo, Zha et al., "DouZero", arXiv:2106.06135 (2021), section 3.1.
    """
    return functional.mse_loss(values, returns)


def difference_loss(first: Tensor, second: Tensor, first_returns: Tensor, second_returns: Tensor) -> Tensor:
    """L_d = E[((Q(s, a) - Q(s, b)) - (G_a - G_b))²], where a and b were both played out from s in one deal; all (n,).

    What the deal gives to both returns cancels, and with it most of the variance that hides which move is better:
    common random numbers, as in Glasserman and Yao, "Some guidelines and guarantees for common random numbers" (1992).
    """
    return functional.mse_loss(first - second, first_returns - second_returns)


def experience_regularizer(values: Tensor, expert: Tensor, margins: Tensor | float = 0.0) -> Tensor:
    """R_e(θ) = E[max(Q(s, a) + μ(s, a) - Q(s, f(s)), 0)]: no move may be valued above the expert's f(s) less a margin.

    ``values`` (n, k) of k moves of each of n positions, ``expert`` (n,) of the expert's moves, ``margins`` (n, k), 0
    where a move is the expert's own, which then adds 0. The mean is over all of values. Without margins it is the
    source's, which equal values of all moves satisfy too: a large weight takes the differences between moves away. The
    margin is that of Hester et al., "Deep Q-learning from demonstrations", arXiv:1704.03732 (2017).
    """
    return functional.relu(values + margins - expert[:, None]).mean()


def similarity(first: Tensor, second: Tensor, beta: float) -> Tensor:
    """U(φ_i, φ_j) = (‖φ_i‖² + ‖φ_j‖²) / 2 + β·angle(φ_i, φ_j), (n,), of representations (n, width).

    The angle is atan2(‖u - v‖, ‖u + v‖) · 2 of the unit vectors u and v, which has a gradient everywhere but where they
    are equal or opposite; there it is 0, as it is of a representation of 0. Source: MICo, Castro et al.,
    arXiv:2106.08229 (2021), section 4 and appendix.
    """
    norms = (first.square().sum(dim=1) + second.square().sum(dim=1)) / 2
    u, v = functional.normalize(first, dim=1, eps=1e-6), functional.normalize(second, dim=1, eps=1e-6)
    # √(x + ε) - √ε in place of √x: the gradient at 0 stays finite.
    apart, together = ((w.square().sum(dim=1) + 1e-8).sqrt() - 1e-4 for w in (u - v, u + v))
    return norms + beta * 2 * torch.atan2(apart, together.clamp_min(1e-8))


def reduction_loss(representations: Tensor, returns: Tensor, partners: Tensor, beta: float) -> Tensor:
    """L_s = E[huber(U(φ_i, φ_j) - |G_i - G_j|)] over the pairs i, j = ``partners[i]``, those with i = j left out.

    Representations (n, width), returns (n,), partners (n,) indices. State-action pairs of equal returns shall have
    small and parallel representations, others not. Huber with δ = 1 in place of the square.
    """
    own = torch.arange(len(partners), device=partners.device)
    kept = partners != own
    if not bool(kept.any()):
        return representations.sum() * 0.0
    i, j = own[kept], partners[kept]
    distance = similarity(representations[i], representations[j], beta)
    return functional.huber_loss(distance, (returns[i] - returns[j]).abs())


def adaptive_weight(alpha: float, win_rate: float, parity: float = 0.5) -> float:
    """α_e = α · max(0, 1 - w / w₀): full at first, and 0 once the network's win rate w against the expert is w₀.

    From then on the expert's move is no longer taken for the best. Raises ValueError for a rate that is none.
    """
    if not 0.0 <= win_rate <= 1.0 or parity <= 0.0:
        raise ValueError(f"win rate {win_rate}, parity {parity}: a rate lies within 0 and 1, and parity above 0")
    return alpha * max(0.0, 1.0 - win_rate / parity)

"""Pack rollouts to send them between processes and machines, without loss, in a tenth of their size.

Encodings of cards are mostly zeros and ones in 32-bit floats. Elements of the observation that are 0 or 1 throughout a
rollout are sent as bits, and so are the legal actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.training.ppo import Bool, Float
from bothost.training.rollout import Rollout

Bytes = npt.NDArray[np.uint8]


class PackedRollout(NamedTuple):
    """T decisions in each of N environments; see ``Rollout`` for fields without a description."""

    binary: Bool
    """(observation_size,): elements of the observation that are 0 or 1 throughout."""
    bits: Bytes
    """(T, N, ⌈binary elements / 8⌉)"""
    numbers: Float
    """(T, N, elements that are not binary)"""
    masks: Bytes
    """(T, N, ⌈A / 8⌉)"""
    num_actions: int
    actions: npt.NDArray[np.int32]
    log_probs: Float
    values: Float
    rewards: Float
    dones: Bool
    last_values: Float
    final_leads: Float
    steps: int

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(field.nbytes for field in self if isinstance(field, np.ndarray))


def pack(rollout: Rollout) -> PackedRollout:
    """Pack a rollout. The result shares no memory with it."""
    observations = rollout.observations
    binary = ((observations == 0) | (observations == 1)).all(axis=(0, 1))
    return PackedRollout(
        binary,
        np.packbits(observations[:, :, binary] == 1, axis=2),
        observations[:, :, ~binary],
        np.packbits(rollout.masks, axis=2),
        rollout.masks.shape[2],
        rollout.actions.astype(np.int32),
        rollout.log_probs.copy(),
        rollout.values.copy(),
        rollout.rewards.copy(),
        rollout.dones.copy(),
        rollout.last_values.copy(),
        rollout.final_leads.copy(),
        rollout.steps,
    )


def unpack(packed: PackedRollout) -> Rollout:
    """Unpack a rollout into new memory."""
    observations = np.empty((*packed.actions.shape, len(packed.binary)), np.float32)
    observations[:, :, packed.binary] = _booleans(packed.bits, int(packed.binary.sum()))
    observations[:, :, ~packed.binary] = packed.numbers
    return Rollout(
        observations,
        _booleans(packed.masks, packed.num_actions).astype(np.bool_),
        packed.actions.astype(np.int64),
        packed.log_probs.copy(),
        packed.values.copy(),
        packed.rewards.copy(),
        packed.dones.copy(),
        packed.last_values.copy(),
        packed.final_leads.copy(),
        packed.steps,
    )


def _booleans(packed: Bytes, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.unpackbits(packed, axis=2, count=count)

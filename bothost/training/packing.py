"""Pack rollouts to send them between processes and machines, without loss, in a tenth of their size.

Encodings of cards are mostly zeros and ones in 32-bit floats. Elements of the observation that are 0 or 1 throughout a
rollout are sent as bits, and so are the legal actions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.training.ppo import Bool, Float
from bothost.training.rollout import Rollout

Bytes = npt.NDArray[np.uint8]


class PackedRollout(NamedTuple):
    """T decisions in each of N environments. From ``actions`` on the fields are those of ``Rollout``, in its order."""

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
    observations, masks, actions, *others = rollout
    binary = ((observations == 0) | (observations == 1)).all(axis=(0, 1))
    return PackedRollout(
        binary,
        np.packbits(observations[:, :, binary] == 1, axis=2),
        observations[:, :, ~binary],
        np.packbits(masks, axis=2),
        masks.shape[2],
        actions.astype(np.int32),
        *_copies(others),
    )


def unpack(packed: PackedRollout) -> Rollout:
    """Unpack a rollout into new memory."""
    binary, bits, numbers, masks, num_actions, actions, *others = packed
    observations = np.empty((*actions.shape, len(binary)), np.float32)
    observations[:, :, binary] = _booleans(bits, int(binary.sum()))
    observations[:, :, ~binary] = numbers
    legal = _booleans(masks, num_actions).astype(np.bool_)
    return Rollout(observations, legal, actions.astype(np.int64), *_copies(others))


def _copies(fields: Iterable[Any]) -> list[Any]:
    return [field.copy() if isinstance(field, np.ndarray) else field for field in fields]


def _booleans(packed: Bytes, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.unpackbits(packed, axis=2, count=count)

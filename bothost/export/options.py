"""What a person may choose about an export, and its check."""

from __future__ import annotations

import hashlib
import math
import secrets

import msgspec

from bothost.errors import UsageError


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything beside the query that decides the bytes of an export. Raises UsageError for what makes no sense."""

    split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of train, val and test."""
    view_json: bool = True
    """Decode views into a JSON column."""
    rllib: bool = False
    """Add RLlib's columns: observations, next observations, rewards, ``eps_id`` per (game, seat)."""
    raw: bool = False
    """Add the frames that asked."""
    pseudonym_key: str | None = None
    """Key of the hash that replaces the names of all players; None: names stay."""
    hands_per_file: int = 20_000

    def __post_init__(self) -> None:
        if any(share < 0 for share in self.split) or not math.isclose(sum(self.split), 1.0, abs_tol=1e-6):
            raise UsageError(f"the split {self.split} does not add up to 1", advice="For instance: --split 0.8,0.1,0.1")
        if self.raw and self.pseudonym_key is not None:
            raise UsageError("raw frames hold names", advice="Leave out --raw or --pseudonyms.")
        if self.hands_per_file < 1:
            raise UsageError("a file must hold at least one hand")

    def split_of(self, lobby: str, table: str, hand: str) -> str:
        """The split of a hand: by hash, so that it never changes.

        Of the lobby's names, not of our id: when several of our accounts sat at one hand, it stays in one split.
        """
        digest = hashlib.blake2b("\0".join((lobby, table, hand)).encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        return "train" if place < self.split[0] else "val" if place < self.split[0] + self.split[1] else "test"

    def name_of(self, player: str) -> str:
        """The player's name as it is exported: itself, or a pseudonym that only the key ties to it."""
        if self.pseudonym_key is None:
            return player
        digest = hashlib.blake2b(player.encode(), key=self.pseudonym_key.encode()[:64], digest_size=8)
        return f"player-{digest.hexdigest()}"


def new_pseudonym_key() -> str:
    """A key for one export: without it, equal players have other pseudonyms in the next."""
    return secrets.token_hex(16)

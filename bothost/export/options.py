"""The options of an export."""

from __future__ import annotations

import hashlib
import math
import secrets

import msgspec

from bothost.errors import UsageError


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything except the query that determines the bytes of an export. Raises UsageError for invalid values."""

    split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of train, val and test."""
    view_json: bool = True
    """Decode views into a JSON column."""
    rllib: bool = False
    """Add RLlib's columns: observations, next observations, rewards, ``eps_id`` per (game, seat)."""
    raw: bool = False
    """Add the frames with the requests."""
    pseudonym_key: str | None = None
    """Key of the hash that replaces the names of all players; None: names stay."""
    hands_per_file: int = 20_000

    def __post_init__(self) -> None:
        if any(share < 0 for share in self.split) or not math.isclose(sum(self.split), 1.0, abs_tol=1e-6):
            raise UsageError(f"the split {self.split} does not add up to 1", advice="for example: --split 0.8,0.1,0.1")
        if self.raw and self.pseudonym_key is not None:
            raise UsageError("raw frames contain player names", advice="leave out --raw or --pseudonyms")
        if self.hands_per_file < 1:
            raise UsageError("a file must hold at least one hand")

    def split_of(self, lobby: str, table: str, hand: str) -> str:
        """Return the split of a hand, by hash, so that it never changes.

        It hashes the lobby's names instead of our id, so that all of our seats at a hand are in the same split.
        """
        digest = hashlib.blake2b("\0".join((lobby, table, hand)).encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        return "train" if place < self.split[0] else "val" if place < self.split[0] + self.split[1] else "test"

    def name_of(self, player: str) -> str:
        """Return the player's exported name: the name itself, or a pseudonym that depends on the key."""
        if self.pseudonym_key is None:
            return player
        digest = hashlib.blake2b(player.encode(), key=self.pseudonym_key.encode()[:64], digest_size=8)
        return f"player-{digest.hexdigest()}"


def new_pseudonym_key() -> str:
    """Make a random key. Another key gives the same players other pseudonyms."""
    return secrets.token_hex(16)

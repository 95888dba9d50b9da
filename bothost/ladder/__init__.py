"""Ratings of strategies and of the opponents that they met.

:func:`rating_of` asks for one; ``bothost ladder`` computes them.
"""

from bothost.store.ratings import Contestant, Rating, rating_of

__all__ = ["Contestant", "Rating", "rating_of"]

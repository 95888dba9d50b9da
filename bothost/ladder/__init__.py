"""Ratings of strategies and their opponents.

``bothost ladder`` computes them; :func:`rating_of` returns one.
"""

from bothost.store.ratings import Contestant, Rating, rating_of

__all__ = ["Contestant", "Rating", "rating_of"]

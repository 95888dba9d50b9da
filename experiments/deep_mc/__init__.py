"""Experiments with deep-mc: what its two auxiliary losses save, and what its split network costs."""

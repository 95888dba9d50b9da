"""Experiments with fm-clone: feature combinations beside linear models and networks, with and without the crowd."""

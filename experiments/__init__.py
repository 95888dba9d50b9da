"""Experiments: the sources' tables made again, ablations and comparisons. ``bothost reproduce NAME`` runs one.

They use bothost's public API and the strategies' packages. No wheel has them: run them from a checkout. Each is a
:class:`bothost.Reproduction`; ``docs/research`` holds what they showed.
"""

from __future__ import annotations

from collections.abc import Mapping

EXPERIMENTS: Mapping[str, str] = {
    "deep-mc": "experiments.deep_mc.reproduce:DeepMcReproduction",
    "deep-mc-split-network": "experiments.deep_mc.split_network:SplitNetworkComparison",
    "doudizhu-mcts": "experiments.doudizhu_mcts:DoudizhuReproduction",
    "fm-clone": "experiments.fm_clone.reproduce:FmCloneReproduction",
    "mahjong-ppo": "experiments.mahjong_ppo:MahjongPpoReproduction",
    "phase-ppo": "experiments.phase_ppo.reproduce:PhasePpoReproduction",
    "round-robin": "experiments.round_robin:RoundRobin",
}
"""Name on the command line → ``module:class``."""

"""Train MaskablePPO of sb3-contrib at Othello against a strategy, and measure it on hands that it did not train on.

    pip install "bothost[envs,train]" sb3-contrib
    python examples/envs/maskable_ppo.py --steps 200000 --out othello.zip

The same works for any game: ``SeatEnv("pairing", "rule-pairing")``.
"""

from __future__ import annotations

import argparse
import math
import statistics

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

from bothost.envs import SeatEnv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="othello")
    parser.add_argument("--opponent", default="random", help="address of the strategy in the other seats")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--hands", type=int, default=200, help="hands of the measurement")
    parser.add_argument("--out", default="", help="file of the trained model")
    args = parser.parse_args()

    def make() -> SeatEnv:
        return SeatEnv(args.game, args.opponent, seat=None)

    training = make_vec_env(make, n_envs=8, seed=1)
    learner = MaskablePPO("MlpPolicy", training, n_steps=256, batch_size=512, gamma=1.0, device="cpu", seed=1)
    untrained = measure(learner, make(), args.hands)
    learner.learn(args.steps)
    print(f"before: {untrained}\nafter:  {measure(learner, make(), args.hands)}")
    if args.out:
        learner.save(args.out)


def measure(learner: MaskablePPO, env: SeatEnv, hands: int) -> str:
    """Mean score with its 95 % interval; the same hands for equal ``hands``."""
    scores = []
    for hand in range(hands):
        observation, info = env.reset(seed=1_000_000 + hand)
        ended = False
        while not ended:
            action, _ = learner.predict(observation, action_masks=np.asarray(info["action_mask"]), deterministic=True)
            observation, reward, ended, _, info = env.step(int(action))
        scores.append(float(reward))
    mean, half = statistics.mean(scores), 1.96 * statistics.stdev(scores) / math.sqrt(hands)
    return f"mean score {mean:.2f}, 95 % {mean - half:.2f} … {mean + half:.2f}, {hands} hands"


if __name__ == "__main__":
    main()

"""What the plugins' trainers share: the PPO core, self-play rollouts, the model pool, checkpoints."""

"""Experiments with phase-ppo: five levels by training time, and decision phases beside composite actions."""

"""Hyper-parameters for Warehouse Tool Delivery."""

from __future__ import annotations

from dataclasses import replace

from mavic.preset import TUNED_LONG_TASK, Preset

PRESETS = {
    "paper": Preset(
        episodes=40_000,
        batch=4,
        gamma=1.0,
        actor_lr=3e-4,
        n_steps=5,
        epsilon_episodes=10_000,
        target_network=True,
    ),
    "tuned": replace(
        TUNED_LONG_TASK,
        gamma=1.0,
        episodes=179_200,
        batch=256,
        td_lambda=0.95,
        epsilon_end=(0.01, 0.01),
        epsilon_episodes=100_000,  # long, because the tool order 0, 0, 1, 1 must be found by exploration
        entropy_start=(0.05, 0.05),
        entropy_episodes=150_000,
        allowed_loss=(0.0, 0.1),
        uninstructed_episode_prob=0.5,
        # Otherwise something else is said soon after the first delivery, and the way on from there is hardly ever seen
        # to its end.
        from_start_prob=0.5,
        single_instruction=True,
        drill_prob=1.0,
    ),
}

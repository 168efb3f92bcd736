"""Hyper-parameters for Overcooked."""

from __future__ import annotations

from dataclasses import replace

from mavic.preset import ACAC, GENERAL, REFERENCE, TUNED_LONG_TASK, unaided

COMMAND = GENERAL["reference"]  # the published commands, for map A with three cooks
TEAM = replace(COMMAND, batch=8, first_to_finish=8, target_update_episodes=32)
PRESETS = {
    "reference": COMMAND,
    "reference/mac-cac": replace(TEAM, actor_lr=1e-4),
    "reference/mac-naive-iacc": TEAM,
    "reference/mac-iaicc": TEAM,
    "reference/acac": replace(TEAM, **{**ACAC, "critic_lr": 3e-4, "passes": 5, "ppo_clip": 0.01}),
    "paper": replace(
        REFERENCE,
        episodes=400_000,
        batch=16,
        gamma=0.992,
        actor_lr=4e-4,
        critic_lr=5e-3,
        n_steps=5,
        epsilon_end=(0.1, 0.1),
        epsilon_episodes=100_000,
        first_to_finish=16,
    ),
    "tuned": replace(
        TUNED_LONG_TASK,
        gamma=0.992,
        episodes=160_000,
        td_lambda=0.97,
        epsilon_episodes=10_000,
        entropy_start=(0.05, 0.05),
        entropy_episodes=125_000,
        critic_init_scale=1.0,
        uninstructed_episode_prob=0.4,
        hold_to_end_prob=0.6,
        # Enforced prohibitions teach the alternatives, and the loss teaches to refuse. Without an output layer for each
        # kind, what the team learns under one prohibition is applied to its counterpart too (lab 73, 74).
        drill_prob=1.0,
        from_start_prob=0.3,
        allowed_loss=(0.0, 0.1),
        kind_heads=True,
    ),
}
# The learner of "tuned" in the paper's own setting (condition paper/add, network shared): the first block of Table 1.
PRESETS["paper-tuned"] = unaided(PRESETS["tuned"], episodes=400_000)

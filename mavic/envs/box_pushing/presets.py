"""Hyper-parameters for Box Pushing."""

from __future__ import annotations

from dataclasses import replace

from mavic.preset import ACAC, REFERENCE, TUNED, unaided

# The published commands for the grid of 6 × 6. They also set rewards: `--options small 20 penalty -10`.
COMMAND = replace(
    REFERENCE, episodes=40_000, batch=32, first_to_finish=32, gamma=0.98, target_update_episodes=32
)
PRESETS = {
    # The paper's table, whose "N-step 0" means one-step TD, and the reference's ways.
    "paper": replace(REFERENCE, first_to_finish=16),
    "reference": COMMAND,
    "reference/mac-cac": replace(
        COMMAND, actor_lr=1e-3, batch=2, first_to_finish=2, n_steps=3, target_update_episodes=64
    ),
    "reference/mac-naive-iacc": replace(COMMAND, actor_lr=3e-4, target_update_episodes=128),
    "reference/mac-iaicc": replace(COMMAND, actor_lr=3e-4, target_update_episodes=128),
    "reference/acac": replace(
        COMMAND, **ACAC, batch=16, target_update_episodes=64, epsilon_episodes=30_000
    ),
    "tuned": replace(
        TUNED,
        episodes=256_000,
        actor_lr=2e-3,
        critic_final_lr_fraction=0.1,
        n_steps=5,
        # To a robot, a push that an instruction interrupts looks like a push that the other robot's exploration
        # spoiled. Little exploration makes spoiled pushes rare, so V(h', none) after an interruption is not
        # underestimated (lab 59, 60).
        epsilon_end=(0.005, 0.05),
        epsilon_episodes=32_000,
        # Under a prohibition, as without an instruction, a push alone is punished until both robots have learnt to
        # come. So prohibitions take all numbers of the uninstructed context: advantages are not normalized, and the
        # entropy bonus is in units of the return. One scale brings both to the size of the commands' (drills in
        # docs/record/decisions.md).
        entropy_start=(1.0, 0.01, 0.2),
        entropy_episodes=160_000,
        actor_hysteresis=(0.1, 0.1, 1.0),
        critic_hysteresis=(0.3, 0.3, 1.0),
        # Otherwise a robot that waits for the other learns not to push.
        actor_hysteresis_end=(0.1, 0.1, 1.0),
        center_advantages=(0.0, 0.0, 1.0),
        normalize_advantages=(0.0, 0.0, 1.0),
        advantage_scale=(1.0, 0.01, 1.0),
        allowed_loss=(0.0, 0.0, 0.1),
        critic_init_scale=1.0,
        spurious_interrupt_prob=0.05,
        uninstructed_episode_prob=0.4,
        hold_to_end_prob=0.5,
        drill_prob=1.0,
    ),
}
# The learner of "tuned" in the paper's own setting (condition paper/add, network shared): the first block of Table 1.
# Long returns carry the reward of the big box past the hysteresis (lab 144, 145).
PRESETS["paper-tuned"] = replace(
    unaided(PRESETS["tuned"], episodes=128_000), n_steps=10, epsilon_episodes=32_000
)

"""How much a run depends on the number of runs beside it: `python tests/rounding.py`.

The same seed trains alone and together with others. Its draws are the same, but XLA divides sums differently for
batches of another size, so results are rounded differently, and training makes small differences larger. Printed for
each number of runs and updates: the largest relative difference of a weight array (norm of the difference / norm), and
the base returns.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from mavic.evaluation import evaluate
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.training import train
from mavic.training.runs import Run, make_run

TOGETHER = (1, 4, 16)
UPDATES = (1, 10, 100, 400)
NUM_ENVS = 16


def trained(count: int, updates: tuple[int, ...]) -> list[tuple[list[np.ndarray], float]]:
    """The weights and the base return of seed 0 after so many updates, trained beside `count - 1` others."""
    config = ExperimentConfig(options={"size": 4})
    preset = preset_of("tuned", config.world, batch=32, episodes=32 * updates[-1])
    task = task_of(config)
    static = task.static_config(preset, config.network)
    runs = Run.stack([make_run(config, preset, task, seed) for seed in range(count)])
    state = train.init_states(static, runs)
    found = []
    for number in range(1, updates[-1] + 1):
        state, _ = train.train_updates(static, NUM_ENVS, 1, task.vectors, runs, state)
        if number in updates:
            weights = jax.tree.leaves((state.actor, state.critic))
            base = evaluate.progress(static, NUM_ENVS, task.vectors, runs, state)["base"]
            found.append(([np.asarray(leaf[0], np.float64) for leaf in weights], float(base[0])))
            print(f"{count} together, {number} updates", file=sys.stderr, flush=True)
    return found


def difference(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest relative difference of an array."""
    pairs = zip(one, other, strict=True)
    return max(np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-12) for a, b in pairs)


def main() -> None:
    results = {count: trained(count, UPDATES) for count in TOGETHER}
    print("| updates | runs together | largest relative difference of weights | base return |")
    print("|---|---|---|---|")
    for place, updates in enumerate(UPDATES):
        alone = results[1][place][0]
        for count, found in results.items():
            weights, base = found[place]
            print(f"| {updates} | {count} | {difference(alone, weights):.1e} | {base:.2f} |")


if __name__ == "__main__":
    main()

"""The merit of the members of a population: what they earn, also under prohibitions, and how much they follow.

Episodes and keys are those of no score, so a choice by merit does not flatter the scores of what was chosen.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.evaluation import evaluate, metrics
from mavic.experiment.task import Task
from mavic.learn.update import StaticConfig, TrainState
from mavic.training.runs import Run

MERIT_KEY = 20_270_000  # of no other evaluation


def parts(
    static: StaticConfig, num_envs: int, task: Task, runs: Run, state: TrainState
) -> dict[str, np.ndarray]:
    """Return what the merit of each run is made of: `base`, `under` and `followed`, [runs] each.

    `base` is the return without an instruction, `under` the mean return under each prohibition that leaves the task on,
    held from the start; nan if there is none. Both are the better of the sampled and the greedy team: exploration still
    lowers the first, and the second may be caught in a loop. `followed` is the share of instructions that are followed
    when they come and go.

    Args:
        static: the program's static part.
        num_envs: environments that play at once.
        task: the task.
        runs: the runs.
        state: their networks.
    """
    key = jax.random.key(MERIT_KEY)
    no_twins = jnp.zeros(runs.test_env.rules.allowed.shape[1:], bool)

    def play(**which: Any) -> dict[str, metrics.Ratio]:
        return evaluate._play(
            static, num_envs, evaluate.PROGRESS_EPISODES, metrics.measured(metrics.FREE), task.vectors,
            runs, state, key, jnp.int32(0), evaluate.episodes_of(no_twins, also=None, **which),
        ).ratios  # fmt: skip

    def earned(kind: int) -> np.ndarray:
        both = (play(kind=kind, greedy=greedy) for greedy in (False, True))
        return np.maximum(*(found[metrics.BASE.name].value() for found in both))

    rules = runs.test_env.rules
    goes_on = np.array(rules.given & ~rules.replaces)  # [runs, C]
    goes_on[:, 0] = False  # no instruction is not a prohibition
    kinds = np.flatnonzero(goes_on.any(0))
    under = np.stack([earned(int(kind)) for kind in kinds], 1) if len(kinds) else goes_on[:, :0]
    count = goes_on[:, kinds].sum(1)
    total = np.where(goes_on[:, kinds], under, 0.0).sum(1)
    return {
        "base": earned(0),
        "under": np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0),
        "followed": play(instructed=True)[metrics.COMPLIANCE.name].value(),
    }


def merit(found: dict[str, np.ndarray], hears: np.ndarray, cells: int) -> np.ndarray:
    """Return the merit of each run: the mean of `base` and `under`, less what it does not follow.

    One instruction in a hundred that is not followed counts as much as a hundredth of the best base return in the cell.
    Teams that hear nothing are judged by `base` alone.

    Args:
        found: from `parts`.
        hears: bool [runs], whether the run's team hears instructions.
        cells: how many cells there are. The runs of a cell lie together.
    """
    base, under = found["base"], found["under"]
    followed = np.nan_to_num(found["followed"], nan=1.0)
    unit = np.repeat(np.abs(base.reshape(cells, -1).max(1)), len(base) // cells)
    task = np.where(np.isnan(under), base, (base + under) / 2)
    return np.where(hears, task - unit * (1 - followed), base)

"""A training whose programs are numpy: what the host does with points, files and signals, without compiling anything.

As a script it is the training that fault tests kill: `python fake_training.py FOLDER POINTS SECONDS_A_POINT`.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from mavic.evaluation import evaluate, merit
from mavic.experiment.config import ExperimentConfig
from mavic.learn import update
from mavic.learn.backbones import UpdateMetrics
from mavic.session import runner, stopping
from mavic.training import checkpoint, train
from mavic.training.groups import Group, groups_of

SEEDS, BATCH = (3, 4), 8
QUIET = Console(quiet=True)
CONFIG = ExperimentConfig(world="box_pushing", options={"size": 4}, population=1)


def group_of(points: int, population: int = 1, **changes) -> Group:
    config = dataclasses.replace(CONFIG, population=population)
    (group,) = groups_of([config], SEEDS, episodes=points * BATCH, batch=BATCH, hidden=4, **changes)
    return group


def init_states(static, runs):
    """A state of the right shapes, drawn from a fixed seed. No number is below 0: a scale's weight never is."""
    shapes = jax.eval_shape(lambda key: update.init(key, static), jax.random.key(0))
    count, random = len(runs.key), np.random.default_rng(0)

    def leaf(shape):
        if not jnp.issubdtype(shape.dtype, jnp.floating):
            return jnp.zeros((count, *shape.shape), shape.dtype)
        return jnp.asarray(np.abs(random.normal(size=(count, *shape.shape))).astype(np.float32))

    return jax.tree.map(leaf, shapes)


def train_updates(static, num_envs, updates, vectors, runs, state):
    """The next state depends on the present one and on the number of episodes, as in a real training."""
    count = len(runs.key)
    number = int(state.episodes[0])

    def leaf(old):
        if not jnp.issubdtype(old.dtype, jnp.floating):
            return old
        drawn = np.abs(np.random.default_rng(number).normal(size=old.shape))
        return jnp.asarray((np.asarray(old) * 0.9 + drawn).astype(np.float32))

    state = jax.tree.map(leaf, state)
    episodes = state.episodes + updates * static.batch
    names = [field.name for field in dataclasses.fields(UpdateMetrics)]
    means = UpdateMetrics(**{name: jnp.zeros((count, 2)) for name in names})
    metrics = train.TrainMetrics(update=means, ticks=jnp.ones(count), task_return=jnp.zeros(count))
    return dataclasses.replace(state, episodes=episodes), metrics


def progress(static, num_envs, vectors, runs, state):
    totals = np.asarray(jax.tree.leaves(state.actor)[0]).reshape(len(runs.key), -1).sum(1)
    return {"base": totals.astype(float), "compliance": np.full(len(totals), 0.5)}


def parts(static, num_envs, task, runs, state):
    """The merit of a run is what `progress` shows of it."""
    base = progress(static, num_envs, task.vectors, runs, state)["base"]
    return {"base": base, "under": np.full(len(base), np.nan), "followed": np.ones(len(base))}


def fake(updates=train_updates):
    """A context in which training compiles nothing."""
    patches = (
        mock.patch.object(train, "init_states", init_states),
        mock.patch.object(train, "train_updates", updates),
        mock.patch.object(evaluate, "progress", progress),
        mock.patch.object(merit, "parts", parts),
        mock.patch.object(runner, "_memory_line", lambda *_: ""),
    )
    stack = __import__("contextlib").ExitStack()
    for patch in patches:
        stack.enter_context(patch)
    return stack


def train_group(folder=None, points=4, updates=train_updates, population=1, **more):
    console = more.pop("console", QUIET)
    group = group_of(points, population)
    with fake(updates):
        return runner.train_group(group, folder, points=points, num_envs=4, console=console, **more)


def main(folder: str, points: str, seconds: str) -> None:
    def slow(*args):
        time.sleep(float(seconds))
        return train_updates(*args)

    try:
        with stopping.on_signals():
            trained = train_group(Path(folder), int(points), slow, population=3)
    except KeyboardInterrupt as stopped:
        print(f"saved {checkpoint.exists(Path(folder))}", flush=True)
        sys.exit(stopping.Stopped.status_of(stopped))
    print(f"done {checkpoint._found(Path(folder))[0].name} {trained.curve[-1]['base'].tolist()}")


if __name__ == "__main__":
    main(*sys.argv[1:])

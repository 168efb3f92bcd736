"""Which episodes the reference learns from: the first to finish. The recorded batches, and the same statistics."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import make_task

from golden.updates import all_named, by_file
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.learn.transitions import as_played, packed
from mavic.rollout.rollout import Policy, _first_finished, rollout
from mavic.training.runs import make_run

BATCHES = 24  # of ours
SURE = 4.5  # standard errors


def test_every_file_is_of_updates_or_of_a_collection():
    for name, recorded in all_named("").items():
        assert recorded.backbone if name.startswith("mac") else "kept_length" in recorded.arrays


@by_file("collection")
def test_the_recorded_batches_are_kept(recorded):
    """From the ends of all started episodes, the same ones are kept, batch by batch."""
    arrays, meta = recorded.arrays, recorded.meta
    started = {k.split("/")[1]: v for k, v in arrays.items() if k.startswith("started/")}
    shape = (int(arrays["ticks"].max()) + 3, meta["n_env"])
    keep = jax.jit(_first_finished, static_argnums=1)
    for batch in range(meta["batches"]):
        own = {k: v[started["batch"] == batch] for k, v in started.items()}
        over = np.zeros(shape, bool)
        ends = own["start_tick"] + own["length"] - 1
        ended = own["finished"]
        over[ends[ended], own["env"][ended]] = True
        over[-2:] = True  # ends after the batch is full, which other runs of a program may lead to
        alive = np.asarray(keep(over, meta["train_freq"]))
        wanted = np.zeros(shape, bool)
        for start, length, env in zip(
            *(own[k][own["kept"]] for k in ("start_tick", "length", "env")), strict=True
        ):
            wanted[start : start + length, env] = True
        np.testing.assert_array_equal(alive, wanted)
        assert own["kept"].sum() == meta["train_freq"]


@cache
def ours(n_env: int, episodes: int, first_to_finish: bool):
    """Lengths of kept episodes [BATCHES, E] and the ticks that each batch took, with random macros."""
    options = {"size": 6, "dynamics": "reference"}
    config = ExperimentConfig(method="vanilla", options=options, hear="vectors")
    task = make_task("box_pushing", **options)
    env = make_run(config, preset_of("tuned", "box_pushing"), task, 0).train_env
    macros = len(task.env.macros[0])

    def act(memory, state, draws):
        return (draws * macros).astype(jnp.int32), memory

    policy = Policy(start=lambda n: jnp.zeros(n), act=act)

    @jax.jit
    @jax.vmap
    def play(key):
        played = rollout(
            env, policy, key, episodes=episodes, num_envs=n_env, first_to_finish=first_to_finish
        )
        rows = played.rows
        over = rows.alive & (rows.terminal | rows.truncated)
        ended = (rows.ended & rows.alive[..., None]).sum()
        ends = (as_played(rows), packed(rows, episodes=episodes, lanes=n_env))
        learnt = jnp.stack([(x >= 0).sum() for x in ends])
        return jnp.where(over, rows.time + 1, 0), played.ticks, rows.alive.sum(), ended, learnt

    lengths, ticks, alive, ended, learnt = jax.device_get(
        play(jax.random.split(jax.random.key(7), BATCHES))
    )
    lengths = np.stack([own[own > 0] for own in lengths])
    np.testing.assert_array_equal(lengths.sum(1), alive)  # whole episodes and nothing else
    np.testing.assert_array_equal(learnt, np.stack([ended] * 2, 1))  # every macro becomes a row
    return lengths, ticks


def close(mine, theirs):
    """Two samples have the same mean, as far as their size tells."""
    error = np.sqrt(mine.var(ddof=1) / mine.size + theirs.var(ddof=1) / theirs.size)
    assert abs(mine.mean() - theirs.mean()) < SURE * error


@pytest.mark.long
@by_file("collection")
def test_our_batches_have_the_recorded_statistics(recorded):
    meta, kept = recorded.meta, recorded.arrays["kept_length"].astype(float)
    assert meta["env"]["big_box_reward"] == 300.0 and meta["eps"] == 1.0
    lengths, ticks = ours(meta["n_env"], meta["train_freq"], True)
    assert lengths.shape == (BATCHES, meta["train_freq"])
    close(lengths.mean(1), kept.mean(1))
    close(lengths.std(1), kept.std(1))
    close(ticks.astype(float), recorded.arrays["ticks"].astype(float))
    # Complete episodes are another sample: twice as long.
    complete, _ = ours(meta["n_env"], meta["train_freq"], False)
    whole = recorded.arrays["started/length"].astype(float)
    close(complete.reshape(-1), whole)
    assert complete.mean() > 1.7 * lengths.mean()

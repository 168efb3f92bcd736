"""The judge: base return, compliance three ways, leak (D14-D16), as sums that add up over batches of episodes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import learner as learning
from mavic.learn import through_time
from mavic.learn.learner import Fixed, Learner
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.squeeze import squeeze
from mavic.study.experiment import Run, acting
from mavic.study.spread import over_runs
from mavic.types import RUNS, Array, Row, replace
from mavic.world.instruct import schedule
from mavic.world.rollout import rollout


def task_sums(rows: Row, gamma: Array) -> dict[str, Array]:
    """What base episodes earned: sums over episodes."""
    alive = rows.alive
    over = alive & (rows.terminal | rows.truncated)
    solved = (rows.events[..., 0] > 0) & alive
    return {
        "episodes": over.sum().astype(jnp.float32),
        "discounted": (gamma**rows.time * rows.task * alive).sum(),
        "undiscounted": (rows.task * alive).sum(),
        "solved": solved.sum().astype(jnp.float32),
        "ticks": alive.sum().astype(jnp.float32),
    }


def compliance_sums(rows: Row, kinds: int) -> dict[str, Array]:
    """How instructions were followed: counts by kind [C], decisions and steps of addressed agents."""
    alive = rows.alive
    kind = jnp.where(alive, rows.closed, 0)
    hot = jax.nn.one_hot(kind, kinds).at[..., 0].set(0.0)
    addressed = (rows.kind > 0) & alive[..., None]
    decides = addressed & rows.fresh
    return {
        "given": hot.sum((0, 1)),
        "followed": (hot * rows.followed[..., None]).sum((0, 1)),
        "decisions": decides.sum().astype(jnp.float32),
        "decisions_complied": (decides & rows.complied).sum().astype(jnp.float32),
        "steps": addressed.sum().astype(jnp.float32),
        "steps_complied": (addressed & rows.complied).sum().astype(jnp.float32),
        "episodes": (alive & (rows.terminal | rows.truncated)).sum().astype(jnp.float32),
        "solved": ((rows.events[..., 0] > 0) & alive).sum().astype(jnp.float32),
    }


@partial(jax.jit, static_argnames=("fixed", "lanes", "episodes"))
def play(
    fixed: Fixed,
    lanes: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    learner: Learner,
    key: Array,
    first: Array,
    instructed: Array,
    greedy: Array,
) -> dict[str, dict[str, Array]]:
    """Episodes with final parameters and no exploration; `key` is shared by all runs, so all meet the same luck."""

    def one_run(run: Run, learner: Learner) -> dict[str, dict[str, Array]]:
        off = schedule()
        setting = replace(
            run.test,
            schedule=jax.tree.map(lambda a, b: jnp.where(instructed, a, b), run.test.schedule, off),
        )
        wander = jnp.stack([run.wander] * 2)
        policy = acting(fixed, learner.actor, vectors, wander, greedy & (run.wander == 0))
        rows = rollout(setting, policy, key, episodes=episodes, lanes=lanes, first=first).rows
        kinds = run.test.rules.allowed.shape[0]
        return {
            "base": task_sums(rows, run.hyper.gamma),
            "live": compliance_sums(rows, kinds),
        }

    return over_runs(one_run)(runs, learner)


@partial(jax.jit, static_argnames=("fixed", "lanes", "episodes"))
def held(
    fixed: Fixed,
    lanes: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    learner: Learner,
    key: Array,
    kind: Array,
) -> dict[str, Array]:
    """V(h, c) − G and G, means over all decisions under `kind` (0: none) in episodes which it holds from their start
    until they end, or it is met; and what these episodes earned of the task.

    G is the realised return at the final training ε, with the critic's own bootstrap where the horizon cut."""

    def one_run(run: Run, learner: Learner) -> dict[str, Array]:
        always = replace(schedule(), from_start=jnp.where(kind > 0, 1.0, 0.0))
        given = jnp.arange(run.test.rules.given.shape[0]) == kind
        setting = replace(run.test, schedule=always, rules=replace(run.test.rules, given=given))
        wandering = jnp.maximum(run.hyper.epsilon_end, run.wander)
        policy = acting(fixed, learner.actor, vectors, wandering)
        played = rollout(setting, policy, key, episodes=episodes, lanes=lanes)
        rows = squeeze(played.rows, run.hyper.gamma)
        blocks = through_time.blocks_for(jax.lax.pmax(rows.longest, RUNS))
        fields = {k: v for k, v in vars(rows).items() if k != "longest"}
        fields = through_time.pad(fields)
        rounds = jax.lax.pmax(through_time.rounds_for(learning.bootstraps(fields)), RUNS)
        by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), fields)

        def agent(critic: Any, scale: Any, mine: dict) -> tuple[Array, Array]:
            wanted = learning.bootstraps(mine)
            found = learning.values(fixed, vectors, critic, scale, mine, blocks, wanted, rounds)
            realised = targets(
                reward=mine["reward"],
                discount=mine["discount"],
                kept=found["kept"],
                arrived=found["arrived"],
                switched=mine["switched"],
                last=mine["last"],
                correction=CORRECTIONS["none"],
                n_steps=math.inf,
            )
            # what is met ends an instruction early, and the rest is another context
            valid = mine["valid"] & (mine["kind"] == kind)
            count = jnp.maximum(valid.sum(), 1)
            error = (valid * (found["value"] - realised)).sum() / count
            return error, (valid * realised).sum() / count

        error, mean = jax.vmap(agent)(learner.critic, learner.scale, by_agent)
        earned = task_sums(played.rows, run.hyper.gamma)
        return {
            "error": error.mean(),
            "mean": mean.mean(),
            "task": earned["discounted"] / earned["episodes"],
            "solved": earned["solved"] / earned["episodes"],
        }

    return over_runs(one_run)(runs, learner)

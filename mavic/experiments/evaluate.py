"""The judge: base return, compliance three ways, leak (D14-D16), as sums that add up over batches of episodes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from mavic.experiments.config import Run, acting
from mavic.experiments.devices import over_runs
from mavic.instruct.schedule import make_schedule
from mavic.learn import bptt
from mavic.learn import update as learning
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import macro_transitions
from mavic.learn.update import StaticConfig, TrainState
from mavic.rollout.rollout import rollout
from mavic.types import RUNS, Array, Row, replace


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
    fixed: StaticConfig,
    lanes: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    learner: TrainState,
    key: Array,
    first: Array,
    instructed: Array,
    greedy: Array,
) -> dict[str, dict[str, Array]]:
    """Episodes with final parameters and no exploration; `key` is shared by all runs, so all meet the same threefry."""

    def one_run(run: Run, learner: TrainState) -> dict[str, dict[str, Array]]:
        off = make_schedule()
        setting = replace(
            run.test,
            schedule=jax.tree.map(lambda a, b: jnp.where(instructed, a, b), run.test.schedule, off),
        )
        eval_epsilon = jnp.stack([run.eval_epsilon] * 2)
        policy = acting(
            fixed, learner.actor, vectors, eval_epsilon, greedy & (run.eval_epsilon == 0)
        )
        rows = rollout(setting, policy, key, episodes=episodes, lanes=lanes, first=first).rows
        kinds = run.test.rules.allowed.shape[0]
        return {
            "base": task_sums(rows, run.hyper.gamma),
            "live": compliance_sums(rows, kinds),
        }

    return over_runs(one_run)(runs, learner)


@partial(jax.jit, static_argnames=("fixed", "lanes", "episodes"))
def held(
    fixed: StaticConfig,
    lanes: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    learner: TrainState,
    key: Array,
    kind: Array,
) -> dict[str, Array]:
    """V(h, c) − G and G, means over all decisions under `kind` (0: none) in episodes which it holds from their start
    until they end, or it is met; and what these episodes earned of the task.

    G is the realised return at the final training ε, with the critic's own bootstrap where the horizon cut."""

    def one_run(run: Run, learner: TrainState) -> dict[str, Array]:
        always = replace(make_schedule(), from_start=jnp.where(kind > 0, 1.0, 0.0))
        given = jnp.arange(run.test.rules.given.shape[0]) == kind
        setting = replace(run.test, schedule=always, rules=replace(run.test.rules, given=given))
        epsilon = jnp.maximum(run.hyper.epsilon_end, run.eval_epsilon)
        policy = acting(fixed, learner.actor, vectors, epsilon)
        played = rollout(setting, policy, key, episodes=episodes, lanes=lanes)
        rows = macro_transitions(played.rows, run.hyper.gamma)
        blocks = bptt.blocks_for(jax.lax.pmax(rows.longest, RUNS))
        fields = {k: v for k, v in vars(rows).items() if k != "longest"}
        fields = bptt.pad(fields)
        rounds = jax.lax.pmax(bptt.rounds_for(learning.bootstraps(fields)), RUNS)
        by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), fields)

        def agent(critic: Any, scale: Any, mine: dict) -> tuple[Array, Array]:
            wanted = learning.bootstraps(mine)
            found = learning.values(fixed, vectors, critic, scale, mine, blocks, wanted, rounds)
            realised = targets(
                reward=mine["reward"],
                discount=mine["discount"],
                v_same_instruction=found["v_same_instruction"],
                v_next_instruction=found["v_next_instruction"],
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

"""The judge: base return, compliance three ways, leak (D14-D16), as sums that add up over batches of episodes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiments.config import ExperimentConfig, Run, Task, acting, run_of, stack
from mavic.experiments.devices import over_runs
from mavic.experiments.methods import METHODS
from mavic.instruct.schedule import make_schedule
from mavic.learn import bptt
from mavic.learn import update as learning
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import macro_transitions
from mavic.learn.update import StaticConfig, TrainState
from mavic.rollout.rollout import rollout
from mavic.types import RUNS, Array, Timestep, replace

if TYPE_CHECKING:
    from mavic.experiments.runner import Trained

EVALUATION_KEY = 20_260_000  # shared by all methods and seeds, so all meet the same episodes
BASE_EPISODES, INSTRUCTIONS, HELD_EPISODES = 1024, 2000, 256  # D15


def task_sums(rows: Timestep, gamma: Array) -> dict[str, Array]:
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


def compliance_sums(rows: Timestep, kinds: int) -> dict[str, Array]:
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
def evaluate_held_instruction(
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


def until_enough(
    fixed: StaticConfig,
    lanes: int,
    vectors: Array,
    runs: Run,
    learner: TrainState,
    *,
    told: bool,
    greedy: bool,
    enough: float,
) -> dict[str, np.ndarray]:
    """Sums over batches of episodes until every run has seen enough episodes, or instructions when told."""
    part = "live" if told else "base"
    key = jax.random.key(EVALUATION_KEY)
    total: dict[str, np.ndarray] = {}
    for batch in range(64):
        sums = play(
            fixed, lanes, lanes * 4, vectors, runs, learner, key, jnp.int32(batch * lanes * 4),
            jnp.asarray(told), jnp.asarray(greedy),
        )[part]  # fmt: skip
        total = {k: total.get(k, 0) + np.asarray(v, np.float64) for k, v in sums.items()}
        seen = total["given"].sum(-1) if told else total["episodes"]
        if seen.min() >= enough or (told and batch == 3 and not seen.any()):  # some are never told
            break
    return total


def evaluate(
    trained: Trained, *, lanes: int = 256, scale: float = 1.0
) -> dict[ExperimentConfig, dict[str, Any]]:
    """The `score` lines of all cells of a group, judged together. `scale` below 1 judges with fewer episodes."""
    group, fixed, bench = trained.group, trained.fixed, trained.bench
    places = np.array([place for cell in group.cells for place in trained.places(cell)])
    learner = jax.tree.map(lambda x: x[places], trained.learner)
    runs = stack([run_of(c, group.preset, bench, s) for c in group.cells for s in group.seeds])
    vectors = bench.lexicon.vectors
    names = runs.test.rules.names
    key = jax.random.key(EVALUATION_KEY)

    def sums_of(told: bool, greedy: bool, enough: float) -> dict[str, np.ndarray]:
        return until_enough(
            fixed, lanes, vectors, runs, learner, told=told, greedy=greedy, enough=enough * scale
        )

    def base(greedy: bool, enough: float) -> dict[str, Any]:
        sums = sums_of(False, greedy, enough)
        n = sums["episodes"]
        return {
            "episodes": n,
            "discounted": sums["discounted"] / n,
            "undiscounted": sums["undiscounted"] / n,
            "solved": sums["solved"] / n,
            "length": sums["ticks"] / n,
        }

    def compliance(greedy: bool, enough: float) -> dict[str, Any]:
        sums = sums_of(True, greedy, enough)
        given, followed = sums["given"], sums["followed"]
        return {
            "episodes": sums["episodes"],
            "per_instruction": _share(followed.sum(-1), given.sum(-1)),
            "per_decision": _share(sums["decisions_complied"], sums["decisions"]),
            "per_step": _share(sums["steps_complied"], sums["steps"]),
            "solved": sums["solved"] / sums["episodes"],
            "given": {name: given[:, i] for i, name in enumerate(names) if i},
            "followed": {name: followed[:, i] for i, name in enumerate(names) if i},
        }

    def held(number: int) -> dict[str, np.ndarray]:
        """One kind from start to end of every episode."""
        episodes = max(32, math.ceil(HELD_EPISODES * scale))
        found = evaluate_held_instruction(
            fixed, episodes // 4, episodes, vectors, runs, learner, key, jnp.int32(number)
        )
        instead = np.asarray(runs.test.rules.replaces)[:, number]  # of the task: it earns by chance
        return {
            "leak": np.asarray(found["error"] / jnp.abs(found["mean"])),
            "task": np.where(instead, np.nan, found["task"]),
            "solved": np.where(instead, np.nan, found["solved"]),
        }

    given = np.atleast_1d(np.asarray(runs.test.rules.given).any(axis=0))
    lasting = {name: held(i) for i, name in enumerate(names) if i == 0 or given[i]}
    found = {
        "base": base(False, BASE_EPISODES),
        "base_greedy": base(True, BASE_EPISODES / 4),
        "compliance": compliance(False, INSTRUCTIONS),
        "compliance_greedy": compliance(True, INSTRUCTIONS / 4),
        "leak": {name: part.pop("leak") for name, part in lasting.items()},
        "held": lasting,
    }
    seeds = len(group.seeds)
    return {
        cell: {
            "type": "score",
            "episodes": int(trained.learner.episodes[0]),
            "optimum": best_return(cell, bench, group.preset.gamma),
            **_counts_once(_of_cell(cell, found, slice(n * seeds, (n + 1) * seeds))),
        }
        for n, cell in enumerate(group.cells)
    }


def best_return(cell: ExperimentConfig, bench: Task, gamma: float) -> float | None:
    """The best return of the uninstructed task (D23); None where it is not known."""
    optimum = api.world(cell.world).optimum
    return None if optimum is None else optimum(bench.env, gamma, None)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """nan of nothing."""
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def _of_cell(cell: ExperimentConfig, found: dict[str, Any], places: slice) -> dict[str, Any]:
    """A cell's part of what was found. A random policy has no critic that could be wrong about it, and who is told
    nothing none that has learnt what an instruction is worth."""
    own = jax.tree.map(lambda x: x[places], found)
    method = METHODS[cell.method]
    for kind, errors in own["leak"].items():
        if method.random or (kind != "none" and method.instructions == "none"):
            own["leak"][kind] = [None] * len(errors)
    return own


def _counts_once(score: dict[str, Any]) -> dict[str, Any]:
    """Episodes as one number: how many every seed played at least."""
    return {
        name: {**part, "episodes": int(np.min(part["episodes"]))} if "episodes" in part else part
        for name, part in score.items()
    }

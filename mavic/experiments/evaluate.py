"""The judge: base return, compliance three ways, leak (D14-D16), as sums that add up over batches of episodes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiments.config import ExperimentConfig, Task
from mavic.experiments.devices import over_runs
from mavic.experiments.methods import METHODS
from mavic.experiments.runs import Run, acting, make_run, stack
from mavic.instruct.schedule import make_schedule
from mavic.learn.backbones import BACKBONES
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import macro_transitions
from mavic.learn.update import StaticConfig, TrainState, Values
from mavic.rollout.rollout import rollout
from mavic.types import Array, MacroTransitions, Timestep, replace

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
        "discounted": (gamma**rows.time * rows.task_reward * alive).sum(),
        "undiscounted": (rows.task_reward * alive).sum(),
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


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes"))
def play(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    first: Array,
    instructed: Array,
    greedy: Array,
) -> dict[str, dict[str, Array]]:
    """Episodes with final parameters and no exploration; `key` is shared by all runs, so all meet the same threefry."""

    def one_run(run: Run, state: TrainState) -> dict[str, dict[str, Array]]:
        off = make_schedule()
        setting = replace(
            run.test_env,
            schedule=jax.tree.map(
                lambda a, b: jnp.where(instructed, a, b), run.test_env.schedule, off
            ),
        )
        eval_epsilon = jnp.stack([run.eval_epsilon] * 2)
        policy = acting(
            static, state.actor, vectors, eval_epsilon, greedy & (run.eval_epsilon == 0)
        )
        rows = rollout(setting, policy, key, episodes=episodes, num_envs=num_envs, first=first).rows
        kinds = run.test_env.rules.allowed.shape[0]
        return {
            "base": task_sums(rows, run.hyper.gamma),
            "live": compliance_sums(rows, kinds),
        }

    return over_runs(one_run)(runs, state)


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes"))
def evaluate_held_instruction(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    kind: Array,
) -> dict[str, Array]:
    """V(h, c) − G and G, means over all decisions under `kind` (0: none) in episodes which it holds from their start
    until they end, or it is met; and what these episodes earned of the task.

    G is the realised return at the final training ε, with the critic's own bootstrap where the horizon cut."""

    def one_run(run: Run, state: TrainState) -> dict[str, Array]:
        always = replace(make_schedule(), from_start=jnp.where(kind > 0, 1.0, 0.0))
        given = jnp.arange(run.test_env.rules.given.shape[0]) == kind
        setting = replace(
            run.test_env, schedule=always, rules=replace(run.test_env.rules, given=given)
        )
        epsilon = jnp.maximum(run.hyper.epsilon_end, run.eval_epsilon)
        policy = acting(static.network, state.actor, vectors, epsilon)
        played = rollout(setting, policy, key, episodes=episodes, num_envs=num_envs)
        rows = macro_transitions(played.rows, run.hyper.gamma)
        found = BACKBONES[static.backbone].values(static, vectors, state, rows)

        def agent(rows: MacroTransitions, found: Values) -> tuple[Array, Array]:
            realised = targets(
                reward=rows.reward,
                discount=rows.discount,
                v_same_instruction=found.v_same_instruction,
                v_next_instruction=found.v_next_instruction,
                switched=rows.switched,
                last=rows.last,
                correction=CORRECTIONS["none"],
                n_steps=math.inf,
            )
            # An event can end the instruction early; what follows is another context.
            valid = rows.valid & (rows.kind == kind)
            count = jnp.maximum(valid.sum(), 1)
            error = (valid * (found.value - realised)).sum() / count
            return error, (valid * realised).sum() / count

        by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), rows)
        error, mean = jax.vmap(agent)(by_agent, found)
        earned = task_sums(played.rows, run.hyper.gamma)
        return {
            "error": error.mean(),
            "mean": mean.mean(),
            "task": earned["discounted"] / earned["episodes"],
            "solved": earned["solved"] / earned["episodes"],
        }

    return over_runs(one_run)(runs, state)


def until_enough(
    static: StaticConfig,
    num_envs: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
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
            static, num_envs, num_envs * 4, vectors, runs, state, key, jnp.int32(batch * num_envs * 4),
            jnp.asarray(told), jnp.asarray(greedy),
        )[part]  # fmt: skip
        total = {k: total.get(k, 0) + np.asarray(v, np.float64) for k, v in sums.items()}
        seen = total["given"].sum(-1) if told else total["episodes"]
        if seen.min() >= enough or (told and batch == 3 and not seen.any()):  # some are never told
            break
    return total


def evaluate(
    trained: Trained, *, num_envs: int = 256, scale: float = 1.0
) -> dict[ExperimentConfig, dict[str, Any]]:
    """The `score` lines of all configs of a group, judged together. `scale` below 1 judges with fewer episodes."""
    group, static, task = trained.group, trained.static, trained.task
    places = np.array([place for config in group.configs for place in trained.places(config)])
    state = jax.tree.map(lambda x: x[places], trained.state)
    runs = stack([make_run(c, group.preset, task, s) for c in group.configs for s in group.seeds])
    vectors = task.lexicon.vectors
    names = runs.test_env.rules.names
    key = jax.random.key(EVALUATION_KEY)

    def sums_of(told: bool, greedy: bool, enough: float) -> dict[str, np.ndarray]:
        return until_enough(
            static, num_envs, vectors, runs, state, told=told, greedy=greedy, enough=enough * scale
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
            static, episodes // 4, episodes, vectors, runs, state, key, jnp.int32(number)
        )
        instead = np.asarray(runs.test_env.rules.replaces)[
            :, number
        ]  # of the task: it earns by chance
        return {
            "leak": np.asarray(found["error"] / jnp.abs(found["mean"])),
            "task": np.where(instead, np.nan, found["task"]),
            "solved": np.where(instead, np.nan, found["solved"]),
        }

    given = np.atleast_1d(np.asarray(runs.test_env.rules.given).any(axis=0))
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
        config: {
            "type": "score",
            "episodes": int(trained.state.episodes[0]),
            "optimum": best_return(config, task, group.preset.gamma),
            **_counts_once(_of_config(config, found, slice(n * seeds, (n + 1) * seeds))),
        }
        for n, config in enumerate(group.configs)
    }


def best_return(config: ExperimentConfig, task: Task, gamma: float) -> float | None:
    """The best return of the uninstructed task (D23); None where it is not known."""
    optimum = api.world(config.world).optimum
    return None if optimum is None else optimum(task.env, gamma, None)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """nan of nothing."""
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def _of_config(config: ExperimentConfig, found: dict[str, Any], places: slice) -> dict[str, Any]:
    """A config's part of what was found. A random policy has no critic that could be wrong about it, and who is told
    nothing none that has learnt what an instruction is worth."""
    own = jax.tree.map(lambda x: x[places], found)
    method = METHODS[config.method]
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

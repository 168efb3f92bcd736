"""Evaluation of trained teams (D14-D16): the programs that play episodes, and the score lines made of their sums.

What is measured stands in `mavic.experiments.metrics`. Teams are evaluated with final parameters. `play` plays
episodes with or without instructions. `evaluate_held_instruction` plays episodes in which one instruction holds from
the start, and compares the critic's values with the returns. `evaluate` runs both and makes the score lines.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiments import metrics
from mavic.experiments.config import ExperimentConfig, Task
from mavic.experiments.devices import over_runs
from mavic.experiments.methods import METHODS
from mavic.experiments.metrics import HELD, SECTIONS, Metric, Played, Ratio, Section, divide
from mavic.experiments.runs import Run, make_run, rollout_policy, stack
from mavic.instruct.schedule import make_schedule
from mavic.learn.backbones import BACKBONES
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import macro_transitions
from mavic.learn.update import StaticConfig, TrainState, Values
from mavic.rollout.rollout import rollout
from mavic.rollout.step import shielded
from mavic.types import CONTEXTS, Array, MacroTransitions, Timestep, record, replace

if TYPE_CHECKING:
    from mavic.experiments.runner import Trained

EVALUATION_KEY = 20_260_000  # shared by all methods and seeds, so that all meet the same episodes
HELD_EPISODES = 256  # D15
MAX_BATCHES = 64
SILENT_BATCHES = 4  # after which a condition that gives no instruction is believed to give none
PROGRESS_EPISODES = 128  # of a point of the learning curve


@record
class Totals:
    """Sums over episodes, [runs] each: finished episodes, and the two sums of every metric by name."""

    episodes: Any
    ratios: dict[str, Ratio]


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes", "measured"))
def play(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    measured: tuple[Metric, ...],
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    first: Array,
    instructed: Array,
    greedy: Array,
) -> Totals:
    """Play `episodes` episodes of each run from number `first` on, without exploration. Return the metrics' sums.

    All runs share `key`, so all meet the same random numbers. The flags `instructed` and `greedy` are arrays, so one
    program serves all four combinations.
    """

    def one_run(run: Run, state: TrainState) -> Totals:
        off = make_schedule()
        schedule = jax.tree.map(
            lambda a, b: jnp.where(instructed, a, b), run.test_env.schedule, off
        )
        instructed_env = replace(run.test_env, schedule=schedule)
        epsilon = jnp.stack([run.eval_epsilon] * CONTEXTS)
        policy = rollout_policy(
            static, state.actor, vectors, epsilon, greedy & (run.eval_epsilon == 0)
        )
        rows = rollout(
            instructed_env, policy, key, episodes=episodes, num_envs=num_envs, first=first
        ).rows
        played = _played(run, rows)
        return Totals(
            episodes=metrics.episodes_over(played), ratios=metrics.measure(measured, played)
        )

    return over_runs(one_run)(runs, state)


def _played(run: Run, rows: Timestep, **more: Array) -> Played:
    kinds = run.test_env.rules.allowed.shape[0]
    return Played(rows=rows, gamma=run.hyper.gamma, kinds=kinds, **more)


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes", "measured"))
def evaluate_held_instruction(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    measured: tuple[Metric, ...],
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    kind: Array,
) -> dict[str, Ratio]:
    """Play episodes in which `kind` (0: none) holds from the start until the episode ends or an event resolves it.

    Episodes are played at the final ε of training. Return the two sums of each metric, [runs] each.
    """

    def one_run(run: Run, state: TrainState) -> dict[str, Ratio]:
        schedule = replace(
            make_schedule(),
            from_start=jnp.where(kind > 0, 1.0, 0.0),
            shield=run.test_env.schedule.shield,
        )
        given = jnp.arange(run.test_env.rules.given.shape[0]) == kind
        rules = replace(run.test_env.rules, given=given)
        instructed_env = replace(run.test_env, schedule=schedule, rules=rules)
        epsilon = jnp.maximum(run.hyper.epsilon_end, run.eval_epsilon)
        policy = rollout_policy(static, state.actor, vectors, epsilon)
        rows = rollout(instructed_env, policy, key, episodes=episodes, num_envs=num_envs).rows
        error, realised = value_errors(static, vectors, state, rows, run.hyper.gamma, kind)
        played = _played(run, rows, value_error=error, realised=realised)
        return metrics.measure(measured, played)

    return over_runs(one_run)(runs, state)


def value_errors(
    static: StaticConfig,
    vectors: Array,
    state: TrainState,
    rows: Timestep,
    gamma: Array,
    kind: Array,
) -> tuple[Array, Array]:
    """Return the means of V(h, c) − G and of G over all decisions under `kind`, [N] each.

    G is the realised return, with the critic's own bootstrap where the horizon cut the episode.
    """
    transitions = macro_transitions(rows, gamma)
    values = BACKBONES[static.backbone].values(static, vectors, state, transitions)

    def agent(rows: MacroTransitions, values: Values) -> tuple[Array, Array]:
        realised = targets(
            reward=rows.reward,
            discount=rows.discount,
            v_same_instruction=values.v_same_instruction,
            v_next_instruction=values.v_next_instruction,
            switched=rows.switched,
            last=rows.last,
            correction=CORRECTIONS["none"],
            n_steps=math.inf,
        )
        # A fulfilled instruction ends early; decisions after it are not under `kind`.
        valid = rows.valid & (rows.kind == kind)
        count = jnp.maximum(valid.sum(), 1)
        error = (valid * (values.value - realised)).sum() / count
        return error, (valid * realised).sum() / count

    by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), transitions)
    return jax.vmap(agent)(by_agent, values)


def until_enough(
    static: StaticConfig,
    num_envs: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    section: Section,
) -> Totals:
    """Play batches of episodes until every run has `section.enough` episodes, or instructions in an instructed section.

    Return the totals in float64. Playing stops after four batches without any instruction, and after MAX_BATCHES.
    """
    key = jax.random.key(EVALUATION_KEY)
    episodes = num_envs * 4
    total: Totals | None = None
    for batch in range(MAX_BATCHES):
        played = play(
            static, num_envs, episodes, metrics.measured(SECTIONS), vectors, runs, state, key,
            jnp.int32(batch * episodes), jnp.asarray(section.instructed), jnp.asarray(section.greedy),
        )  # fmt: skip
        sums = jax.tree.map(lambda x: np.asarray(x, np.float64), played)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
        seen = _instructions(total) if section.instructed else total.episodes
        if seen.min() >= section.enough or (
            section.instructed and batch + 1 == SILENT_BATCHES and not seen.any()
        ):
            break
    assert total is not None
    return total


def _instructions(total: Totals) -> np.ndarray:
    """Return the number of instructions that were given and counted, [runs]."""
    return total.ratios[metrics.COMPLIANCE.name].denominator.sum(-1)


def progress(
    static: StaticConfig, num_envs: int, vectors: Array, runs: Run, state: TrainState
) -> dict[str, np.ndarray]:
    """Return a point of the learning curve: `base` return and `compliance`, [runs] each; 0 if nothing was asked."""
    key = jax.random.key(EVALUATION_KEY + 1)

    def played(metric: Metric) -> np.ndarray:
        instructed = SECTIONS[metric.section].instructed
        totals = play(
            static, num_envs, PROGRESS_EPISODES, metrics.measured(SECTIONS), vectors, runs, state,
            key, jnp.int32(0), jnp.asarray(instructed), jnp.asarray(False),
        )  # fmt: skip
        return np.nan_to_num(divide(totals.ratios[metric.name]))

    return {metric.name: played(metric) for metric in (metrics.BASE, metrics.COMPLIANCE)}


def evaluate(
    trained: Trained, *, num_envs: int = 256, scale: float = 1.0, shield: bool = False
) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the `score` lines of all configs of a group, evaluated together. Every number has one entry per seed.

    With `scale` below 1 fewer episodes are played. With `shield` instructions are enforced.
    """
    group, static, task = trained.group, trained.static, trained.task
    configs, trained_state = group.configs, trained.state
    places = np.array([place for config in configs for place in trained.places(config)])
    state = jax.tree.map(lambda x: x[places], trained_state)
    runs = stack([make_run(c, group.preset, task, s) for c in configs for s in group.seeds])
    runs = replace(runs, test_env=shielded(runs.test_env, shield))
    vectors = task.vectors
    names = runs.test_env.rules.names

    def totals_of(section: Section) -> Totals:
        fewer = dataclasses.replace(section, enough=section.enough * scale)
        return until_enough(static, num_envs, vectors, runs, state, fewer)

    def held(kind: int) -> dict[str, Ratio]:
        episodes = max(32, math.ceil(HELD_EPISODES * scale))
        return evaluate_held_instruction(
            static, episodes // 4, episodes, metrics.measured(HELD), vectors, runs, state,
            jax.random.key(EVALUATION_KEY), jnp.int32(kind),
        )  # fmt: skip

    given = np.atleast_1d(np.asarray(runs.test_env.rules.given).any(axis=0))
    replaces = np.asarray(runs.test_env.rules.replaces)
    by_kind = {
        name: _held_entries(held(i), replaces[:, i])
        for i, name in enumerate(names)
        if i == 0 or given[i]
    }
    found = {
        **{
            name: section_entries(name, totals_of(section), names)
            for name, section in SECTIONS.items()
        },
        **{name: {kind: entry[name] for kind, entry in by_kind.items()} for name in HELD},
    }
    seeds = len(group.seeds)
    return {
        config: {
            "type": "score",
            "episodes": int(trained_state.episodes[0]),
            "optimum": best_return(config, task, group.preset.gamma),
            **_one_count(_of_config(config, found, slice(n * seeds, (n + 1) * seeds))),
        }
        for n, config in enumerate(configs)
    }


def section_entries(section: str, totals: Totals, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return a section of the score line: every metric [runs], and the counts by kind where a metric keeps them."""
    found: dict[str, Any] = {"episodes": totals.episodes}
    for key, metric in metrics.entries(section).items():
        ratio = totals.ratios[metric.name]
        found[key] = divide(ratio)
        for name, counts in zip(metric.counts or (), ratio, strict=False):
            found[name] = {kind: counts[:, i] for i, kind in enumerate(kinds) if i}
    return found


def _held_entries(ratios: dict[str, Ratio], replaces: np.ndarray) -> dict[str, Any]:
    """Return the entries of one kind in the sections of held instructions, by section.

    In the section `held`, the numbers of a kind that replaces the task are nan: the team is not paid for the task.
    """
    found: dict[str, Any] = {section: {} for section in HELD}
    for metric in metrics.measured(HELD):
        value = divide(ratios[metric.name])
        if metric.section == "held":
            found["held"][metric.key] = np.where(replaces, np.nan, value)
        else:
            found[metric.section] = value
    return found


def best_return(config: ExperimentConfig, task: Task, gamma: float) -> float | None:
    """Return the best discounted return of the uninstructed task (D23), or None where it is not known."""
    optimum = api.world(config.world).optimum
    return None if optimum is None else optimum(task.env, gamma, None)


def _of_config(config: ExperimentConfig, found: dict[str, Any], places: slice) -> dict[str, Any]:
    """Return the entries of one config.

    The value bias is undefined for the random policy, which has no critic, and under instructions for methods trained
    without them.
    """
    own = jax.tree.map(lambda x: x[places], found)
    method = METHODS[config.method]
    for kind, errors in own["leak"].items():
        if method.random or (kind != metrics.OVERALL and not method.hears):
            own["leak"][kind] = [None] * len(errors)
    return own


def _one_count(score: dict[str, Any]) -> dict[str, Any]:
    """Return the score with one number of episodes per section: the smallest over seeds."""
    return {
        name: {**part, "episodes": int(np.min(part["episodes"]))} if "episodes" in part else part
        for name, part in score.items()
    }

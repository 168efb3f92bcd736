"""Evaluation of trained teams (D14-D16): the programs that play episodes, and the score lines made of their sums.

What is measured stands in `mavic.experiments.metrics`. Teams are evaluated with final parameters. `play` plays
episodes without exploration: uninstructed, with instructions that come and go, or under one kind or two from the
start; with or without the shield. `evaluate_held_instruction` plays at the last exploration of training and compares
the critic's values with the returns. `evaluate` runs both and makes the score lines.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiments import divergence, metrics
from mavic.experiments.config import ExperimentConfig, Task
from mavic.experiments.devices import over_runs
from mavic.experiments.methods import METHODS
from mavic.experiments.metrics import PAIRS, SECTIONS, UNDER, Metric, Ratio, Section, divide
from mavic.experiments.quantities import Played, episodes_over
from mavic.experiments.runs import Run, rollout_policy
from mavic.experiments.trained import Trained
from mavic.instruct.pairs import prohibited_pairs
from mavic.instruct.reward import rules_of
from mavic.instruct.schedule import make_schedule
from mavic.instruct.spec import InstructionFile
from mavic.learn import backbones, batches
from mavic.learn.returns import CORRECTIONS
from mavic.learn.update import StaticConfig, TrainState
from mavic.learn.values import Values, targets_of
from mavic.rollout.rollout import rollout
from mavic.types import CONTEXTS, Array, MacroTransitions, Rules, Timestep, record, replace

EVALUATION_KEY = 20_260_000  # shared by all methods and seeds, so that all meet the same episodes
HELD_EPISODES = 256  # D15
UNDER_EPISODES = 512  # of each kind that holds from the start
HELD_TO_END = Section(instructed=False, greedy=False, enough=UNDER_EPISODES)
MAX_BATCHES = 64
SILENT_BATCHES = 4  # after which a condition that gives no instruction is believed to give none
PROGRESS_EPISODES = 128  # of a point of the learning curve
PLAYED = (*SECTIONS, UNDER, PAIRS)
"""The sections whose numbers come from `play`. All are summed in every call, so that one program serves them."""


@record
class Totals:
    """Sums over episodes, [runs] each: finished episodes, and the two sums of every metric by name."""

    episodes: Any
    ratios: dict[str, Ratio]


@record
class WhichEpisodes:
    """Which episodes are played. All fields are arrays, so one program serves all combinations."""

    instructed: Array  # [] bool: by the schedule of the run's condition; otherwise by `kind`
    kind: Array  # [] the kind that holds from the start until the episode ends or an event resolves it; 0: none
    greedy: Array  # [] bool: always the most likely macro
    shield: Array  # [] bool: what the instruction forbids is unavailable
    twins: Array  # [C, N, M] bool: what a kind's twin forbids and the kind allows
    also: Array | None = None  # [] a second kind beside `kind`; 0: none; None: no room for one


def episodes_of(
    twins: Array,
    *,
    instructed: bool = False,
    kind: int = 0,
    greedy: bool = False,
    shield: bool = False,
    also: int | None = 0,
) -> WhichEpisodes:
    """Return which episodes to play, from plain values. Without room for a second kind (None), ticks are faster."""
    flags = (jnp.asarray(flag) for flag in (instructed, greedy, shield))
    return WhichEpisodes(
        **dict(zip(("instructed", "greedy", "shield"), flags, strict=True)),
        kind=jnp.int32(kind),
        twins=twins,
        also=None if also is None else jnp.int32(also),
    )


def twins_of(rules: Rules, file: InstructionFile) -> Array:
    """Return bool [C, N, M], the macros that a kind's twin forbids and the kind itself allows; none without a twin."""
    allowed = np.asarray(rules.allowed)
    found = np.zeros_like(allowed)
    for number, kind in enumerate(file.kinds, start=1):
        if kind.twin is not None:
            found[number] = ~allowed[1 + file.names().index(kind.twin)] & allowed[number]
    return jnp.asarray(found)


def rows_of(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    vectors: Array,
    run: Run,
    state: TrainState,
    key: Array,
    first: Array | int,
    which: WhichEpisodes,
    epsilon: Array,
) -> Timestep:
    """Return the ticks of a run's episodes from number `first` on."""
    test, rules = run.test_env, run.test_env.rules
    held = replace(make_schedule(), from_start=jnp.where(which.kind > 0, 1.0, 0.0))
    schedule = jax.tree.map(
        lambda live, one: jnp.where(which.instructed, live, one), test.schedule, held
    )
    schedule = replace(schedule, shield=which.shield)
    only = jnp.arange(rules.given.shape[0]) == which.kind
    given = jnp.where(which.instructed, rules.given, only)
    greedy, second = which.greedy & (run.eval_epsilon == 0), which.also is not None
    policy = rollout_policy(static, state.actor, vectors, epsilon, greedy, second)
    env = replace(test, schedule=schedule, rules=replace(rules, given=given), also=which.also)
    return rollout(env, policy, key, episodes=episodes, num_envs=num_envs, first=first).rows


def _played(run: Run, rows: Timestep, which: WhichEpisodes, **more: Array) -> Played:
    rules = run.test_env.rules
    return Played(
        rows=rows,
        gamma=run.hyper.gamma,
        kinds=rules.allowed.shape[0],
        twins=which.twins,
        named=jnp.where(rules.lists_allowed[:, None, None], rules.allowed, ~rules.allowed),
        addressed=rules.addressed,
        **more,
    )


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
    which: WhichEpisodes,
) -> Totals:
    """Play `episodes` episodes of each run from number `first` on, without exploration. Return the metrics' sums.

    All runs share `key`, so all meet the same random numbers.
    """

    def one_run(run: Run, state: TrainState) -> Totals:
        epsilon = jnp.stack([run.eval_epsilon] * CONTEXTS)
        rows = rows_of(static, num_envs, episodes, vectors, run, state, key, first, which, epsilon)
        played = _played(run, rows, which)
        return Totals(episodes=episodes_over(played), ratios=metrics.measure(measured, played))

    return over_runs(one_run)(runs, state)


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
    which: WhichEpisodes,
) -> dict[str, Ratio]:
    """Play episodes at the final ε of training, and compare the critic's values under `which.kind` with the returns.

    Return the two sums of each metric, [runs] each.
    """

    def one_run(run: Run, state: TrainState) -> dict[str, Ratio]:
        epsilon = jnp.maximum(run.hyper.epsilon_end, run.eval_epsilon)
        rows = rows_of(static, num_envs, episodes, vectors, run, state, key, 0, which, epsilon)
        gamma = run.hyper.gamma
        error, realised = value_errors(static, vectors, state, rows, gamma, which.kind)
        played = _played(run, rows, which, value_error=error, realised=realised)
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
    """Return the means of V(h, c) − G and of G over all decisions under `kind`, [critics] each.

    G is the realised return, with the critic's own bootstrap where the horizon cut the episode.
    """
    placed = batches.place(static.network.shape, static.critic.shape, rows)
    valued, values = backbones.valued_rows(static, vectors, state, batches.batch_of(placed, gamma))

    def agent(rows: MacroTransitions, values: Values) -> tuple[Array, Array]:
        realised = targets_of(math.inf, 1.0, CORRECTIONS["none"], rows, values)
        # A fulfilled instruction ends early; decisions after it are not under `kind`.
        valid = rows.valid & (rows.kind == kind)
        count = jnp.maximum(valid.sum(), 1)
        error = (valid * (values.value - realised)).sum() / count
        return error, (valid * realised).sum() / count

    return jax.vmap(agent)(valued, values)


def until_enough(
    static: StaticConfig,
    num_envs: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    section: Section,
    which: WhichEpisodes,
) -> Totals:
    """Play batches of episodes until every run has `section.enough` episodes, or instructions in an instructed section.

    Return the totals in float64. Playing stops after four batches without any instruction, and after MAX_BATCHES.
    """
    key = jax.random.key(EVALUATION_KEY)
    episodes = num_envs * 4
    if jax.default_backend() != "cpu":  # there consecutive ticks cost more than idle environments
        num_envs = episodes
    total: Totals | None = None
    for batch in range(MAX_BATCHES):
        played = play(
            static, num_envs, episodes, metrics.measured(PLAYED), vectors, runs, state, key,
            jnp.int32(batch * episodes), which,
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
    """Return a point of the learning curve: the metrics of `metrics.CURVES`, [runs] each; 0 if nothing was asked."""
    key = jax.random.key(EVALUATION_KEY + 1)
    no_twins = jnp.zeros(runs.test_env.rules.allowed.shape[1:], bool)
    played = {
        instructed: play(
            static, num_envs, PROGRESS_EPISODES, metrics.measured(SECTIONS), vectors, runs, state,
            key, jnp.int32(0), episodes_of(no_twins, instructed=instructed, also=None),
        )
        for instructed in (False, True)
    }  # fmt: skip
    return {
        metric.name: np.nan_to_num(
            divide(played[SECTIONS[metric.section].instructed].ratios[metric.name])
        )
        for metric in metrics.CURVES
    }


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is evaluated together: the runs of all configurations of a group, and how many episodes they play."""

    static: StaticConfig
    vectors: Array
    runs: Run
    state: TrainState
    num_envs: int
    scale: float
    """The share of a full evaluation's episodes."""
    twins: Array
    """As in `WhichEpisodes`."""
    kinds: dict[str, int]
    """The kinds that some configuration gives, by name."""
    pairs: dict[str, tuple[int, int]]
    """The pairs of prohibitions that are evaluated, by name."""

    def totals(self, section: Section, **which: Any) -> Totals:
        """Return the sums over episodes of a section. `which` are further arguments of `episodes_of`."""
        fewer = dataclasses.replace(section, enough=section.enough * self.scale)
        episodes = episodes_of(
            self.twins, instructed=section.instructed, greedy=section.greedy, **which
        )
        common = (self.static, self.num_envs, self.vectors, self.runs, self.state)
        return until_enough(*common, fewer, episodes)

    def value_bias(self, kind: int) -> np.ndarray:
        """Return the value bias [runs] under a kind that is held; 0: without an instruction."""
        episodes = max(32, math.ceil(HELD_EPISODES * self.scale))
        (ratio,) = evaluate_held_instruction(
            self.static, episodes // 4, episodes, metrics.measured(["leak"]), self.vectors,
            self.runs, self.state, jax.random.key(EVALUATION_KEY),
            episodes_of(self.twins, kind=kind, also=None),
        ).values()  # fmt: skip
        return divide(ratio)


def evaluation_of(
    trained: Trained, num_envs: int | None, scale: float, pairs: bool = True
) -> Evaluation:
    """Return what is evaluated of a group."""
    runs, state = trained.teams_of(trained.group.configs)
    rules = runs.test_env.rules
    given = np.atleast_1d(np.asarray(rules.given).any(axis=0))
    return Evaluation(
        static=trained.static,
        vectors=trained.task.vectors,
        runs=runs,
        state=state,
        num_envs=num_envs or usual_envs(scale),
        scale=scale,
        twins=twins_of(jax.tree.map(lambda x: x[0], rules), trained.task.file),
        kinds={name: i for i, name in enumerate(rules.names) if given[i]},
        pairs=pairs_of(trained.task, given) if pairs else {},
    )


def usual_envs(scale: float) -> int:
    """Return how many environments play at once. A batch has four episodes of each.

    On a CPU, where ticks are slow, they are 64, or fewer if one batch is more than a kind that is held needs.
    """
    if jax.default_backend() != "cpu":
        return 256
    return min(64, math.ceil(UNDER_EPISODES * scale / 4))


def evaluate(
    trained: Trained,
    *,
    num_envs: int | None = None,
    scale: float = 1.0,
    shield: bool = True,
    pairs: bool = True,
) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the `score` lines of all configs of a group, evaluated together. Every number has one entry per seed.

    With `scale` below 1 fewer episodes are played. With `shield` everything under an instruction is played again while
    what is forbidden is unavailable; these numbers stand under "shield", in the same sections. With `pairs` two
    prohibitions at once are played too.
    """
    group, task = trained.group, trained.task
    evaluation = evaluation_of(trained, num_envs, scale, pairs)
    played = {name: evaluation.totals(section) for name, section in SECTIONS.items()}
    found = _sections(evaluation, played, played["base"])
    asked = evaluation.kinds
    found["leak"] = {
        name: evaluation.value_bias(i) for name, i in ({metrics.OVERALL: 0} | asked).items()
    }
    if shield:  # without an instruction it changes nothing
        again = {
            name: evaluation.totals(section, shield=True)
            for name, section in SECTIONS.items()
            if section.instructed
        }
        found["shield"] = _sections(evaluation, again, played["base"], shield=True)
    seeds = len(group.seeds)
    scores = {
        config: {
            "type": "score",
            "episodes": int(trained.state.episodes[0]),
            "optimum": best_return(config, task, group.preset.gamma),
            "optima": {
                name: best_return(config, task, group.preset.gamma, name)
                for name in (*asked, *evaluation.pairs)
            },
            **_one_count(_of_config(config, found, slice(n * seeds, (n + 1) * seeds))),
        }
        for n, config in enumerate(group.configs)
    }
    return {c: divergence.marked(score, trained.diverged(c)) for c, score in scores.items()}


def _sections(
    evaluation: Evaluation, played: dict[str, Totals], base: Totals, shield: bool = False
) -> dict[str, Any]:
    """Return the entries of the sections that were `played`, and those of UNDER and PAIRS, which are played here.

    `base` are the totals of uninstructed episodes. UNDER compares the use of macros with them.
    """
    rules = evaluation.runs.test_env.rules
    replaces = np.asarray(rules.replaces)
    found = {name: section_entries(name, totals, rules.names) for name, totals in played.items()}
    found[UNDER] = {
        name: _under_entries(
            {UNDER: evaluation.totals(HELD_TO_END, kind=i, shield=shield), "base": base},
            i,
            replaces=replaces[:, i],
            has_twin=bool(evaluation.twins[i].any()),
        )
        for name, i in evaluation.kinds.items()
        if not replaces[:, i].all()
    }
    found[PAIRS] = {
        name: _pair_entries(
            evaluation.totals(HELD_TO_END, kind=one, also=other, shield=shield),
            replaced=replaces[:, one] | replaces[:, other],
        )
        for name, (one, other) in evaluation.pairs.items()
    }
    return found


def section_entries(section: str, totals: Totals, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return a section of the score line: every metric [runs], and the counts by kind where a metric keeps them."""
    found: dict[str, Any] = {"episodes": totals.episodes}
    for key, metric in metrics.entries(section).items():
        ratio = totals.ratios[metric.name]
        found[key] = divide(ratio)
        for name, counts in zip(metric.counts or (), ratio, strict=False):
            found[name] = {kind: counts[:, i] for i, kind in enumerate(kinds) if i}
    return found


def _under_entries(
    totals: dict[str, Totals], kind: int, *, replaces: np.ndarray, has_twin: bool
) -> dict[str, Any]:
    """Return the entries of a kind in the section UNDER, [runs] each, from the totals of UNDER and of other sections.

    They are nan for runs in which the kind replaces the task, and the use of a twin is nan for a kind without one.
    """
    found: dict[str, Any] = {}
    for key, metric in metrics.entries(UNDER).items():
        ratio = totals[metric.episodes or UNDER].ratios[metric.name]
        value = divide(Ratio(*(part[:, kind] if part.ndim > 1 else part for part in ratio)))
        unknown = replaces | (metric.numerator is metrics.TWIN and not has_twin)
        found[key] = np.where(unknown, np.nan, value)
    return found


def _pair_entries(totals: Totals, *, replaced: np.ndarray) -> dict[str, Any]:
    """Return the entries of a pair in the section PAIRS, [runs] each; nan for runs in which it replaces the task."""
    return {
        key: np.where(replaced, np.nan, divide(totals.ratios[metric.name]))
        for key, metric in metrics.entries(PAIRS).items()
    }


def pairs_of(task: Task, given: np.ndarray) -> dict[str, tuple[int, int]]:
    """Return the pairs of prohibitions to evaluate, by name. `given` [C] bool: the kinds that instructions are of.

    Prohibitions are those that leave the task on by the file's own rules, also where every kind has rule `add`.
    """
    rules = replace(rules_of(task.env, task.file), given=jnp.asarray(given))
    return prohibited_pairs(task.env, rules, api.known(task.env.name).impossible_together)


def best_return(
    config: ExperimentConfig, task: Task, gamma: float, kind: str | None = None
) -> float | None:
    """Return the best discounted return of the task (D23) if `kind` is obeyed from the start; None if unknown."""
    optimum = api.world(config.world).optimum
    return None if optimum is None else optimum(task.env, gamma, kind)


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

    def part(entry: Any) -> Any:
        return int(np.min(entry)) if not isinstance(entry, dict) else _one_count(entry)

    return {
        name: part(value) if name == "episodes" or isinstance(value, dict) else value
        for name, value in score.items()
    }

"""Evaluation of trained teams (D14-D16): the programs that play episodes, and the score lines made of their sums.

`mavic.evaluation.metrics` lists what is measured. Teams are evaluated with final parameters. `_play` plays episodes
without exploration: uninstructed, with instructions that come and go, or under one kind or two from the start; with or
without the shield. `_held_instruction` plays at the final ε of training and compares the critic's values with the
returns. `evaluate` runs both and makes the score lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.evaluation import metrics
from mavic.evaluation.metrics import PAIRS, SECTIONS, UNDER, Metric, Ratio
from mavic.evaluation.quantities import EPISODES, TWIN, Tally
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import Task
from mavic.instruct.pairs import prohibited_pairs
from mavic.instruct.reward import rules_of
from mavic.instruct.schedule import make_schedule
from mavic.instruct.spec import InstructionFile
from mavic.learn import backbones, batches
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import as_played
from mavic.learn.update import StaticConfig, TrainState
from mavic.learn.values import Values
from mavic.rollout.rollout import rollout
from mavic.rollout.step import InstructedEnv
from mavic.training import divergence
from mavic.training.devices import over_runs
from mavic.training.runs import Run, rollout_policy
from mavic.training.trained import Trained
from mavic.types import CONTEXTS, Array, MacroTransitions, Rules, Timestep, record, replace

EVALUATION_KEY = 20_260_000  # shared by all methods and seeds, so that all meet the same episodes
MAX_BATCHES = 64
SILENT_BATCHES = 4  # without any instruction, after which playing stops
PROGRESS_EPISODES = 128  # of a point of the learning curve
PLAYED = tuple(name for name in SECTIONS if name != "leak")
"""The sections whose numbers come from `_play`. All are summed in every call, so that one program serves them."""


@record
class _Totals:
    """Sums over episodes, [runs] each: finished episodes, and the two sums of every metric by name."""

    episodes: Any
    ratios: dict[str, Ratio]


@record
class _WhichEpisodes:
    """Which episodes are played. All fields are arrays, so one program serves all combinations."""

    instructed: Array  # [] bool: by the schedule of the run's condition; otherwise by `kind`
    kind: Array  # [] the kind that holds from the start until the episode ends or an event resolves it; 0: none
    greedy: Array  # [] bool: always the most likely macro
    shield: Array  # [] bool: what the instruction forbids is unavailable
    twins: Array  # [C, N, M] bool: what a kind's twin forbids and the kind allows
    also: Array | None = None  # [] a second kind beside `kind`; 0: none; None: compiled without one


def episodes_of(
    twins: Array,
    *,
    instructed: bool = False,
    kind: int = 0,
    greedy: bool = False,
    shield: bool = False,
    also: int | None = 0,
) -> _WhichEpisodes:
    """Return which episodes to play, from plain values.

    Args:
        twins: Bool [C, N, M], the macros that a kind's twin forbids and the kind allows.
        instructed: Instructions come and go by the schedule of the run's condition.
        kind: The kind that holds from the start; 0: none.
        greedy: Always the most likely macro.
        shield: What the instruction forbids is unavailable.
        also: A second kind beside `kind`; 0: none; None: compiled without one, which makes ticks faster.
    """
    return _WhichEpisodes(
        instructed=jnp.asarray(instructed),
        kind=jnp.int32(kind),
        greedy=jnp.asarray(greedy),
        shield=jnp.asarray(shield),
        twins=twins,
        also=None if also is None else jnp.int32(also),
    )


def _twins_of(rules: Rules, file: InstructionFile) -> Array:
    """Return bool [C, N, M], the macros that a kind's twin forbids and the kind itself allows; none without a twin."""
    allowed = np.asarray(rules.allowed)
    found = np.zeros_like(allowed)
    for number, kind in enumerate(file.kinds, start=1):
        if kind.twin is not None:
            found[number] = ~allowed[1 + file.names().index(kind.twin)] & allowed[number]
    return jnp.asarray(found)


def env_of(test: InstructedEnv, which: _WhichEpisodes) -> InstructedEnv:
    """Return the environment of these episodes.

    Args:
        test: The environment with the instructions of its condition.
        which: Which episodes are played.
    """
    rules = test.rules
    held = replace(make_schedule(), from_start=jnp.where(which.kind > 0, 1.0, 0.0))
    schedule = jax.tree.map(
        lambda live, one: jnp.where(which.instructed, live, one), test.schedule, held
    )
    only = jnp.arange(rules.given.shape[0]) == which.kind
    given = jnp.where(which.instructed, rules.given, only)
    return replace(
        test,
        schedule=replace(schedule, shield=which.shield),
        rules=replace(rules, given=given),
        also=which.also,
    )


def rows_of(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    vectors: Array,
    run: Run,
    state: TrainState,
    key: Array,
    first: Array | int,
    which: _WhichEpisodes,
    epsilon: Array,
) -> Timestep:
    """Return the ticks of a run's episodes.

    Args:
        static: The program's static part.
        num_envs: Environments that play at once.
        episodes: How many episodes are played.
        vectors: What agents hear, by phrase.
        run: The run.
        state: Its networks.
        key: A random key.
        first: The number of the first episode.
        which: Which episodes are played.
        epsilon: The exploration, by context.
    """
    greedy, second = which.greedy & (run.eval_epsilon == 0), which.also is not None
    policy = rollout_policy(static, state.actor, vectors, epsilon, greedy, second)
    env = env_of(run.test_env, which)
    return rollout(env, policy, key, episodes=episodes, num_envs=num_envs, first=first).rows


def _tally(run: Run, rows: Timestep, which: _WhichEpisodes, **more: Array) -> Tally:
    rules = run.test_env.rules
    return Tally(
        rows=rows,
        gamma=run.hyper.gamma,
        kinds=rules.allowed.shape[0],
        twins=which.twins,
        named=jnp.where(rules.lists_allowed[:, None, None], rules.allowed, ~rules.allowed),
        addressed=rules.addressed,
        **more,
    )


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes", "measured"))
def _play(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    measured: tuple[Metric, ...],
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    first: Array,
    which: _WhichEpisodes,
) -> _Totals:
    """Play `episodes` episodes of each run from number `first` on, without exploration. Return the metrics' sums.

    All runs share `key`, so all meet the same random numbers.
    """

    def one_run(run: Run, state: TrainState) -> _Totals:
        epsilon = jnp.stack([run.eval_epsilon] * CONTEXTS)
        rows = rows_of(static, num_envs, episodes, vectors, run, state, key, first, which, epsilon)
        tally = _tally(run, rows, which)
        return _Totals(episodes=EPISODES.total(tally), ratios=metrics.measure(measured, tally))

    return over_runs(one_run)(runs, state)


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes", "measured"))
def _held_instruction(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    measured: tuple[Metric, ...],
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    which: _WhichEpisodes,
) -> dict[str, Ratio]:
    """Play episodes at the final ε of training, and compare the critic's values under `which.kind` with the returns.

    Return the two sums of each metric, [runs] each.
    """

    def one_run(run: Run, state: TrainState) -> dict[str, Ratio]:
        epsilon = jnp.maximum(run.hyper.epsilon_end, run.eval_epsilon)
        rows = rows_of(static, num_envs, episodes, vectors, run, state, key, 0, which, epsilon)
        gamma = run.hyper.gamma
        error, realised = _value_errors(static, vectors, state, rows, gamma, which.kind)
        tally = _tally(run, rows, which, value_error=error, realised=realised)
        return metrics.measure(measured, tally)

    return over_runs(one_run)(runs, state)


def _value_errors(
    static: StaticConfig,
    vectors: Array,
    state: TrainState,
    ticks: Timestep,
    gamma: Array,
    kind: Array,
) -> tuple[Array, Array]:
    """Return the means of V(h, c) − G and of G over all decisions under `kind`, [critics] each.

    G is the realised return, with the critic's own bootstrap where the horizon cut the episode.
    """
    views = batches.views_of(static.network.shape, static.critic.shape, ticks)
    batch = batches.batch_of(views, [as_played(view) for view in views], gamma)

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

    return jax.vmap(agent)(*backbones.values(static, vectors, state, batch))


def until_enough(
    static: StaticConfig,
    num_envs: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    which: _WhichEpisodes,
    enough: float,
) -> _Totals:
    """Play batches of episodes until every run has `enough` of them and return the totals in float64.

    Playing also stops after SILENT_BATCHES without any instruction, and after MAX_BATCHES.

    Args:
        static: The program's static part.
        num_envs: Environments that play at once.
        vectors: What agents hear, by phrase.
        runs: The runs.
        state: Their networks.
        which: Which episodes are played.
        enough: The least number of episodes per run, or of instructions if instructions come and go.
    """
    key = jax.random.key(EVALUATION_KEY)
    episodes = num_envs * 4
    if jax.default_backend() != "cpu":  # there consecutive ticks cost more than idle environments
        num_envs = episodes
    total: _Totals | None = None
    instructed = bool(which.instructed)
    for batch in range(MAX_BATCHES):
        played = _play(
            static, num_envs, episodes, metrics.measured(PLAYED), vectors, runs, state, key,
            jnp.int32(batch * episodes), which,
        )  # fmt: skip
        sums = jax.tree.map(lambda x: np.asarray(x, np.float64), played)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
        seen = _instructions(total) if instructed else total.episodes
        silent = instructed and batch + 1 == SILENT_BATCHES and not seen.any()
        if seen.min() >= enough or silent:
            break
    assert total is not None
    return total


def _instructions(total: _Totals) -> np.ndarray:
    """Return the number of instructions that were given and counted, [runs]."""
    return total.ratios[metrics.COMPLIANCE.name].denominator.sum(-1)


def progress(
    static: StaticConfig, num_envs: int, vectors: Array, runs: Run, state: TrainState
) -> dict[str, np.ndarray]:
    """Return a point of the learning curve: the metrics of `metrics.CURVES`, [runs] each.

    The compliance of a run in which no instruction was given is nan.

    Args:
        static: The program's static part.
        num_envs: Environments that play at once.
        vectors: What agents hear, by phrase.
        runs: The runs.
        state: Their networks.
    """
    key = jax.random.key(EVALUATION_KEY + 1)
    no_twins = jnp.zeros(runs.test_env.rules.allowed.shape[1:], bool)
    played = {
        instructed: _play(
            static, num_envs, PROGRESS_EPISODES, metrics.measured(metrics.FREE), vectors, runs, state,
            key, jnp.int32(0), episodes_of(no_twins, instructed=instructed, also=None),
        )
        for instructed in (False, True)
    }  # fmt: skip
    found = {
        metric.name: played[SECTIONS[metric.section].instructed].ratios[metric.name].value()
        for metric in metrics.CURVES
    }
    return {
        name: value if name == metrics.COMPLIANCE.name else np.nan_to_num(value)
        for name, value in found.items()
    }


@dataclass(frozen=True, kw_only=True)
class _Evaluation:
    """What is evaluated together: the runs of all configurations of a group, and how many episodes they play."""

    static: StaticConfig
    vectors: Array
    runs: Run
    state: TrainState
    num_envs: int
    scale: float
    """The share of a full evaluation's episodes."""
    twins: Array
    """As in `_WhichEpisodes`."""
    kinds: dict[str, int]
    """The kinds that some configuration gives, by name."""
    pairs: dict[str, tuple[int, int]]
    """The pairs of prohibitions that are evaluated, by name."""

    def totals(self, name: str, **which: Any) -> _Totals:
        """Return the sums over episodes of a section. `which` are further arguments of `episodes_of`."""
        section = SECTIONS[name]
        flags = dict(instructed=section.instructed, greedy=section.greedy)
        episodes = episodes_of(self.twins, **flags, **which)
        common = (self.static, self.num_envs, self.vectors, self.runs, self.state)
        return until_enough(*common, episodes, section.enough * self.scale)

    def value_bias(self, kind: int) -> np.ndarray:
        """Return the value bias [runs] under a kind that is held; 0: without an instruction."""
        episodes = max(32, math.ceil(SECTIONS["leak"].enough * self.scale))
        (ratio,) = _held_instruction(
            self.static, episodes // 4, episodes, metrics.measured(["leak"]), self.vectors,
            self.runs, self.state, jax.random.key(EVALUATION_KEY),
            episodes_of(self.twins, kind=kind, also=None),
        ).values()  # fmt: skip
        return ratio.value()


def _evaluation_of(
    trained: Trained, num_envs: int | None, scale: float, pairs: bool = True
) -> _Evaluation:
    """Return what is evaluated of a group."""
    runs, state = trained.teams_of(trained.group.configs)
    rules = runs.test_env.rules
    given = np.atleast_1d(np.asarray(rules.given).any(axis=0))
    return _Evaluation(
        static=trained.static,
        vectors=trained.task.vectors,
        runs=runs,
        state=state,
        num_envs=num_envs or usual_envs(scale),
        scale=scale,
        twins=_twins_of(jax.tree.map(lambda x: x[0], rules), trained.task.file),
        kinds={name: i for i, name in enumerate(rules.names) if given[i]},
        pairs=_pairs_of(trained.task, given) if pairs else {},
    )


def usual_envs(scale: float) -> int:
    """Return how many environments play at once. A batch has four episodes of each.

    On a CPU, where ticks are slow, they are at most 64, and fewer if a smaller batch is enough for a held kind.
    """
    if jax.default_backend() != "cpu":
        return 256
    return min(64, math.ceil(SECTIONS[UNDER].enough * scale / 4))


def evaluate(
    trained: Trained,
    *,
    num_envs: int | None = None,
    scale: float = 1.0,
    shield: bool = True,
    pairs: bool = True,
) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the `score` lines of all configs of a group, evaluated together. Every number has one entry per seed.

    Args:
        trained: The group, with the final parameters of its teams.
        num_envs: Environments that play at once; by default `usual_envs(scale)`.
        scale: The share of a full evaluation's episodes.
        shield: Play all sections with instructions again while forbidden macros are unavailable. These numbers are
            under "shield", in the same sections.
        pairs: Also play under two prohibitions at once.
    """
    group, task = trained.group, trained.task
    evaluation = _evaluation_of(trained, num_envs, scale, pairs)
    played = {name: evaluation.totals(name) for name in metrics.FREE}
    found = _sections(evaluation, played, played["base"])
    asked = evaluation.kinds
    found["leak"] = {
        name: evaluation.value_bias(i) for name, i in ({metrics.OVERALL: 0} | asked).items()
    }
    if shield:  # it has no effect without an instruction
        instructed = (name for name in metrics.FREE if SECTIONS[name].instructed)
        again = {name: evaluation.totals(name, shield=True) for name in instructed}
        found["shield"] = _sections(evaluation, again, played["base"], shield=True)
    seeds = len(group.seeds)
    scores = {
        config: {
            "type": "score",
            "episodes": int(trained.state.episodes[0]),
            "optimum": api.best_return(task.env, group.preset.gamma),
            "optima": {
                name: api.best_return(task.env, group.preset.gamma, name)
                for name in (*asked, *evaluation.pairs)
            },
            **_one_count(_of_config(config, found, slice(n * seeds, (n + 1) * seeds))),
        }
        for n, config in enumerate(group.configs)
    }
    return {c: divergence.marked(score, trained.diverged(c)) for c, score in scores.items()}


def _sections(
    evaluation: _Evaluation, played: dict[str, _Totals], base: _Totals, shield: bool = False
) -> dict[str, Any]:
    """Return the entries of the sections that were `played`, and those of UNDER and PAIRS, which are played here.

    `base` are the totals of uninstructed episodes. UNDER compares the use of macros with them.
    """
    rules = evaluation.runs.test_env.rules
    replaces = np.asarray(rules.replaces)
    found = {name: _section_entries(name, totals, rules.names) for name, totals in played.items()}

    def held(section: str, kind: int, also: int = 0) -> dict[str, Any]:
        totals = evaluation.totals(section, kind=kind, also=also, shield=shield)
        unknown = replaces[:, kind] | replaces[:, also] if also else replaces[:, kind]
        twin = bool(evaluation.twins[kind].any())
        counted = slice(None) if also else kind
        return _held_entries(section, {section: totals, "base": base}, counted, unknown, twin)

    found[UNDER] = {
        name: held(UNDER, i) for name, i in evaluation.kinds.items() if not replaces[:, i].all()
    }
    found[PAIRS] = {name: held(PAIRS, *pair) for name, pair in evaluation.pairs.items()}
    return found


def _entries(section: str) -> dict[str, Metric]:
    """Return the metrics of a section of the score line by key. A greedy section has those of the sampled one."""
    return {metric.key: metric for metric in metrics.measured([section.removesuffix("_greedy")])}


def _section_entries(section: str, totals: _Totals, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return a section of the score line: every metric [runs], and the counts by kind where a metric keeps them."""
    found: dict[str, Any] = {"episodes": totals.episodes}
    for key, metric in _entries(section).items():
        ratio = totals.ratios[metric.name]
        found[key] = ratio.value()
        for name, counts in zip(metric.counts or (), ratio, strict=False):
            found[name] = {kind: counts[:, i] for i, kind in enumerate(kinds) if i}
    return found


def _held_entries(
    section: str, totals: dict[str, _Totals], kinds: int | slice, unknown: np.ndarray, twin: bool
) -> dict[str, Any]:
    """Return the entries of one kind or pair in UNDER or PAIRS, [runs] each; nan where undefined.

    Args:
        section: UNDER or PAIRS.
        totals: The sums of its episodes, and those of other sections that its metrics read.
        kinds: The kinds whose counts are added.
        unknown: Bool [runs], the runs in which the instruction replaces the task.
        twin: Whether the kind has a twin. Without one, the use of it is undefined.
    """
    found: dict[str, Any] = {}
    for key, metric in _entries(section).items():
        ratio = totals[metric.episodes or section].ratios[metric.name]
        value = Ratio(*(part[:, kinds] if part.ndim > 1 else part for part in ratio)).value()
        undefined = unknown | (metric.numerator is TWIN and not twin)
        found[key] = np.where(undefined, np.nan, value)
    return found


def _pairs_of(task: Task, given: np.ndarray) -> dict[str, tuple[int, int]]:
    """Return the pairs of prohibitions to evaluate, by name. `given` [C] bool: the kinds that are given.

    The file's rules decide whether a kind is a prohibition, even if the configuration gives every kind rule `add`.
    """
    rules = replace(rules_of(task.env, task.file), given=jnp.asarray(given))
    return prohibited_pairs(task.env, rules, api.known(task.env.name).impossible_together)


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

"""Any agent judged: a callable plays under the same instructions, seeds and metrics as trained teams.

    def agent(seen):  # a heuristic, a torch policy, a language model, a person
        return [None if not idle else "STAY" for idle in seen.idle]

    judged = judge(agent, "overcooked", name="sleeper", out="runs")

An agent is called whenever somebody decides. It may keep what it likes in `seen.memory`, which is empty when an episode
begins; several episodes are played side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.evaluation import evaluate, metrics
from mavic.evaluation.evaluate import EVALUATION_KEY, PLAYED, episodes_of
from mavic.evaluation.metrics import SECTIONS, UNDER, Metric
from mavic.evaluation.quantities import EPISODES, Tally
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.environments import instructed_env
from mavic.experiment.methods import JUDGED, preset_of
from mavic.experiment.task import Task, task_of
from mavic.language import text
from mavic.rollout import step as steps
from mavic.rollout import threefry
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, Timestep, replace

UNSURE = "unsure"
SIDE_BY_SIDE = 16
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What an agent is told when somebody of its team decides. Arrays are numpy's."""

    time: int
    agents: tuple[str, ...]
    macros: tuple[tuple[str, ...], ...]
    """The names of each agent's macros."""
    idle: np.ndarray
    """bool [N], who decides. The others go on with their macros."""
    observation: np.ndarray
    """[N, O] what each agent sees, or saw at its last decision."""
    available: np.ndarray
    """bool [N, M]."""
    running: tuple[str | None, ...]
    """The macro that each agent ran last, or still runs."""
    text: tuple[str | None, ...]
    """The sentence that holds for each agent."""
    kind: tuple[str | None, ...]
    """Its kind, for agents that do not read."""
    state: Any
    """The state of the environment, which teams do not see. It is for scripted agents."""
    memory: dict[Any, Any]
    """The agent's own; empty when an episode begins."""


Agent = Callable[[Seen], Sequence[Any]]
"""Returns a macro for each agent, by its name or number. "unsure" asks back: the agent waits, and that is counted."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The result."""

    name: str
    score: dict[str, Any]
    """The score line of the record; each number is a list with one entry."""
    record: Path | None

    def summary(self) -> dict[str, float | None]:
        """Return the main numbers: the base return and its share of the optimum, the share of instructions followed,
        the task return under instructions as a share of the best obedient plan's (mean over kinds), latency in ticks,
        and the share of unsure decisions.
        """
        score = self.score
        shares = [
            one["task"][0] / best
            for kind, one in score[UNDER].items()
            if (best := score["optima"].get(kind)) and np.isfinite(one["task"][0])
        ]
        optimum = score["optimum"]
        return {
            "base": float(score["base"]["discounted"][0]),
            "share_of_optimum": float(score["base"]["discounted"][0] / optimum)
            if optimum
            else None,
            "followed": float(score["compliance"]["per_instruction"][0]),
            "under_instructions": float(np.mean(shares)) if shares else None,
            "latency": float(score["compliance"]["latency"][0]),
            "unsure": float(score["unsure"][0]),
        }


def judge(
    agent: Agent,
    world: str,
    *,
    name: str = "agent",
    condition: str = "live/by-kind",
    episodes: int = 64,
    at_once: int = SIDE_BY_SIDE,
    out: str | Path | None = None,
    **options: Any,
) -> Judged:
    """Play test episodes with an agent: without instructions, with instructions that come and go, and under each kind.

    Args:
        agent: any callable from `Seen` to a macro for each agent.
        world: the name of a world.
        name: what the agent is called in records: small letters, digits, "-" and "_".
        condition: how it is instructed, as in `mavic train --condition`.
        episodes: of the first two sections each; a quarter of it for each kind.
        at_once: how many episodes are played side by side, 1 for a person.
        out: the folder for the record, which goes into a folder of the world. None: write nothing.
        options: options of the world.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: use small letters, digits, - and _")
    if episodes < 1:
        raise ValueError(f"episodes must be 1 or more, not {episodes}")
    if not 1 <= at_once <= SIDE_BY_SIDE:
        raise ValueError(f"at_once must be from 1 to {SIDE_BY_SIDE}, not {at_once}")
    config = ExperimentConfig(world=world, method=f"{JUDGED}{name}", options=options)
    config = config.with_condition(condition)
    task, preset = task_of(config), preset_of(config.preset, world)
    play = _Play(agent, config, task, preset.gamma, at_once)
    score = play.score(episodes)
    record = None
    if out is not None:
        record = Path(out) / world / f"{config.name()}.jsonl"
        lines = [records.run_line(config, preset, [0], judged=name), score]
        records.write(record, lines)
    return Judged(name=name, score=score, record=record)


class _Play:
    """An agent in a task."""

    def __init__(
        self, agent: Agent, config: ExperimentConfig, task: Task, gamma: float, at_once: int
    ) -> None:
        self.at_once = at_once
        self.agent, self.config, self.task, self.gamma = agent, config, task, gamma
        self.test = instructed_env(config, task)
        env = self.test.env
        self.macros = tuple(tuple(macro.name for macro in enum) for enum in env.macros)
        self.rest = self._resting_macros()
        self.twins = evaluate._twins_of(self.test.rules, task.file)
        self.asked = self.unsure = 0  # decisions of addressed agents, and those that asked back

    def score(self, episodes: int) -> dict[str, Any]:
        """Return the score line."""
        rules = self.test.rules
        replaces = np.asarray(rules.replaces)
        given = {n: i for i, n in enumerate(rules.names) if bool(rules.given[i])}
        sections = [name for name in metrics.FREE if not SECTIONS[name].greedy]
        played = {
            name: self._totals(episodes, instructed=SECTIONS[name].instructed) for name in sections
        }
        found: dict[str, Any] = {
            name: evaluate._section_entries(name, totals, rules.names)
            for name, totals in played.items()
        }
        for name, section in SECTIONS.items():  # a callable has no likeliest macro
            if section.greedy:
                sampled = found[name.removesuffix("_greedy")]
                found[name] = jax.tree.map(lambda value: np.full_like(value, np.nan), sampled)
                found[name]["episodes"] = np.zeros(1)
        found[UNDER] = {}
        for name, kind in given.items():
            if not replaces[kind]:
                totals = self._totals(max(1, episodes // 4), kind=kind)
                parts = {UNDER: totals, "base": played["base"]}
                twin = bool(self.twins[kind].any())
                unknown = np.zeros(1, bool)
                found[UNDER][name] = evaluate._held_entries(UNDER, parts, kind, unknown, twin)
        found["leak"] = {metrics.OVERALL: [None], **{name: [None] for name in given}}
        best = lambda kind=None: api.best_return(self.task.env, self.gamma, kind)  # noqa: E731
        return {
            "type": "score",
            "episodes": 0,
            "optimum": best(),
            "optima": {name: best(name) for name in given},
            "unsure": [self.unsure / max(self.asked, 1)],
            **evaluate._one_count(found),
        }

    def _totals(self, episodes: int, **which: Any) -> evaluate._Totals:
        """Return the sums over episodes. They are the first ones that trained teams play in this section."""
        env = evaluate.env_of(self.test, episodes_of(self.twins, also=None, **which))
        found = None
        for first in range(0, episodes, self.at_once):
            rows = self._rows(env, first, min(self.at_once, episodes - first))
            sums = jax.tree.map(np.asarray, self._measure(rows))
            found = sums if found is None else jax.tree.map(np.add, found, sums)
        assert found is not None
        return jax.tree.map(lambda x: np.asarray(x, np.float64)[None], found)

    def _measure(self, rows: Timestep) -> evaluate._Totals:
        rules = self.test.rules
        tally = Tally(
            rows=rows,
            gamma=jnp.float32(self.gamma),
            kinds=rules.allowed.shape[0],
            twins=self.twins,
            named=jnp.where(rules.lists_allowed[:, None, None], rules.allowed, ~rules.allowed),
            addressed=rules.addressed,
        )
        measured = metrics.measured(PLAYED)
        return _sums(tuple(m for m in measured if m.section != metrics.PAIRS), tally)

    def _rows(self, env: InstructedEnv, first: int, count: int) -> Timestep:
        """Return the ticks [T, W] of `count` episodes, played side by side. T is the horizon and W is SIDE_BY_SIDE."""
        key = jax.random.key(EVALUATION_KEY)
        state = _reset(env, key, first + jnp.arange(SIDE_BY_SIDE))
        memories: list[dict[str, Any]] = [{} for _ in range(SIDE_BY_SIDE)]
        alive, rows = np.arange(SIDE_BY_SIDE) < count, []
        for _ in range(env.env.horizon):
            shown, world = jax.device_get((_shown(state), state.state))
            choices = np.zeros((SIDE_BY_SIDE, len(self.macros)), np.int32)
            for place in np.flatnonzero(alive):
                if shown["idle"][place].any():
                    choices[place] = self._choose(shown, int(place), world, memories[place])
            state, row = _advance(env, state, choices)
            row = jax.device_get(row)
            rows.append(replace(row, alive=alive.copy()))
            alive &= ~(row.terminal | row.truncated)
            if not alive.any():
                break
        rows += [replace(rows[-1], alive=alive)] * (env.env.horizon - len(rows))
        return jax.tree.map(lambda *parts: np.stack(parts), *rows)

    def _choose(
        self, shown: dict[str, np.ndarray], place: int, shown_state: Any, memory: dict
    ) -> list[int]:
        """Ask the agent. Return a number for each agent; those of busy agents have no effect."""
        one = {name: value[place] for name, value in shown.items()}
        env, names, texts = self.test.env, self.test.rules.names, self.task.lexicon.texts
        ran = [None if m < 0 else own[m] for m, own in zip(one["macro"], self.macros, strict=True)]
        seen = Seen(
            time=int(one["time"]),
            agents=tuple(env.agents),
            macros=self.macros,
            idle=one["idle"],
            observation=one["observation"],
            available=one["available"],
            running=tuple(ran),
            text=tuple(texts[int(row)] or None for row in one["phrase"]),
            kind=tuple(names[int(kind)] if kind else None for kind in one["kind"]),
            state=jax.tree.map(lambda leaf: leaf[place], shown_state),
            memory=memory,
        )
        found = self.agent(seen)
        if isinstance(found, str) or not hasattr(found, "__iter__"):
            raise ValueError(
                f"the agent returned {text.shown(repr(found), 60)}, not a macro for each agent"
            )
        made = list(found)
        if len(made) != len(self.macros):
            raise ValueError(f"the agent chose {len(made)} macros for {len(self.macros)} agents")
        return [
            self._number(agent, choice, seen) if seen.idle[agent] else 0
            for agent, choice in enumerate(made)
        ]

    def _number(self, agent: int, choice: Any, seen: Seen) -> int:
        told, macros = seen.kind[agent] is not None, self.macros[agent]
        self.asked += told
        available = [m for m in range(len(macros)) if seen.available[agent, m]]
        if choice is None or (isinstance(choice, str) and choice == UNSURE):
            self.unsure += told
            rest = [m for m in self.rest[agent] if m in available]
            return (rest or available)[0]
        number = macros.index(choice) if isinstance(choice, str) and choice in macros else choice
        if isinstance(number, str) or np.ndim(number) or number not in available:
            offered = ", ".join(macros[m] for m in available)
            raise ValueError(
                f"the agent chose {text.shown(repr(choice), 60)} for {seen.agents[agent]}, which is not available; "
                f"available: {offered}"
            )
        return int(number)

    def _resting_macros(self) -> list[list[int]]:
        """Return the macros with which each agent waits, where its world has some."""
        names = (*api.known(self.test.env.name).resting_macros, "STAY")
        return [[own.index(name) for name in names if name in own] for own in self.macros]


@partial(jax.jit, static_argnames="measured")
def _sums(measured: tuple[Metric, ...], tally: Tally) -> evaluate._Totals:
    return evaluate._Totals(episodes=EPISODES.total(tally), ratios=metrics.measure(measured, tally))


@jax.jit
def _reset(env: InstructedEnv, key: Array, numbers: Array) -> InstructedState:
    return jax.vmap(lambda number: steps.reset(env, threefry.fold_in(key, number)))(numbers)


def _shown(state: InstructedState) -> dict[str, Array]:
    names = ("time", "idle", "observation", "available", "macro")
    said = {"phrase": state.instruction.phrase, "kind": state.instruction.kind}
    return {name: getattr(state, name) for name in names} | said


@jax.jit
def _advance(
    env: InstructedEnv, state: InstructedState, choice: Array
) -> tuple[InstructedState, Timestep]:
    agents = len(env.env.agents)
    draws = jax.vmap(steps.draws_for)(state)[:, agents:]
    return jax.vmap(lambda s, c, d: steps.step(env, s, c, d))(state, choice, draws)

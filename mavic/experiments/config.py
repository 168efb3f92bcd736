"""One cell of a table — world, method, network, preset, schedule, rule — made into what a program runs."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from mavic.envs import api
from mavic.experiments.methods import (
    METHODS,
    NETWORKS,
    RULES,
    Preset,
    hyperparams_of,
    look_up,
    static_config_of,
)
from mavic.instruct import reward, schedule
from mavic.instruct import spec as instructions
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.learn import act as deciding
from mavic.learn.returns import CORRECTIONS, Correction
from mavic.learn.update import HyperParams, StaticConfig
from mavic.rollout.rollout import Policy
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, Phrases, record, replace

SWITCHES = ("overlap", "extras")  # of a setting, besides its schedule and rule


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """What is trained and judged; several with the same network and preset shape run in one program."""

    world: str = "box_pushing"
    """Which world: see `mavic worlds`."""
    method: str = "mavic"
    """vanilla, naive, switch, mavic, mavic-shift, or random as a yardstick."""
    network: str = "protected"
    """shared (the paper's), protected (separate parts for instructed and uninstructed), or residual (protected, and
    what is asked changes what would be done anyway)."""
    preset: str = "tuned"
    """tuned or paper."""
    schedule: str = "live"
    """live (instructions come and go) or paper (at most one an episode, held to its end)."""
    rule: str = "by-kind"
    """by-kind (as the instruction file says) or add (a penalty everywhere, paper-literal)."""
    overlap: bool = False
    """A new instruction may replace a running one."""
    extras: bool = False
    """Kinds that the instruction file calls extra are given too."""
    one_agent: bool = False
    """Instructions address one random agent."""
    kinds: tuple[str, ...] | None = None
    """Only these kinds are given (default: all)."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the world, such as size=8."""

    def __post_init__(self) -> None:
        look_up(METHODS, self.method, "method")
        look_up(dict.fromkeys(NETWORKS), self.network, "network")
        look_up(dict.fromkeys(RULES), self.rule, "rule")
        look_up(schedule.SCHEDULES, self.schedule, "schedule")

    def __hash__(self) -> int:
        return hash(json.dumps(asdict(self), sort_keys=True))

    def key(self) -> str:
        """Its row group in `table.json`."""
        return f"{self.preset}/{self.network}/{self.setting()}"

    def setting(self) -> str:
        """How it is instructed: schedule/rule, and what else is on."""
        return "/".join(
            [self.schedule, self.rule, *(name for name in SWITCHES if getattr(self, name))]
        )

    def under(self, setting: str) -> ExperimentConfig:
        """The same cell under "schedule/rule[/overlap][/extras]"."""
        schedule, _, rest = setting.partition("/")
        rule, *more = rest.split("/")
        if not rule or not set(more) <= set(SWITCHES):
            raise ValueError(
                f"setting {setting!r} is not schedule/rule[/overlap][/extras], such as live/by-kind"
            )
        switches: dict[str, Any] = {name: name in more for name in SWITCHES}
        return dataclasses.replace(self, schedule=schedule, rule=rule, **switches)

    def name(self) -> str:
        """A name for folders."""
        return "-".join([self.method, *self.key().split("/")])


@record
class Run:
    """The leaves of one training: stacked over seeds and cells, they are the vmapped axis."""

    hyper: HyperParams
    correction: Correction
    setting: InstructedEnv  # as it is trained
    test: InstructedEnv  # as it is judged
    eval_epsilon: Array  # share of random macros when judged: 1 for the random policy, else 0
    key: Array


@dataclass(frozen=True, kw_only=True)
class Task:
    """A world and its words on the host, with what follows from them."""

    env: api.Env
    lexicon: Lexicon
    file: instructions.InstructionFile

    def fixed(self, preset: Preset, network: str) -> StaticConfig:
        """The shape of the program."""
        observation = jax.eval_shape(
            lambda k: self.env.observe(self.env.reset(k)), jax.random.key(0)
        )
        return static_config_of(
            preset,
            network,
            observation=observation.shape[-1],
            macros=api.macro_count(self.env),
            agents=len(self.env.agents),
            embedding=self.lexicon.vectors.shape[1],
            kinds=len(self.file.kinds) + 1,
        )


def as_trained(cell: ExperimentConfig) -> ExperimentConfig:
    """The cell without what its method never meets in training."""
    method = METHODS[cell.method]
    plain: dict[str, Any] = {"method": "vanilla"} if method.random else {}
    if method.instructions != "interrupt":
        plain |= dict(schedule="live", overlap=False)
    if method.instructions == "none":
        plain |= dict(rule="by-kind", kinds=None, extras=False, one_agent=False)
    return dataclasses.replace(cell, **plain)


def instructions_of(world: str) -> Path:
    """The instruction file of a world that is built in or registered."""
    path = api.world(world).instructions
    if path is None:
        raise ValueError(
            f"world {world!r} has no instruction file; register it with one: "
            f'register({world!r}, …, instructions="my.toml")'
        )
    return path


def make_task(world: str, **options: Any) -> Task:
    """A world by name with its own instruction file."""
    env = api.make(world, **options)
    file = instructions.read(instructions_of(world))
    return Task(env=env, lexicon=lexicons.make(file), file=file)


def schedule_of(cell: ExperimentConfig, name: str) -> Any:
    """The schedule's numbers in a cell's world."""
    numbers: dict[str, Any] = dict(schedule.SCHEDULES[name])
    numbers |= api.world(cell.world).schedules.get(name, {})
    if name in ("live", "paper"):
        numbers |= dict(overlap=cell.overlap)
    if name != "off":
        numbers |= dict(one_agent=cell.one_agent)
    return schedule.make_schedule(**numbers)


def run_of(cell: ExperimentConfig, preset: Preset, bench: Task, seed: int) -> Run:
    """One training of a cell."""
    method = METHODS[cell.method]
    rules = reward.rules_of(
        bench.env, bench.file, rule=cell.rule, only=cell.kinds, extras=cell.extras
    )
    phrases = Phrases(table=bench.lexicon.table, count=bench.lexicon.count)
    trained = {"none": "off", "interrupt": cell.schedule, "per_episode": "from_start"}
    heard = phrases
    if method.instructions == "none":  # judged without being told: its phrases are silence
        heard = Phrases(table=jnp.zeros_like(phrases.table), count=phrases.count)

    def setting(schedule: str, **training: float) -> InstructedEnv:
        clock = replace(schedule_of(cell, schedule), **jax.tree.map(jnp.float32, training))
        return InstructedEnv(env=bench.env, rules=rules, schedule=clock, phrases=heard)

    training = dict(
        spurious_interrupt_prob=preset.spurious_interrupt_prob,
        uninstructed_episode_prob=preset.uninstructed_episode_prob,
        hold_to_end_prob=preset.hold_to_end_prob,
    )
    return Run(
        hyper=hyperparams_of(preset),
        correction=jax.tree.map(jnp.float32, CORRECTIONS[method.correction]),
        setting=setting(
            trained[method.instructions],
            **(training if method.instructions == "interrupt" else {}),
        ),
        test=setting(cell.schedule),
        eval_epsilon=jnp.float32(method.random),
        key=jax.random.key(seed),
    )


def stack(runs: list[Run]) -> Run:
    """Many trainings as one, their leaves stacked on a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *runs)


def acting(
    fixed: StaticConfig, actor: Any, vectors: Array, epsilon: Array, greedy: Array | bool = False
) -> Policy:
    """The team as a rollout policy; `epsilon` [2] by context."""
    net = deciding.with_phrases(actor, vectors)
    shape = fixed.shape

    def act(memory: Array, world: InstructedState, draws: Array) -> tuple[Array, Array]:
        memory = jnp.where((world.time == 0)[:, None], 0.0, memory)
        seen = deciding.Seen(world.observation, world.macro, world.instruction.phrase)
        return deciding.decide(
            shape, net, memory, seen, world.available, world.idle, epsilon, draws, greedy
        )

    return Policy(start=lambda lanes: deciding.empty(shape, lanes), act=act)

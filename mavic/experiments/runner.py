"""Training on the host: groups of configurations in one program, progress, checkpoints.

The configurations of a group differ only in numbers (method, schedule, rule), so all of them and all seeds train at
once. After Ctrl-C or a kill a group resumes from its last checkpoint and ends with the same numbers.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mavic.envs import api
from mavic.experiments import (
    checkpoint,
    divergence,
    evaluate,
    memory,
    policy_file,
    records,
    stopping,
    team_networks,
    train,
)
from mavic.experiments.config import ExperimentConfig, Task, task_of
from mavic.experiments.loggers import OnPoint, Point
from mavic.experiments.methods import METHODS, preset_of
from mavic.experiments.policy_file import TeamPolicy
from mavic.experiments.runs import Run, make_run, stack
from mavic.experiments.train import TrainMetrics
from mavic.instruct import reward
from mavic.learn.update import StaticConfig, TrainState
from mavic.learn.views import view_of
from mavic.preset import Preset


@dataclass(frozen=True, kw_only=True)
class Group:
    """Configurations of one world, backbone, network, hearing, encoder and preset, with their seeds."""

    configs: tuple[ExperimentConfig, ...]
    seeds: tuple[int, ...]
    preset: Preset
    initial: str = ""  # a policy whose weights every run starts from; empty: random weights
    initial_sha256: str = ""  # the hash of these weights: the file may change

    def __post_init__(self) -> None:
        if len({(_program(c), json.dumps(c.options)) for c in self.configs}) != 1:
            raise ValueError(
                "configurations of one group must share world, backbone, network, hearing, encoder, "
                "preset and options"
            )

    def trained(self) -> tuple[ExperimentConfig, ...]:
        """Return what is trained. Configurations that differ only in evaluation share a training."""
        return tuple(dict.fromkeys(config.as_trained() for config in self.configs))


def groups_of(
    configs: Iterable[ExperimentConfig],
    seeds: Sequence[int],
    initial: str | Path | None = None,
    **changes: Any,
) -> list[Group]:
    """Return the configurations sorted into groups. `changes` are preset numbers to override.

    With `initial`, a policy file or a shipped team, every run starts from its weights.
    """
    found: dict[tuple, list[ExperimentConfig]] = {}
    for config in configs:
        found.setdefault(_program(config), []).append(config)
    return [
        Group(
            configs=tuple(members),
            seeds=tuple(seeds),
            preset=preset_of(members[0].preset, members[0].world, members[0].backbone, **changes),
            initial=str(initial or ""),
            initial_sha256="" if initial is None else policy_file.weights_digest(initial),
        )
        for members in found.values()
    ]


def _program(config: ExperimentConfig) -> tuple[str, ...]:
    """Return what configurations must share to train in one compiled program."""
    return (
        config.world,
        config.backbone,
        config.network,
        config.hear,
        config.encoder,
        config.preset,
    )


def conflicting_records(groups: Iterable[Group], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each record in `folder` that these groups would replace by a different one, and what differs.

    What differs is "options", "encoder", "seeds", "numbers" or "initial weights". The name of a record tells only its
    method, preset, network and condition.
    """
    for group in groups:
        for config in group.configs:
            path = folder / f"{config.name()}.jsonl"
            if not path.is_file():
                continue
            old = records.read(path)
            pairs = {
                "options": (old.config().options, config.options),
                "encoder": (old.config().encoder, config.encoder),
                "seeds": (old.run["seeds"], group.seeds),
                "numbers": (
                    dataclasses.asdict(old.preset()),
                    dataclasses.asdict(group.preset),
                ),
                "initial weights": _initial_weights(old, group),
            }
            for what, (before, now) in pairs.items():
                if records.plain(before) != records.plain(now):
                    yield path, what


def _initial_weights(old: records.Record, group: Group) -> tuple[str, str]:
    """Return what a record and a group start from: hashes, or names of files where the record has no hash."""
    if "initial" in old.run and "initial_sha256" not in old.run:
        return old.run["initial"], group.initial
    return old.run.get("initial_sha256", ""), group.initial_sha256


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A group after training. Runs are ordered by trained configuration, then by seed."""

    group: Group
    task: Task
    static: StaticConfig
    state: TrainState
    curve: list[dict[str, Any]]
    steps_per_second: float

    def places(self, config: ExperimentConfig) -> list[int]:
        """Return the indices of a configuration's seeds among the runs."""
        start = self.group.trained().index(config.as_trained()) * len(self.group.seeds)
        return list(range(start, start + len(self.group.seeds)))

    def diverged(self, config: ExperimentConfig) -> list[int | None]:
        """Return for each seed of a configuration the point at which its training diverged, or None.

        Random macros need no training, so they cannot diverge.
        """
        seeds = len(self.group.seeds)
        if METHODS[config.method].random:
            return [None] * seeds
        points = divergence.first_points(self.curve, len(self.group.trained()) * seeds)
        return [points[place] for place in self.places(config)]

    def finite_seeds(self, config: ExperimentConfig) -> list[int]:
        """Return the seeds of a configuration whose training did not diverge."""
        pairs = zip(self.group.seeds, self.diverged(config), strict=True)
        return [seed for seed, point in pairs if point is None]


def default_num_envs(batch: int, horizon: int) -> int:
    """Return how many environments play a batch side by side.

    There are fewer environments than episodes, so that one which finishes early takes the next episode. On a GPU
    consecutive ticks cost more than idle environments, so each long episode gets its own environment.
    """
    if jax.default_backend() == "cpu":
        return min(batch, max(16, batch // 8))
    return batch if horizon > train.SHORT_HORIZON else max(1, batch // 4)


def train_group(
    group: Group,
    folder: Path | None = None,
    *,
    points: int = 20,
    num_envs: int | None = None,
    on_point: Sequence[OnPoint] = (),
    console: Console | None = None,
    stop_after: int | None = None,
) -> Trained:
    """Train all configurations and seeds of a group. Resume if `folder` holds a checkpoint of the same group.

    `points` is how often training is evaluated and saved. `on_point` are called with every new point.
    `stop_after` stops as Ctrl-C does, after so many points.
    """
    console = console or Console()
    preset, config = group.preset, group.configs[0]
    task = task_of(config)
    static = task.static_config(preset, config.network, config.backbone)
    num_envs = num_envs or default_num_envs(preset.batch, task.env.horizon)
    configs = group.trained()
    runs = stack([make_run(c, preset, task, seed) for c in configs for seed in group.seeds])
    updates = max(1, math.ceil(preset.episodes / preset.batch / points))
    points = math.ceil(preset.episodes / preset.batch / updates)
    state = train.init_states(static, runs)
    if group.initial:
        state = start_from(state, policy_file.load(group.initial))
    curve: list[dict[str, Any]] = []
    if folder is not None and checkpoint.exists(folder):
        say = partial(console.print, style="yellow", highlight=False, soft_wrap=True)
        state, curve = checkpoint.load(folder, group, state, updates * preset.batch, say)
        console.print(f"resuming {folder} after {len(curve)} of {points} points")
    program = (static, num_envs, updates, task.vectors, runs)
    if len(curve) < points:
        console.print(_memory_line(program, state), highlight=False, soft_wrap=True)
    label = " ".join([config.world, config.backbone, config.network, config.preset])
    label += f" · {len(configs)} × {len(group.seeds)} runs"
    if not console.is_terminal:
        console.print(f"{label}: compiling…", highlight=False)
    with _progress(console) as progress:
        bar = progress.add_task(label, total=points, completed=len(curve), note="compiling…")
        compiled = False  # a signal waits for the end of a point, but not for a compilation
        while len(curve) < points:
            began = time.perf_counter()
            with stopping.after_this(waits=compiled):
                state, metrics = train.train_updates(*program, state)
                jax.block_until_ready(state)
                seconds = time.perf_counter() - began
                rate = float(metrics.ticks.sum()) / seconds
                alive = _alive(group, curve, state, metrics, points, console)
                state = divergence.cleared(state, alive)
                point = _point(static, num_envs, task, runs, state, metrics, seconds)
                curve.append(divergence.blank_point(point, alive))
                if folder is not None:
                    checkpoint.save(folder, group, state, curve)
                compiled = True
            base, compliance = (np.nanmean(curve[-1][k]) for k in ("base", "compliance"))
            note = f"base {base:.1f} · compliance {compliance:.0%} · {rate:,.0f} steps/s"
            progress.update(bar, completed=len(curve), note=note)
            if not console.is_terminal:  # a log has a line for each point and no moving bar
                console.print(f"{label}: {len(curve)}/{points} · {note}", highlight=False)
            told = Point(
                configs=configs,
                seeds=group.seeds,
                number=len(curve),
                total=points,
                values=curve[-1],
            )
            for call in on_point:
                call(told)
            if stop_after is not None and len(curve) >= stop_after:
                raise KeyboardInterrupt
    rates = [point["steps_per_second"] for point in curve[-max(1, points - 1) :]]
    return Trained(
        group=group,
        task=task,
        static=static,
        # Moved off the devices of training: evaluation has another number of runs.
        state=jax.tree.map(jnp.asarray, jax.device_get(state)),
        curve=curve,
        steps_per_second=float(np.median(rates)),  # without the first point, which compiles
    )


def _memory_line(program: tuple[Any, ...], state: TrainState) -> str:
    """Return a line that says how much memory a training needs. One that does not fit is refused.

    The traced program is kept by JAX, so the first call does not trace it again.
    """
    traced = train.train_updates.trace(*program, state)
    needed = memory.peak_bytes(traced.jaxpr.jaxpr)
    return memory.check(needed, memory.free_bytes(), len(state.episodes))


def _alive(
    group: Group,
    curve: list[dict[str, Any]],
    state: TrainState,
    metrics: TrainMetrics,
    points: int,
    console: Console,
) -> np.ndarray:
    """Return bool [runs], which runs have had finite numbers so far. Name those that lost them at this point."""
    names = [f"seed {seed} of {c.method}" for c in group.trained() for seed in group.seeds]
    before = divergence.first_points(curve, len(names))
    finite = divergence.finite_runs(state, metrics)
    for name, at, good in zip(names, before, finite, strict=True):
        if at is None and not good:
            console.print(
                f"{name} diverged at point {len(curve) + 1} of {points}: its numbers are not finite. It gets no "
                "score; the others go on.",
                style="yellow",
                highlight=False,
                soft_wrap=True,
            )
    alive = finite & np.array([at is None for at in before])
    if not alive.any():
        raise divergence.DivergenceError(
            f"every run has diverged ({', '.join(names)}), the last at point {len(curve) + 1} of {points}; "
            "nothing is left to train. Smaller steps (--actor-lr, --critic-lr) may help"
        )
    return alive


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=False,
        disable=not console.is_terminal,
    )


def start_from(state: TrainState, team: TeamPolicy) -> TrainState:
    """Return untrained states [runs, ...] with the team's weights in every run. Optimizers begin anew."""

    def spread(like: Any, own: Any) -> Any:
        try:
            return jax.tree.map(lambda new, old: jnp.broadcast_to(old[None], new.shape), like, own)
        except ValueError:  # other shapes, or another structure
            raise ValueError(
                f"the team to start from has another network: its shape {team.facts['shape']} and "
                f"what it hears ({team.hear}) must be those of the training"
            ) from None

    own = team.weights
    parts = {
        name: spread(getattr(state, name), getattr(own, name))
        for name in ("actor", "critic", "scale")
    }
    if state.target is not None:
        parts["target"] = parts["critic"]
    placed = jax.tree.map(
        lambda new, old: jax.device_put(new, old.sharding if old.committed else None),
        parts,
        {name: getattr(state, name) for name in parts},
    )
    return dataclasses.replace(state, **placed)


def _point(
    static: StaticConfig,
    num_envs: int,
    task: Task,
    runs: Run,
    state: TrainState,
    metrics: TrainMetrics,
    seconds: float,
) -> dict[str, Any]:
    """Return one point of the curve: base return and compliance of every run, and metrics of the last updates.

    `seconds` is how long the updates since the last point took. The first point's include compilation.
    """
    return {
        "episodes": int(state.episodes[0]),
        **evaluate.progress(static, num_envs, task.vectors, runs, state),
        "value": np.asarray(metrics.update.value),
        "entropy": np.asarray(metrics.update.entropy),
        "seconds": seconds,
        "steps_per_second": float(metrics.ticks.sum()) / seconds,
    }


def trained_of(path: str | Path, condition: str | None = None) -> Trained:
    """Return the team of a policy file as a group of one configuration and one seed, for evaluation only."""
    team = policy_file.load(path)
    config, task, preset = policy_file.origin(team)
    if condition is not None:
        config = config.with_condition(condition)
    group = Group(configs=(config,), seeds=(team.facts["seed"],), preset=preset)
    one = jax.tree.map(lambda x: x[None], team.weights)
    return Trained(
        group=group,
        task=task,
        static=task.static_config(preset, config.network, config.backbone),
        state=TrainState(
            actor=one.actor,
            critic=one.critic,
            scale=one.scale,
            target=None,
            actor_optimizer=None,
            critic_optimizer=None,
            episodes=jnp.array([preset.episodes]),
        ),
        curve=[],
        steps_per_second=0.0,
    )


def facts_of(trained: Trained, config: ExperimentConfig, seed: int) -> dict[str, Any]:
    """Return the description of a team that is stored in its policy file."""
    task, static = trained.task, trained.static
    critic = {}
    if static.critic_network is not None:
        critic = {"critic_shape": team_networks.shape_fact(static.critic.shape)}
    return {
        "world": config.world,
        "agents": list(task.env.agents),
        "macros": [[m.name for m in enum] for enum in task.env.macros],
        "macro_counts": [len(enum) for enum in task.env.macros],
        "kinds": list(task.file.names()),
        "examples": [kind.train[0] for kind in task.file.kinds],
        "addressed": addressed_of(task),
        "encoder": task.lexicon.encoder,
        "encoder_hash": task.lexicon.encoder_hash,
        "shape": team_networks.shape_fact(static.network.shape),
        **critic,
        "observation": task.observation_size,
        "needs": view_of(static.network.shape).needs,
        "config": dataclasses.asdict(config),
        "preset": dataclasses.asdict(trained.group.preset),
        "seed": seed,
        "module": api.module_of(config.world),
        "versions": records.versions(),
    }


def addressed_of(task: Task) -> list[list[str]]:
    """Return the names of the agents that each kind addresses."""
    rows = np.asarray(reward.rules_of(task.env, task.file).addressed)[1:]
    return [[name for name, to in zip(task.env.agents, row, strict=True) if to] for row in rows]


def team_of(trained: Trained, config: ExperimentConfig, seed: int) -> TeamPolicy:
    """Return the team of one seed."""
    place = trained.places(config)[trained.group.seeds.index(seed)]
    one = jax.tree.map(lambda x: x[place], trained.state)
    weights = policy_file.Weights(actor=one.actor, critic=one.critic, scale=one.scale)
    return TeamPolicy(weights, records.plain(facts_of(trained, config, seed)))


def save_policy(path: Path, trained: Trained, config: ExperimentConfig, seed: int) -> Path:
    """Write the team of one seed to a policy file."""
    place = trained.places(config)[trained.group.seeds.index(seed)]
    one = jax.tree.map(lambda x: x[place], trained.state)
    return policy_file.save(path, one, facts_of(trained, config, seed))


def median_seed(seeds: Sequence[int], score: dict[str, Any]) -> int:
    """Return the seed with the median base return: the lower one of the middle two, the first of equals.

    Seeds that diverged have none and do not count.
    """
    returns = np.asarray(score["base"]["discounted"], float)
    order = np.argsort(returns, kind="stable")  # nan comes last
    return seeds[order[(np.isfinite(returns).sum() - 1) // 2]]


def record_lines(
    trained: Trained, config: ExperimentConfig, score: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the lines of a configuration's record: run, curve, score."""
    part = trained.places(config)
    shared = divergence.SHARED
    curve = [
        {"type": "curve", **{k: v if k in shared else np.asarray(v)[part] for k, v in p.items()}}
        for p in trained.curve
    ]
    if METHODS[config.method].random:  # it learns nothing: this is vanilla's curve
        curve = []
    run = records.run_line(
        config, trained.group.preset, trained.group.seeds, steps_per_second=trained.steps_per_second
    )
    if trained.group.initial:
        run |= {
            "initial": trained.group.initial,
            "initial_sha256": trained.group.initial_sha256,
        }
    return [run, *curve, *([score] if score else [])]

"""Training on the host: a group of configurations in one program, with progress and checkpoints.

After Ctrl-C or a kill a group resumes from its last checkpoint and ends with the same numbers.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mavic.envs import api
from mavic.evaluation import evaluate, merit
from mavic.experiment.methods import METHODS
from mavic.experiment.task import task_of
from mavic.learn.update import TrainState
from mavic.rollout import trial
from mavic.session import stopping
from mavic.session.loggers import OnPoint, Point
from mavic.teams import file as policy_files
from mavic.teams.team import TeamPolicy
from mavic.training import checkpoint, devices, divergence, memory, population, train
from mavic.training.groups import Group
from mavic.training.population import Choice
from mavic.training.runs import Run, make_run
from mavic.training.train import TrainMetrics
from mavic.training.trained import Trained

OWN_NUMBERS = "the world itself gives numbers that are not finite"
SMALLER_STEPS = "Smaller steps (--actor-lr, --critic-lr) may help"


def default_num_envs(batch: int, horizon: int) -> int:
    """Return how many environments play a batch side by side.

    There are fewer environments than episodes, so that one which finishes early takes the next episode. On a GPU
    consecutive ticks cost more than idle environments, so each long episode gets its own environment.

    Args:
        batch: episodes per update.
        horizon: the most ticks of an episode.
    """
    if jax.default_backend() == "cpu":
        return min(batch, max(8, batch // (8 if horizon > train.SHORT_HORIZON else 16)))
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
    """Train all configurations and seeds of a group.

    Args:
        group: what is trained.
        folder: the folder of its checkpoints. Training resumes if it holds one of the same group. None: save none.
        points: how often training is evaluated and saved.
        num_envs: environments side by side. None: by the device.
        on_point: called with every new point.
        console: where progress is shown.
        stop_after: stop as Ctrl-C does, after so many points.

    Returns:
        The group after training.
    """
    console = console or Console()
    preset, config = group.preset, group.configs[0]
    task = task_of(config)
    static = task.static_config(preset, config.network, config.backbone)
    num_envs = num_envs or default_num_envs(preset.batch, task.env.horizon)
    configs = group.trained()
    members, cells = group.population, group.cells
    everyone = Run.stack(
        [
            make_run(c, preset, task, seed, member)
            for c in configs
            for seed in group.seeds
            for member in range(members)
        ]
    )
    updates = max(1, math.ceil(preset.episodes / preset.batch / points))
    points = math.ceil(preset.episodes / preset.batch / updates)
    planned, choices = population.cuts(members, points), list[Choice]()
    state = train.init_states(static, everyone)
    if group.initial:
        state = _start_from(state, policy_files.load(group.initial))
    curve: list[dict[str, Any]] = []
    if folder is not None and checkpoint.exists(folder):
        say = partial(console.print, style="yellow", highlight=False, soft_wrap=True)
        state, curve, choices = checkpoint.load(folder, group, state, updates * preset.batch, say)
        console.print(f"resuming {folder} after {len(curve)} of {points} points")
    runs = _taken(everyone, population.places(members, population.present(cells, members, choices)))
    side_by_side = devices.runs_at_once(cells)
    at_once = partial(devices.in_parts, side_by_side)
    program = partial(train.train_updates, static, num_envs, updates, task.vectors)
    label = _label(group)
    methods = [c.method for c in configs for _ in group.seeds]
    if not console.is_terminal:
        console.print(f"{label}: compiling…", highlight=False)
    with _progress(console) as progress:
        bar = progress.add_task(label, total=points, completed=len(curve), note="compiling…")
        compiled = False  # a signal waits for the end of a point, but not for a compilation
        began = time.perf_counter()
        if len(curve) < points:
            first = jax.tree.map(lambda leaf: leaf[:side_by_side], (runs, state))
            if line := _memory_line(program, *first):
                console.print(line, highlight=False, soft_wrap=True)
        while len(curve) < points:
            with stopping.after_this(waits=compiled), memory.explained(len(runs.key)):
                state, metrics = at_once(program, runs, state)
                jax.block_until_ready(state)
                api.raise_failure(task.env)  # before anything is saved
                seconds = time.perf_counter() - began
                names = _names(group, choices)
                alive = _alive(names, curve, state, metrics, points, console, task.env)
                state = divergence.cleared(state, alive)
                progress_of = partial(evaluate.progress, static, num_envs, task.vectors)
                shown = at_once(progress_of, runs, state)
                api.raise_failure(task.env)
                point = _point(shown, state, metrics, seconds) | _told(task.env, console)
                curve.append(divergence.blank_point(point, alive))
                left = planned.get(len(curve))
                if left is not None:
                    found = at_once(partial(merit.parts, static, num_envs, task), runs, state)
                    choices.append(_choice(group, choices, found, alive, left, len(curve)))
                    runs, state, curve = _chosen(group, choices, runs, state, curve)
                    curve[-1]["seconds"] = time.perf_counter() - began
                if folder is not None:
                    checkpoint.save(folder, group, state, curve, choices)
                compiled = True
            if left is not None:
                line = f"{label}: {left} of {members} stay"
                console.print(line, highlight=False, soft_wrap=True)
            leaders = _leaders(curve[-1], cells)
            note = _note(leaders, methods)
            progress.update(bar, completed=len(curve), note=note)
            if not console.is_terminal:  # a log has a line for each point and no moving bar
                console.print(f"{label}: {len(curve)}/{points} · {note}", highlight=False)
            told = Point(
                configs=configs,
                seeds=group.seeds,
                number=len(curve),
                total=points,
                values=leaders,
            )
            for call in on_point:
                call(told)
            if stop_after is not None and len(curve) >= stop_after:
                raise KeyboardInterrupt
            began = time.perf_counter()
    rates = [point["steps_per_second"] for point in curve[-max(1, points - 1) :]]
    return Trained(
        group=group,
        task=task,
        static=static,
        # Moved off the devices of training: evaluation has another number of runs.
        state=jax.tree.map(jnp.asarray, jax.device_get(state)),
        curve=curve,
        steps_per_second=float(np.median(rates)),  # without the first point, which compiles
        choices=tuple(choices),
    )


def _taken(tree: Any, places: np.ndarray) -> Any:
    """Return the runs at these places of a tree with a first axis of runs."""
    return jax.tree.map(lambda leaf: leaf[places], tree)


def _choice(
    group: Group,
    choices: Sequence[Choice],
    found: dict[str, np.ndarray],
    alive: np.ndarray,
    left: int,
    point: int,
) -> Choice:
    """Return which members stay, from the parts of their merit. Runs that diverged go first."""
    before = population.present(group.cells, group.population, choices)
    hears = [METHODS[c.method].hears for c in group.trained() for _ in group.seeds]
    each = np.repeat(hears, before.shape[1])
    merits = np.where(alive, merit.merit(found, each, group.cells), np.nan)
    return population.choose(point, before, {"merit": merits, **found}, left)


def _chosen(
    group: Group,
    choices: Sequence[Choice],
    runs: Run,
    state: TrainState,
    curve: list[dict[str, Any]],
) -> tuple[Run, TrainState, list[dict[str, Any]]]:
    """Return the runs, states and curves of the members that the last choice kept."""
    before, after = (
        population.present(group.cells, group.population, made) for made in (choices[:-1], choices)
    )
    stays = [np.flatnonzero(np.isin(old, new)) for old, new in zip(before, after, strict=True)]
    places = np.concatenate([row * before.shape[1] + stay for row, stay in enumerate(stays)])
    curve = [
        {k: v if k in divergence.SHARED else np.asarray(v)[places] for k, v in point.items()}
        for point in curve
    ]
    return _taken(runs, places), _taken(state, places), curve


def _leaders(point: dict[str, Any], cells: int) -> dict[str, Any]:
    """Return a point of the curve with one run of each cell: the member with the highest base return."""
    base = np.nan_to_num(np.asarray(point["base"], float), nan=-np.inf).reshape(cells, -1)
    places = np.arange(cells) * base.shape[1] + base.argmax(1)
    return {k: v if k in divergence.SHARED else np.asarray(v)[places] for k, v in point.items()}


def _told(env: api.Env, console: Console) -> dict[str, int]:
    """Say what happened in a world's simulators since the last point. Return how many episodes were dropped, if any."""
    lines, dropped = api.simulator_reports(env)
    for line in lines:
        console.print(line, style="yellow", highlight=False, soft_wrap=True)
    return {"dropped_episodes": dropped} if dropped else {}


def _label(group: Group) -> str:
    """Return what is trained, as the label of the bar and of the lines of a log."""
    config = group.configs[0]
    what = " ".join([config.world, config.backbone, config.network, config.preset])
    begin = f" × {group.population} members" if group.population > 1 else ""
    return f"{what} · {len(group.trained())} × {len(group.seeds)} runs{begin}"


def _note(point: dict[str, Any], methods: Sequence[str]) -> str:
    """Return the last point of the curve in words: a mean over the seeds of each method that did not diverge.

    Args:
        point: the point.
        methods: the method of each run.
    """
    rate = f"{point['steps_per_second']:,.0f} steps/s"
    told = []
    for method in dict.fromkeys(methods):
        own = np.array([one == method for one in methods])
        base, followed = (np.asarray(point[name], float)[own] for name in ("base", "compliance"))
        label = "" if len(set(methods)) == 1 else f"{method} "
        if np.isnan(base).all():
            told.append(f"{label}diverged")
        else:
            asked = not np.isnan(followed).all()
            obeyed = f"compliance {np.nanmean(followed):.0%}" if asked else "nothing was asked"
            told.append(f"{label}base {np.nanmean(base):.1f}, {obeyed}")
    return " · ".join([*told, rate])


def _memory_line(program: partial, runs: Any, state: Any) -> str:
    """Compile a training and return a line that says how much memory it needs. Refuse one that does not fit.

    JAX keeps the compiled program, so the first call of `train_updates` does not compile it again. The line is empty
    if the compiler does not say what the program needs.
    """
    count = len(state.episodes)
    with memory.explained(count):
        compiled = program.func.lower(*program.args, runs, state).compile()  # type: ignore[attr-defined]
    return memory.check(compiled, count)


def _names(group: Group, choices: Sequence[Choice]) -> list[str]:
    """Return what the present runs are called in messages."""
    left = population.present(group.cells, group.population, choices)
    cells = [f"seed {seed} of {c.method}" for c in group.trained() for seed in group.seeds]
    if left.shape[1] == 1:
        return cells
    return [
        f"member {number} of {cell}"
        for cell, row in zip(cells, left, strict=True)
        for number in row
    ]


def _alive(
    names: Sequence[str],
    curve: list[dict[str, Any]],
    state: TrainState,
    metrics: TrainMetrics,
    points: int,
    console: Console,
    env: api.Env,
) -> np.ndarray:
    """Return bool [runs], which runs have had finite numbers so far. Name those that lost them at this point."""
    before = divergence.first_points(curve, len(names))
    finite = divergence.finite_runs(state, metrics)
    if not any(at is None and not good for at, good in zip(before, finite, strict=True)):
        return finite & np.array([at is None for at in before])
    own = env.name in api.REGISTERED and not api.runs_on_host(env)
    why = trial.first_not_finite(env, jax.random.key(0)) if own else ""
    if why:
        console.print(f"{why}: {OWN_NUMBERS}", style="yellow", highlight=False, soft_wrap=True)
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
            f"training ends. {f'{why}: {OWN_NUMBERS}' if why else SMALLER_STEPS}"
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


def _start_from(state: TrainState, team: TeamPolicy) -> TrainState:
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
    shown: dict[str, np.ndarray], state: TrainState, metrics: TrainMetrics, seconds: float
) -> dict[str, Any]:
    """Return one point of the curve: base return and compliance of every run, and metrics of the last updates.

    Args:
        shown: from `evaluate.progress`.
        state: the states of all runs.
        metrics: of the last updates.
        seconds: how long the updates since the last point took. The first point's include compilation.
    """
    return {
        "episodes": int(state.episodes[0]),
        **shown,
        "value": np.asarray(metrics.update.value),
        "entropy": np.asarray(metrics.update.entropy),
        "seconds": seconds,
        "steps_per_second": float(metrics.ticks.sum()) / seconds,
    }

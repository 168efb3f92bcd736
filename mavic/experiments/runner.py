"""Training and judging on the host: groups of cells in one program, progress, checkpoints, records.

A group's cells differ only in numbers (method, schedule, rule), so all of them and all seeds train at once. Stopping
with Ctrl-C loses nothing: the group resumes from its last checkpoint and ends in the same numbers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mavic.experiments import evaluate, records, train
from mavic.experiments import policy_file as policy
from mavic.experiments.config import (
    ExperimentConfig,
    Run,
    Task,
    as_trained,
    instructions_of,
    make_task,
    run_of,
    stack,
)
from mavic.experiments.methods import METHODS, preset_of
from mavic.instruct import reward
from mavic.instruct import spec as instructions
from mavic.learn.update import StaticConfig, TrainState
from mavic.preset import Preset


class SessionError(ValueError):
    """What was asked for cannot be done; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells of one world, network and preset, with their seeds."""

    cells: tuple[ExperimentConfig, ...]
    seeds: tuple[int, ...]
    preset: Preset

    def __post_init__(self) -> None:
        shapes = {(c.world, c.network, c.preset, json.dumps(c.options)) for c in self.cells}
        if len(shapes) != 1:
            raise SessionError("cells of one group must share world, network, preset and options")

    def trained(self) -> tuple[ExperimentConfig, ...]:
        """What is really trained: cells that differ only in how they are tested share a training."""
        return tuple(dict.fromkeys(as_trained(cell) for cell in self.cells))


def name_of(group: Group) -> str:
    """A short name that two different groups do not share."""
    text = json.dumps(_identity(group), sort_keys=True)
    return f"{group.cells[0].preset}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def groups_of(
    cells: Iterable[ExperimentConfig], seeds: Sequence[int], **changes: Any
) -> list[Group]:
    """Sort cells into groups; `changes` are preset numbers to override."""
    found: dict[tuple, list[ExperimentConfig]] = {}
    for cell in cells:
        found.setdefault((cell.world, cell.network, cell.preset), []).append(cell)
    return [
        Group(
            cells=tuple(g), seeds=tuple(seeds), preset=preset_of(g[0].preset, g[0].world, **changes)
        )
        for g in found.values()
    ]


def in_the_way(groups: Iterable[Group], folder: Path) -> Iterator[tuple[Path, str]]:
    """Records in `folder` whose names these groups' will have though they are of others: the file, and whether options,
    seeds or numbers differ. Names tell method, preset, network and setting alone."""
    for group in groups:
        for cell in group.cells:
            path = folder / f"{cell.name()}.jsonl"
            if not path.is_file():
                continue
            run = records.read(path).run
            before = run["cell"]["options"], run["seeds"], Preset.of(run["preset"])
            now = cell.options, group.seeds, group.preset
            for what, one, other in zip(("options", "seeds", "numbers"), before, now, strict=True):
                if _written(one) != _written(other):
                    yield path, what


def _written(value: Any) -> Any:
    return records.plain(dataclasses.asdict(value) if isinstance(value, Preset) else value)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A group after training: runs are ordered trained cell by trained cell, seed by seed."""

    group: Group
    bench: Task
    fixed: StaticConfig
    learner: TrainState
    curve: list[dict[str, Any]]
    steps_per_second: float

    def places(self, cell: ExperimentConfig) -> list[int]:
        """Where a cell's seeds stand among the trained runs."""
        start = self.group.trained().index(as_trained(cell)) * len(self.group.seeds)
        return list(range(start, start + len(self.group.seeds)))


def default_lanes(batch: int, horizon: int) -> int:
    """Fewer lanes than episodes: a lane that finishes early takes the next one, so none idles for long. On a GPU ticks
    in a row cost more than idle lanes, so long episodes get a lane each."""
    if jax.default_backend() == "cpu":
        return min(batch, max(16, batch // 8))
    return batch if horizon > 100 else max(1, batch // 4)


def train_group(
    group: Group,
    folder: Path | None = None,
    *,
    points: int = 20,
    lanes: int | None = None,
    console: Console | None = None,
    stop_after: int | None = None,
) -> Trained:
    """Train all cells and seeds of a group; resumes from `folder` if it holds a checkpoint of the same group.

    `points`: how often progress is judged and saved. `stop_after`: stop as by Ctrl-C after so many points."""
    console = console or Console()
    preset = group.preset
    cell = group.cells[0]
    bench = make_task(cell.world, **cell.options)
    fixed = bench.fixed(preset, cell.network)
    lanes = lanes or default_lanes(preset.batch, bench.env.horizon)
    cells = group.trained()
    runs = stack([run_of(c, preset, bench, s) for c in cells for s in group.seeds])
    vectors = bench.lexicon.vectors
    updates = max(1, math.ceil(preset.episodes / preset.batch / points))
    points = math.ceil(preset.episodes / preset.batch / updates)
    learner = train.start(fixed, runs)
    curve: list[dict[str, Any]] = []
    if folder is not None and (folder / "state.json").is_file():
        learner, curve = _resume(folder, group, learner, updates * preset.batch)
        console.print(f"resuming {folder} after {len(curve)} of {points} points")
    label = f"{cell.world} {cell.network} {cell.preset} · {len(cells)} × {len(group.seeds)} runs"
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        bar = progress.add_task(label, total=points, completed=len(curve), note="compiling…")
        while len(curve) < points:
            began = time.perf_counter()
            learner, metrics = train.chunk(fixed, lanes, updates, vectors, runs, learner)
            jax.block_until_ready(learner)
            spent = time.perf_counter() - began
            rate = float(metrics["ticks"].sum()) / spent
            curve.append(_point(fixed, lanes, bench, runs, learner, metrics, rate))
            if folder is not None:
                _save(folder, group, learner, curve)
            mean = np.mean(curve[-1]["base"])
            note = f"base {mean:.1f} · compliance {np.nanmean(curve[-1]['compliance']):.0%} · {rate:,.0f} steps/s"
            progress.update(bar, completed=len(curve), note=note)
            if stop_after is not None and len(curve) >= stop_after:
                raise KeyboardInterrupt
    return Trained(
        group=group,
        bench=bench,
        fixed=fixed,
        # tied to no devices any more: other numbers of runs use others
        learner=jax.tree.map(jnp.asarray, jax.device_get(learner)),
        curve=curve,
        # of the whole training, resumed or not; the first point compiles
        steps_per_second=float(
            np.median([p["steps_per_second"] for p in curve[-max(1, points - 1) :]])
        ),
    )


def _point(
    fixed: StaticConfig,
    lanes: int,
    bench: Task,
    runs: Run,
    learner: TrainState,
    metrics: dict,
    rate: float,
) -> dict[str, Any]:
    key = jax.random.key(evaluate.EVALUATION_KEY + 1)
    show = [
        evaluate.play(
            fixed, lanes, 128, bench.lexicon.vectors, runs, learner, key, jnp.int32(0),
            jnp.asarray(told), jnp.asarray(False),
        )
        for told in (False, True)
    ]  # fmt: skip
    base, live = show[0]["base"], show[1]["live"]
    given = np.asarray(live["given"].sum(-1))
    followed = np.asarray(live["followed"].sum(-1))
    return {
        "episodes": int(learner.episodes[0]),
        "base": np.asarray(base["discounted"] / base["episodes"]),
        "compliance": followed / np.maximum(given, 1),
        "value": np.asarray(metrics["value"]),
        "entropy": np.asarray(metrics["entropy"]),
        "steps_per_second": rate,
    }


def _save(folder: Path, group: Group, learner: TrainState, curve: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(policy.flatten(learner), folder / "state.part")
    (folder / "state.part").replace(folder / f"state-{len(curve)}.safetensors")
    draft = folder / "state.json.part"
    draft.write_text(json.dumps({"group": _identity(group), "curve": records.plain(curve)}))
    draft.replace(folder / "state.json")
    for old in folder.glob("state-*.safetensors"):
        if old.name != f"state-{len(curve)}.safetensors":
            old.unlink()


def _identity(group: Group) -> dict[str, Any]:
    """What a checkpoint must be of. A number that stays as it is when nobody names it is left out, so that a new one
    does not part a training from its checkpoint."""
    plain, own = dataclasses.asdict(Preset()), dataclasses.asdict(group.preset)
    file = instructions.read(instructions_of(group.cells[0].world))
    asked = json.dumps(dataclasses.asdict(dataclasses.replace(file, source="")), default=str)
    return json.loads(
        json.dumps(
            {
                "cells": [dataclasses.asdict(c) for c in group.trained()],
                "seeds": group.seeds,
                "preset": {name: value for name, value in own.items() if value != plain[name]},
                "instructions": hashlib.sha256(asked.encode()).hexdigest(),
            }
        )
    )


def _resume(folder: Path, group: Group, like: TrainState, episodes: int) -> tuple[TrainState, list]:
    """The learners and curve of a checkpoint; `episodes`: how many lie between two points of the curve."""
    try:
        state = json.loads((folder / "state.json").read_text())
        if state["group"] != _identity(group):
            raise SessionError(
                f"{folder} holds a checkpoint of other cells, seeds, numbers or instructions; "
                "choose another folder or remove it"
            )
        curve = state["curve"]
        learner = policy.unflatten(load_file(folder / f"state-{len(curve)}.safetensors"), like)
    except (json.JSONDecodeError, KeyError, OSError, SafetensorError) as error:
        raise SessionError(
            f"{folder} holds a broken checkpoint ({error}); remove it to begin anew"
        ) from None
    if int(learner.episodes[0]) != len(curve) * episodes:
        raise SessionError(
            f"{folder} holds a checkpoint with another number of points; choose another folder or remove it"
        )
    # placed as fresh learners are, so that the program that is compiled fits both
    return jax.tree.map(
        lambda new, old: jax.device_put(new, old.sharding if old.committed else None), learner, like
    ), curve


def trained_of(path: str | Path, setting: str | None = None) -> Trained:
    """A policy file as a group of one cell and one seed, to be judged; there is nothing to train on with."""
    team = policy.load(path)
    cell, bench, preset = policy.origin(team)
    if setting is not None:
        cell = cell.under(setting)
    group = Group(cells=(cell,), seeds=(team.facts["seed"],), preset=preset)
    one = jax.tree.map(lambda x: x[None], team.weights)
    learner = TrainState(
        actor=one.actor,
        critic=one.critic,
        scale=one.scale,
        target=None,
        actor_optimiser=None,
        critic_optimiser=None,
        episodes=jnp.array([preset.episodes]),
    )
    return Trained(
        group=group,
        bench=bench,
        fixed=bench.fixed(group.preset, cell.network),
        learner=learner,
        curve=[],
        steps_per_second=0.0,
    )


def facts_of(trained: Trained, cell: ExperimentConfig, seed: int) -> dict[str, Any]:
    """What a policy file says of itself."""
    bench, shape = trained.bench, trained.fixed.shape
    return {
        "world": cell.world,
        "agents": list(bench.env.agents),
        "macros": [[m.name for m in enum] for enum in bench.env.macros],
        "macro_counts": [len(enum) for enum in bench.env.macros],
        "kinds": list(bench.file.names()),
        "examples": [kind.train[0] for kind in bench.file.kinds],
        "addressed": addressed_of(bench),
        "encoder": bench.lexicon.encoder,
        "encoder_hash": bench.lexicon.encoder_hash,
        "shape": dataclasses.asdict(shape),
        "config": dataclasses.asdict(cell),
        "preset": dataclasses.asdict(trained.group.preset),
        "seed": seed,
        "versions": records.versions(),
    }


def addressed_of(bench: Task) -> list[list[str]]:
    """Which agents each kind addresses."""
    rows = np.asarray(reward.rules_of(bench.env, bench.file).addressed)[1:]
    return [[name for name, to in zip(bench.env.agents, row, strict=True) if to] for row in rows]


def save_policy(path: Path, trained: Trained, cell: ExperimentConfig, seed: int) -> Path:
    """Write the team of one seed."""
    place = trained.places(cell)[trained.group.seeds.index(seed)]
    one = jax.tree.map(lambda x: x[place], trained.learner)
    return policy.save(path, one, facts_of(trained, cell, seed))


def record_lines(
    trained: Trained, cell: ExperimentConfig, score: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """A cell's record: run, curve, score."""
    part = trained.places(cell)
    shared = ("episodes", "steps_per_second")
    curve = [
        {"type": "curve", **{k: v if k in shared else np.asarray(v)[part] for k, v in p.items()}}
        for p in trained.curve
    ]
    if METHODS[cell.method].random:  # it learns nothing: the curve is of what it was trained as
        curve = []
    run = records.run_line(
        cell, trained.group.preset, trained.group.seeds, steps_per_second=trained.steps_per_second
    )
    return [run, *curve, *([score] if score else [])]

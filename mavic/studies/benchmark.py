"""Speed: the environment alone, training with learning, compile time, peak memory.

Repeats are interleaved and medians are given, so that a busy moment does not favour one figure. Steps are primitive
ticks of episodes; ticks of idle environments do not count.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from mavic.envs import api
from mavic.experiment import records
from mavic.experiment.axes import DEFAULT_BACKBONE
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.learn.backbones import BACKBONES
from mavic.session import runner
from mavic.simulators.env import PythonEnv
from mavic.training import train
from mavic.training.devices import over_runs
from mavic.training.runs import Run, make_run
from mavic.types import Array

DEVICE_ENVS, ENV_TICKS = 4096, 100
CORE_ENVS = 1024  # per core; the states of more do not stay in its cache
CHUNK_TICKS = 320_000  # of a run in one timed chunk, if its episodes last to the horizon
UPDATES = 25  # at most, in one timed chunk
WARM_UP = 400  # updates before timing, so that episodes are as short as those of a trained team
SIMULATORS, ALONE_TICKS = 8, 100  # of a Python world, for each worker
PARTS = ("in the simulators", "in macros", "between processes", "deciding, paying and learning")
PATIENCE = 60.0  # seconds after which the warm-up ends in any case


@partial(jax.jit, static_argnames=("num_envs", "ticks"))
def _environment_ticks(env: Any, keys: Array, num_envs: int, ticks: int) -> Array:
    """Run random macros in many environments for each of the keys [devices]. An episode that ends starts again.

    Return the sum of rewards and observations, so that the compiler cannot leave anything out.
    """
    return over_runs(lambda key: _ticks_of_one(env, key, num_envs, ticks))(keys)


def _ticks_of_one(env: Any, key: Array, num_envs: int, ticks: int) -> Array:
    counts = jnp.array([len(macros) for macros in env.macros])

    def tick(carry: tuple, key: Array) -> tuple[tuple, Array]:
        state, macro, idle = carry
        draws = jax.random.uniform(key, (num_envs, counts.shape[0]))
        macro = jnp.where(idle, (draws * counts[None]).astype(jnp.int32), macro)
        silence = jnp.zeros_like(macro)
        after = jax.vmap(env.tick, in_axes=(None, 0, 0, 0, 0))(key, state, macro, idle, silence)
        fresh = jax.vmap(env.reset)(jax.random.split(key, num_envs))

        def anew(new: Array, old: Array) -> Array:
            return jnp.where(after.terminal.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)

        state = jax.tree.map(anew, fresh, after.state)
        seen = jax.vmap(env.observe)(state)
        idle = after.ended | after.terminal[:, None]
        return (state, macro, idle), after.reward.sum() + seen.sum()

    first = jax.vmap(env.reset)(jax.random.split(key, num_envs))
    agents = (num_envs, counts.shape[0])
    start = (first, jnp.zeros(agents, jnp.int32), jnp.ones(agents, bool))
    return jax.lax.scan(tick, start, jax.random.split(key, ticks))[1].sum()


def measure(
    world: str,
    *,
    seeds: int = 5,
    repeats: int = 3,
    backbones: Sequence[str] = tuple(BACKBONES),
    patience: float = PATIENCE,
    console: Console | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Measure and print all figures of a world on this machine. Return them.

    Mac-IAC is timed with two networks, every other backbone with one. Each trains for `WARM_UP` updates before it is
    timed, or for `patience` seconds if they take longer. The entry `updates_before` says how many updates it made.
    """
    console = console or Console()
    found: dict[str, Any] = {"world": world, "seeds": seeds, "versions": records.versions()}
    jobs: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {}
    env = api.make(world)
    keys = iter(range(1_000_000))

    devices = jax.local_device_count()
    num_envs = CORE_ENVS if jax.default_backend() == "cpu" else DEVICE_ENVS

    if isinstance(env, PythonEnv):
        return _measure_simulators(env, found, seeds, repeats, changes, console)

    def play() -> Array:
        key = jax.random.split(jax.random.key(next(keys)), devices)
        return _environment_ticks(env, key, num_envs, ENV_TICKS)

    jobs["environment alone"] = (play, lambda _: devices * num_envs * ENV_TICKS)
    updates = _updates(preset_of("default", world, **changes).batch * env.horizon)
    for backbone in backbones:
        for network in ("shared", "protected") if backbone == DEFAULT_BACKBONE else ("protected",):
            jobs[entry_of(network, backbone)] = _training(
                world, backbone, network, seeds, updates, changes
            )
    for name, (job, _) in jobs.items():
        with console.status(f"{name}: compiling…"):
            began = time.perf_counter()
            jax.block_until_ready(job())
            found[name] = {"compile_seconds": round(time.perf_counter() - began, 2), "rates": []}
    for name, (job, _) in jobs.items():
        if name.startswith("training"):
            found[name]["updates_before"] = updates + _warm_up(
                job, updates, patience, f"{name}: training before timing", console
            )
            found[name]["updates_a_repeat"] = updates
    for repeat in range(repeats):
        for name, (job, steps) in jobs.items():
            with console.status(f"{name}: repeat {repeat + 1} of {repeats}"):
                began = time.perf_counter()
                result = jax.block_until_ready(job())
                found[name]["rates"].append(steps(result) / (time.perf_counter() - began))
    alone, learning = api.world(world).reference_speed or (None, None)
    for name, entry in found.items():
        if isinstance(entry, dict) and "rates" in entry:
            entry["steps_per_second"] = round(statistics.median(entry["rates"]))
            against = alone if name == "environment alone" else learning
            times = (
                f" ({entry['steps_per_second'] / against:,.0f} × the reference)" if against else ""
            )
            console.print(
                f"{name}: {entry['steps_per_second']:,} steps/s{times}; "
                f"compile and first call {entry['compile_seconds']} s",
                highlight=False,
            )
    found["peak_memory_mib"] = _peak_memory()
    console.print(f"peak memory {found['peak_memory_mib']:,} MiB", highlight=False)
    return found


def _measure_simulators(
    env: PythonEnv,
    found: dict[str, Any],
    seeds: int,
    repeats: int,
    changes: dict[str, Any],
    console: Console,
) -> dict[str, Any]:
    """Measure a Python world: its simulators with random actions, a training, and what a tick costs in each part.

    Costs are processor time, so they hold on a busy machine too. What a training needs and its parts do not take, it
    waits for.
    """
    updates = 1
    job, steps = _training(env.name, DEFAULT_BACKBONE, "protected", seeds, updates, changes)
    with console.status("training: compiling…"):
        began = time.perf_counter()
        jax.block_until_ready(job())
        found["compile_seconds"] = round(time.perf_counter() - began, 2)
    rates: dict[str, list[float]] = {"random actions": [], "random macros": [], "training": []}
    parts = []
    for repeat in range(repeats):
        with console.status(f"repeat {repeat + 1} of {repeats}"):
            rates["random actions"].append(env.pool.alone(SIMULATORS, ALONE_TICKS, macros=False))
            rates["random macros"].append(env.pool.alone(SIMULATORS, ALONE_TICKS, macros=True))
            before = dict(env.pool.seconds)
            began, busy = time.perf_counter(), time.process_time()
            ticks = steps(jax.block_until_ready(job()))
            rates["training"].append(ticks / (time.perf_counter() - began))
            busy = time.process_time() - busy
        spent = defaultdict(float, env.pool.seconds)
        for name, seconds in before.items():
            spent[name] -= seconds
        here = 0.0 if env.description.workers else spent["simulators"] + spent["macros"]
        shares = (
            spent["simulators"],
            spent["macros"],
            spent["travelling"] + spent["asking"],
            busy - spent["asking"] - here,
        )
        parts.append([1e6 * share / ticks for share in shares])
    env.raise_failure()
    for name, values in rates.items():
        found[name] = {"rates": values, "steps_per_second": round(statistics.median(values))}
    costs = [round(statistics.median(part), 1) for part in zip(*parts, strict=True)]
    found["microseconds_a_tick"] = dict(zip(PARTS, costs, strict=True))
    for name in ("random actions", "random macros"):
        pairs = zip(rates["training"], rates[name], strict=True)
        found[f"share of {name}"] = statistics.median(one / other for one, other in pairs)
    speed = {name: f"{found[name]['steps_per_second']:,} steps/s" for name in rates}
    console.print(
        f"simulators with random actions: {speed['random actions']}, with random macros: {speed['random macros']}\n"
        f"training: {speed['training']}, {found['share of random macros']:.0%} of random macros and "
        f"{found['share of random actions']:.0%} of random actions; "
        f"compile and first call {found['compile_seconds']} s\n"
        "a tick of training takes processor time: "
        + ", ".join(
            f"{cost:,.0f} µs {name}" for name, cost in found["microseconds_a_tick"].items()
        ),
        highlight=False,
        soft_wrap=True,
    )
    found["peak_memory_mib"] = _peak_memory()
    console.print(f"peak memory {found['peak_memory_mib']:,} MiB", highlight=False)
    return found


def entry_of(network: str, backbone: str) -> str:
    """Return the name under which the speed of a training is recorded."""
    return f"training, {network}" + ("" if backbone == DEFAULT_BACKBONE else f", {backbone}")


def _updates(ticks: int) -> int:
    """Return how many updates of so many ticks are timed together."""
    return max(1, min(UPDATES, CHUNK_TICKS // ticks))


def _warm_up(
    job: Callable[[], Any], updates: int, patience: float, label: str, console: Console
) -> int:
    """Call `job`, which makes `updates` updates, until `WARM_UP` are made or `patience` seconds are over.

    Return the number made.
    """
    began, made = time.perf_counter(), 0
    with console.status(f"{label}…") as status:
        while made < WARM_UP and (spent := time.perf_counter() - began) < patience:
            status.update(
                f"{label}: {made} of {WARM_UP} updates, {spent:.0f} of at most {patience:.0f} s"
            )
            jax.block_until_ready(job())
            made += updates
    return made


def _training(
    world: str, backbone: str, network: str, seeds: int, updates: int, changes: dict[str, Any]
) -> tuple[Callable, Callable]:
    """Return a job that makes `updates` more updates per call, and a function from its result to the ticks played."""
    config = ExperimentConfig(world=world, network=network, backbone=backbone)
    preset = preset_of("default", world, backbone, **changes)
    task = task_of(config)
    static = task.static_config(preset, network, backbone)
    runs = Run.stack([make_run(config, preset, task, seed) for seed in range(seeds)])
    num_envs = runner.default_num_envs(preset.batch, task.env.horizon)
    state = train.init_states(static, runs)

    def job() -> Any:
        nonlocal state
        state, metrics = train.train_updates(static, num_envs, updates, task.vectors, runs, state)
        return state, metrics

    return job, lambda result: float(result[1].ticks.sum())


def _peak_memory() -> int:
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return round(stats["peak_bytes_in_use"] / 2**20)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)

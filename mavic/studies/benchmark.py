"""Speed: the environment alone, training with learning, what each part of a training costs, compilation, memory.

Repeats are interleaved and medians are given, so that a busy moment does not favour one figure. Steps are primitive
ticks of episodes; ticks of idle environments do not count. `measure` tells its caller of every figure at once, so
that a stopped measurement loses nothing.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from mavic.envs import api
from mavic.evaluation import evaluate
from mavic.experiment import records
from mavic.experiment.axes import DEFAULT_BACKBONE
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import Task, task_of
from mavic.learn import backbones
from mavic.learn.update import StaticConfig, TrainState
from mavic.preset import Preset
from mavic.rollout.rollout import Policy, rollout
from mavic.session import runner
from mavic.simulators.env import PythonEnv
from mavic.training import train
from mavic.training.devices import in_parts, over_runs, runs_at_once
from mavic.training.runs import Run, make_run
from mavic.types import Array, InstructedState, Timestep

DEVICE_ENVS, ENV_TICKS = 4096, 100
CORE_ENVS = 1024  # per core; the states of more do not stay in its cache
CHUNK_TICKS = 320_000  # of a run in one timed chunk, if its episodes last to the horizon
UPDATES = 25  # at most, in one timed chunk
WARM_UP = 400  # updates before timing, so that episodes are as short as those of a trained team
POINTS = 20  # of a training, each with an evaluation
SIMULATORS, ALONE_TICKS = 8, 100  # of a Python world, for each worker
SIMULATOR_PARTS = (
    *("in the simulators", "in macros", "between processes"),
    "deciding, paying and learning",
)
PATIENCE = 30.0  # seconds after which the warm-up ends in any case
ALONE = "environment alone"

Say = Callable[[str], None]
Keep = Callable[[Mapping[str, Any]], None]


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


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training that is timed: `updates` further updates a call."""

    task: Task
    preset: Preset
    static: StaticConfig
    num_envs: int
    updates: int
    at_once: int | None
    runs: Run
    states: list[TrainState]
    """One entry: the present weights, which every call replaces."""

    def __call__(self) -> Any:
        program = partial(
            train.train_updates, self.static, self.num_envs, self.updates, self.task.vectors
        )
        self.states[0], metrics = in_parts(self.at_once, program, self.runs, self.states[0])
        return metrics.ticks

    @property
    def one_part(self) -> tuple[Run, TrainState]:
        """The runs and weights that one call of a program takes."""
        return jax.tree.map(lambda leaf: leaf[: self.at_once], (self.runs, self.states[0]))


def measure(
    world: str,
    *,
    networks: Sequence[str] = ("residual",),
    backbones: Sequence[str] = (DEFAULT_BACKBONE,),
    seeds: int = 4,
    population: int = 1,
    repeats: int = 3,
    patience: float = PATIENCE,
    say: Say = print,
    keep: Keep = lambda found: None,
    **changes: Any,
) -> dict[str, Any]:
    """Measure a world on this machine.

    Every training makes `WARM_UP` updates before it is timed, or trains for `patience` seconds if they take longer.
    The entry `updates_before` says how many updates it made. Parts are those of the first training.

    Args:
        world: The world.
        networks: Trainings are timed with all combinations of these networks and backbones.
        backbones: Their backbones.
        seeds: How many seeds train at once.
        population: How many members each seed has.
        repeats: How often each figure is measured.
        patience: The most seconds of a warm-up.
        say: Is called with a line of progress or a result.
        keep: Is called with all figures whenever there is a new one.
        changes: Numbers of the preset.

    Returns:
        All figures.
    """
    found: dict[str, Any] = {
        "world": world,
        "seeds": seeds,
        "population": population,
        "versions": records.versions(),
    }
    env = api.make(world)
    if isinstance(env, PythonEnv):
        if len(networks) > 1 or len(backbones) > 1:
            raise ValueError(f"{world} is a Python world: give one network and one backbone")
        config = ExperimentConfig(world=world, network=networks[0], backbone=backbones[0])
        job = job_of(config, seeds, population, changes, updates=1)
        return _measure_simulators(env, job, found, repeats, say, keep)
    with _empty_cache():
        jobs = {
            entry_of(network, backbone): job_of(
                ExperimentConfig(world=world, network=network, backbone=backbone),
                seeds,
                population,
                changes,
            )
            for backbone in backbones
            for network in networks
        }
        alone = _alone(env)
        found[ALONE] = {"compile_seconds": _compiling(alone), "rates": []}
        for name, job in jobs.items():
            say(f"{name}: compiling…")
            found[name] = {
                "compile_seconds": _compiling(job),
                "rates": [],
                "updates_before": 2 * job.updates + _warm_up(job, job.updates, patience, name, say),
                "updates_a_repeat": job.updates,
            }
            say(f"{name}: compilation {found[name]['compile_seconds']} s")
            keep(found)
        everything: list[tuple[str, Callable[[], Any]]] = [(ALONE, alone), *jobs.items()]
        for repeat in range(repeats):
            say(f"repeat {repeat + 1} of {repeats}")
            for name, timed in everything:
                seconds, ticks = seconds_of(timed)
                entry = found[name]
                entry["rates"].append(float(jnp.sum(ticks)) / seconds)
                entry["steps_per_second"] = round(statistics.median(entry["rates"]))
            keep(found)
        rates = api.world(world).reference_speed or (None, None)
        for name in (ALONE, *jobs):
            speed, reference = found[name]["steps_per_second"], rates[name != ALONE]
            times = f" ({speed / reference:,.0f} × the reference)" if reference else ""
            say(f"{name}: {speed:,} steps/s{times}")
        name, job = next(iter(jobs.items()))
        found["microseconds_a_tick"] = costs = {}
        for part, cost in _parts(job, env, repeats, say):
            costs[part] = cost
            say(f"{part}: {cost:.2f} µs a tick")
            keep(found)
        found["peak_memory_mib"] = _peak_memory()
        say(f"peak memory: {found['peak_memory_mib']:,} MiB")
        jax.clear_caches()
        found[name]["cached_compile_seconds"] = _compiling(job)
        say(f"{name}: {found[name]['cached_compile_seconds']} s if compiled before")
        keep(found)
    return found


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Compile into an empty cache, so that programs of earlier commands are compiled anew."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "jax_compilation_cache_dir": folder,
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }
        before = {name: getattr(jax.config, name) for name in settings}
        try:
            for name, value in settings.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def seconds_of(job: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call takes, and its result."""
    began = time.perf_counter()
    result = jax.block_until_ready(job())
    return round(time.perf_counter() - began, 4), result


def _compiling(job: Callable[[], Any]) -> float:
    """Return how much longer the first call takes than the next."""
    first, following = seconds_of(job)[0], seconds_of(job)[0]
    return round(max(first - following, 0.0), 4)


def _alone(env: api.Env) -> Callable[[], Array]:
    """Return a job that plays random macros in many environments, and returns the ticks that it played."""
    devices = jax.local_device_count()
    num_envs = CORE_ENVS if jax.default_backend() == "cpu" else DEVICE_ENVS
    keys = iter(range(1_000_000))

    def job() -> Array:
        key = jax.random.split(jax.random.key(next(keys)), devices)
        jax.block_until_ready(_environment_ticks(env, key, num_envs, ENV_TICKS))
        return jnp.asarray(devices * num_envs * ENV_TICKS)

    return job


def _random_macros(agents: int) -> Policy:
    """Return a team that takes available macros at random and computes no network."""

    def act(memory: Array, state: InstructedState, draws: Array) -> tuple[Array, Array]:
        return _chosen(state.available, draws), memory

    return Policy(start=lambda num_envs: jnp.zeros((num_envs, agents)), act=act)


def _chosen(available: Array, draws: Array) -> Array:
    """Return one available macro for each agent [..., N], from uniform numbers [..., N]."""
    place = jnp.cumsum(available, -1)
    wanted = 1 + (draws * place[..., -1]).astype(jnp.int32)
    return (available & (place == wanted[..., None])).argmax(-1).astype(jnp.int32)


def _parts(job: Job, env: api.Env, repeats: int, say: Say) -> Iterator[tuple[str, float]]:
    """Yield the parts of a training and what each costs, in microseconds a tick.

    Each program contains the one before: a rollout with random macros contains the environment, and so on. A part is
    what its program takes longer. Programs that are compiled apart take more time than one that contains all, so the
    sum may be larger than the whole update, which is given too.
    """
    static, num_envs, vectors = job.static, job.num_envs, job.task.vectors
    runs, state = job.one_part
    gamma = job.preset.gamma
    envs = min(num_envs, job.preset.batch)

    def random(run: Run) -> Array:
        return rollout(
            run.train_env,
            _random_macros(len(env.agents)),
            run.key,
            episodes=static.batch,
            num_envs=num_envs,
        ).rows.alive.sum()

    def seconds(name: str, program: Callable, *given: Any) -> tuple[float, Any]:
        say(f"{name}: compiling…")
        program = jax.jit(over_runs(program))
        jax.block_until_ready(program(*given))
        times = [seconds_of(lambda: program(*given)) for _ in range(repeats)]
        return statistics.median(took for took, _ in times), times[-1][1]

    ticks = float(len(runs.key) * envs * ENV_TICKS)
    alone = partial(_ticks_of_one, env, num_envs=envs, ticks=ENV_TICKS)
    world = 1e6 * seconds("environment", alone, runs.key)[0] / ticks
    yield "environment", world
    took, count = seconds("clock and pay", random, runs)
    clock = 1e6 * took / float(count.sum())
    yield "clock and pay", clock - world
    took, played = seconds("deciding", partial(train.play, static, num_envs, vectors), runs, state)
    ticks = float(played.alive.sum())
    yield "deciding", 1e6 * took / ticks - clock

    size = _rows_in_use(over_runs(partial(_sizes, static))(runs, played))

    def batch(run: Run, played: Any) -> Any:
        return train.arranged(static, run, played).batch(size, gamma)

    took, rows = seconds("transitions", batch, runs, played)
    yield "transitions", 1e6 * took / ticks

    def learn(part: Callable[[Any], Any]) -> Callable:
        def one(run: Run, state: TrainState, rows: Any) -> Any:
            return part(backbones.learn(static, run.hyper, run.correction, vectors, state, rows))

        return one

    values = lambda state, rows: backbones.values(static, vectors, state, rows)[1]  # noqa: E731
    before = 0.0
    for name, program, given in (
        ("values", values, (state, rows)),
        ("critics", learn(lambda found: (found[0].critic, found[1].critic)), (runs, state, rows)),
        ("actors", learn(lambda found: found[0]), (runs, state, rows)),
    ):
        took, _ = seconds(name, program, *given)
        yield name, 1e6 * (took - before) / ticks
        before = took
    say("evaluation: compiling…")
    point = partial(evaluate.progress, static, num_envs, vectors, runs, state)
    point()  # compiles
    took = statistics.median(seconds_of(point)[0] for _ in range(repeats))
    episodes = job.preset.episodes / POINTS / static.batch
    yield "evaluation", 1e6 * took / (ticks * episodes)
    say("whole update: timing…")
    times = [seconds_of(job) for _ in range(repeats)]
    yield "whole update", 1e6 * statistics.median(took / float(n.sum()) for took, n in times)


def _measure_simulators(
    env: PythonEnv,
    job: Job,
    found: dict[str, Any],
    repeats: int,
    say: Say,
    keep: Keep,
) -> dict[str, Any]:
    """Measure a Python world: its simulators with random actions, a training, and what a tick costs in each part.

    Costs are processor time, so they hold on a busy machine too. What a training needs and its parts do not take, it
    waits for.
    """
    say("training: compiling…")
    found["compile_seconds"] = _compiling(job)
    say(f"training: compilation {found['compile_seconds']} s")
    keep(found)
    rates: dict[str, list[float]] = {"random actions": [], "random macros": [], "training": []}
    parts = []
    for repeat in range(repeats):
        say(f"repeat {repeat + 1} of {repeats}")
        rates["random actions"].append(env.pool.alone(SIMULATORS, ALONE_TICKS, macros=False))
        rates["random macros"].append(env.pool.alone(SIMULATORS, ALONE_TICKS, macros=True))
        before, busy = dict(env.pool.seconds), time.process_time()
        took, played = seconds_of(job)
        ticks = float(played.sum())
        rates["training"].append(ticks / took)
        busy = time.process_time() - busy
        spent = defaultdict(float, env.pool.seconds)
        for name, seconds in before.items():
            spent[name] -= seconds
        here = spent["simulators"] + spent["macros"] if env.pool.is_here else 0.0
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
    found["microseconds_a_tick"] = dict(zip(SIMULATOR_PARTS, costs, strict=True))
    for name in ("random actions", "random macros"):
        pairs = zip(rates["training"], rates[name], strict=True)
        found[f"share of {name}"] = statistics.median(one / other for one, other in pairs)
    speed = {name: f"{found[name]['steps_per_second']:,} steps/s" for name in rates}
    say(
        f"simulators with random actions: {speed['random actions']}, with random macros: {speed['random macros']}"
    )
    say(
        f"training: {speed['training']}, {found['share of random macros']:.0%} of random macros and "
        f"{found['share of random actions']:.0%} of random actions"
    )
    for name, cost in found["microseconds_a_tick"].items():
        say(f"{name}: {cost:,.0f} µs of processor time a tick")
    found["peak_memory_mib"] = _peak_memory()
    say(f"peak memory: {found['peak_memory_mib']:,} MiB")
    keep(found)
    return found


def ratios(found: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, float]:
    """Return every figure that two measurements share, as a ratio: this one over the earlier one.

    Args:
        found: From `measure`.
        earlier: An earlier measurement, as `mavic bench --json` wrote it.
    """
    shared: dict[str, float] = {}
    for name, value in found.items():
        other = earlier.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            inner = ratios(value, other)
            shared |= {f"{name}: {key}": ratio for key, ratio in inner.items()}
        elif name not in NOT_COMPARED and _is_number(value) and _is_number(other) and other:
            shared[name] = value / other
    return shared


NOT_COMPARED = ("seeds", "population", "updates_before", "updates_a_repeat")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def entry_of(network: str, backbone: str) -> str:
    """Return the name under which the speed of a training is recorded."""
    return f"training, {network}" + ("" if backbone == DEFAULT_BACKBONE else f", {backbone}")


def _updates(ticks: int) -> int:
    """Return how many updates of so many ticks are timed together."""
    return max(1, min(UPDATES, CHUNK_TICKS // ticks))


def _warm_up(job: Callable[[], Any], updates: int, patience: float, label: str, say: Say) -> int:
    """Call `job`, which makes `updates` updates, until `WARM_UP` are made or `patience` seconds are over.

    Return the number made.
    """
    began, made = time.perf_counter(), 0
    while made < WARM_UP and (spent := time.perf_counter() - began) < patience:
        say(
            f"{label}: training before timing, {made} of {WARM_UP} updates, "
            f"{spent:.0f} of at most {patience:.0f} s"
        )
        jax.block_until_ready(job())
        made += updates
    return made


def job_of(
    config: ExperimentConfig,
    seeds: int,
    population: int,
    changes: Mapping[str, Any],
    updates: int | None = None,
) -> Job:
    """Return a training that can be timed.

    Args:
        config: what is trained, with the preset `default`.
        seeds: how many seeds train at once.
        population: how many members each seed has.
        changes: numbers of the preset.
        updates: how many updates a call makes; None: as many as take about a second.
    """
    preset = preset_of("default", config.world, config.backbone, **changes)
    task = task_of(config)
    static = task.static_config(preset, config.network, config.backbone)
    runs = [
        make_run(config, preset, task, seed, member)
        for seed in range(seeds)
        for member in range(population)
    ]
    stacked = Run.stack(runs)
    horizon = task.env.horizon
    return Job(
        task=task,
        preset=preset,
        static=static,
        num_envs=runner.default_num_envs(preset.batch, horizon),
        updates=updates or _updates(preset.batch * horizon),
        at_once=runs_at_once(seeds) if population > 1 else None,
        runs=stacked,
        states=[train.init_states(static, stacked)],
    )


def _sizes(static: StaticConfig, run: Run, played: Timestep) -> tuple[Array, Array, Array]:
    """Return the rows of a small batch, the rows in use, and those of the largest batch."""
    found = train.arranged(static, run, played)
    return jnp.asarray(found.small), found.fullest, jnp.asarray(len(found.ends[0]))


def _rows_in_use(sizes: tuple[Array, Array, Array]) -> int:
    """Return how many rows an update learns from, given `_sizes` of each run."""
    small, fullest, most = (int(size.max()) for size in sizes)
    return small if most > train.LARGE and fullest <= small else most


def _peak_memory() -> int:
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return round(stats["peak_bytes_in_use"] / 2**20)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)

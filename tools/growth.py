"""What an update costs as a training grows: `results/growth-cpu.json` with its figure, or `growth-gpu`.

    python -m tools.growth results

One number grows at a time: runs, episodes of a batch, ticks of an episode, agents, kinds of instructions, width of the
layers. The world is a field in which every robot works alone, so that nothing else changes. Each point is the median
time of an update with its episodes, after compilation. The exponent is the slope of the last three points.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.reporting.drawing import save, subplots
from mavic.reporting.styles import PALETTE
from mavic.storage import files
from mavic.studies import benchmark
from mavic.training.devices import use_cores
from mavic.types import Array, Tick, record, static

BASE = {"runs": 4, "batch": 64, "horizon": 64, "agents": 2, "kinds": 4, "hidden": 32}
GROWING = {
    "runs": (2, 4, 8, 16),
    "batch": (32, 64, 128, 256),
    "horizon": (32, 64, 128, 256),
    "agents": (2, 4, 8, 16),
    "kinds": (2, 4, 8, 16, 32, 64),
    "hidden": (16, 32, 64, 128),
}
TITLES = {
    "runs": "runs at once",
    "batch": "episodes of a batch",
    "horizon": "ticks of an episode",
    "agents": "agents",
    "kinds": "kinds of instructions",
    "hidden": "width of the layers",
}
LAST = 3  # points that the exponent is taken from
REPEATS = 5


class Macro(IntEnum):
    """The macros of every robot."""

    WAIT = 0
    WORK = 1
    FETCH = 2


TICKS = (1, 2, 4)
PAYS = (0.0, 1.0, 3.0)


@record
class Field:
    """A field of robots. Each works or fetches on its own, and an episode always lasts to the horizon."""

    robots: int = static(default=2)
    ticks: int = static(default=64)
    kinds: int = static(default=4)

    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved",)
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The world of so many kinds of instructions."""
        return f"field_{self.kinds}"

    @property
    def agents(self) -> tuple[str, ...]:
        """The robots."""
        return tuple(f"robot_{i}" for i in range(self.robots))

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """All robots do the same."""
        return (Macro,) * self.robots

    @property
    def horizon(self) -> int:
        """The length of an episode."""
        return self.ticks

    def reset(self, key: Array) -> Array:
        """Return the ticks that each running macro still needs."""
        del key
        return jnp.zeros(self.robots, jnp.int32)

    def tick(self, key: Array, state: Array, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one tick: a macro that ends pays the whole team."""
        del key, effect
        left = jnp.where(fresh, jnp.asarray(TICKS)[macro], state) - 1
        ended = left <= 0
        paid = jnp.where(ended, jnp.asarray(PAYS)[macro], 0.0).mean()
        return Tick(
            state=left,
            reward=jnp.full(self.robots, paid, jnp.float32),
            ended=ended,
            terminal=jnp.asarray(False),
            events=jnp.zeros(1),
            effective_macro=macro,
        )

    def check(self, state: Array) -> Array:
        """Return nothing: there are no preconditions."""
        del state
        return jnp.zeros(0, bool)

    def observe(self, state: Array) -> Array:
        """Return what each robot still has to do."""
        return jnp.eye(max(TICKS))[jnp.clip(state, 0, max(TICKS) - 1)]

    def available(self, state: Array) -> Array:
        """Return all true."""
        del state
        return jnp.ones((self.robots, len(Macro)), bool)


def world_of(kinds: int, folder: Path) -> str:
    """Register the field with so many kinds of instructions. Return its name."""
    make: Any = partial(Field, kinds=kinds)
    name, lines = make().name, [f'world = "{make().name}"']
    for number in range(kinds):
        lines += [
            f"[kinds.rule-{number}]",
            f'meaning = "Rule {number}"',
            'rule = "add"',
            "penalty = -1",
            f'forbid = ["{("WORK", "FETCH")[number % 2]}"]',
            f'train = ["follow rule {number}"]',
        ]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    api.register(name, make, path)
    return name


def milliseconds(numbers: dict[str, int], folder: Path) -> float:
    """Return the median time of an update, with its episodes.

    Args:
        numbers: what BASE names.
        folder: a place for instruction files.
    """
    name = Field(kinds=numbers["kinds"]).name
    world = name if name in api.names() else world_of(numbers["kinds"], folder)
    options = {"robots": numbers["agents"], "ticks": numbers["horizon"]}
    config = ExperimentConfig(world=world, population=1, options=options)
    changes = {"batch": numbers["batch"], "hidden": numbers["hidden"]}
    updates = 2
    job = benchmark.job_of(config, numbers["runs"], 1, changes, updates)
    benchmark.seconds_of(job)  # compiles
    took = [benchmark.seconds_of(job)[0] for _ in range(REPEATS)]
    return 1e3 * statistics.median(took) / updates


def exponent(points: list[tuple[int, float]]) -> float:
    """Return the slope of the last points on logarithmic scales: 1 is linear."""
    sizes, costs = np.log(np.array(points[-LAST:], float)).T
    return float(np.polyfit(sizes, costs, 1)[0])


def draw(found: dict[str, Any]) -> Any:
    """Return the figure: one panel for each number that grows."""
    figure, panels = subplots(5.2, 2, 3, sharey=True)
    for axes, (name, points) in zip(panels.flat, found["milliseconds"].items(), strict=True):
        sizes, costs = zip(*points, strict=True)
        axes.loglog(sizes, costs, "o-", color=PALETTE["blue"])
        linear = [costs[-1] * size / sizes[-1] for size in sizes]
        axes.loglog(sizes, linear, ":", color=PALETTE["grey"])
        axes.set_title(f"{TITLES[name]}: exponent {exponent(points):.2f}", fontsize=10)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    for line in panels:
        line[0].set_ylabel("ms an update")
    return figure


def main() -> None:
    """Measure, print, and write the record with its figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("results", type=Path, help="the folder that gets the record and its figure")
    given = parser.parse_args()
    use_cores()
    stem = given.results / f"growth-{jax.default_backend()}"
    found: dict[str, Any] = {"versions": records.versions(), "base": BASE, "milliseconds": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in GROWING.items():
            points = found["milliseconds"][name] = []
            for size in sizes:
                points.append((size, round(milliseconds({**BASE, name: size}, Path(folder)), 3)))
                print(f"{TITLES[name]} {size}: {points[-1][1]:.1f} ms", flush=True)
            print(f"{TITLES[name]}: exponent {exponent(points):.2f}", flush=True)
            files.write_text(stem.with_suffix(".json"), json.dumps(found, indent=1) + "\n")
    save(stem, lambda: draw(found))


if __name__ == "__main__":
    main()

"""The studies of `mavic reproduce`, as rows of a table: what each shows, and which trainings it needs.

A training is one `mavic train` command with numbers of its own; configurations that fit one compiled program are one
training. Studies share trainings. The profile `full` is meant for a GPU, `quick` for minutes on two cores; quick
trainings are too short for figures to quote. `mavic.reporting.studies` draws each study from the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.preset import Preset
from mavic.session import session
from mavic.studies.jobs import Job

WORLDS = ("box_pushing", "warehouse", "overcooked")
PROFILES = ("full", "quick")
TABLE = ("vanilla", "naive", "switch", "mavic", "mavic-shift", "random")
FIRST_SEED = 200  # seeds from here on were never used to choose numbers
PLAIN = {  # the schedule alone: no uninstructed episodes, no spurious interrupts, no enforced prohibitions
    "uninstructed_episode_prob": 0.0,
    "spurious_interrupt_prob": 0.0,
    "hold_to_end_prob": 0.0,
    "from_start_prob": 0.0,
    "drill_prob": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Training:
    """One `mavic train` command."""

    name: str
    world: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    """Values by the names of `mavic.experiment.axes.AXES`."""
    condition: tuple[str, ...] = ("live/by-kind",)
    seeds: int = 10
    first_seed: int = FIRST_SEED
    numbers: Mapping[str, Any] = field(default_factory=dict)
    words: bool = False
    """Evaluate in unseen phrases too."""
    quick: bool = False
    """Evaluate with a quarter of the episodes, in brief."""

    def arguments(self, out: Path) -> tuple[str, ...]:
        """Return the arguments of the interpreter. Records go to the world's folder in `out`."""
        named: dict[str, Any] = {
            **self.axes,
            "condition": self.condition,
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "out": out,
            **self.numbers,
            "quick": self.quick,
            "brief": self.quick,
            "words": self.words,
            "overwrite": True,  # whatever an earlier command left in the job's folder is its own
        }
        words = ["-m", "mavic", "train", self.world]
        for name, value in named.items():
            if value is not False:
                words.append(f"--{name.replace('_', '-')}")
            if not isinstance(value, bool):
                words += map(str, value if isinstance(value, tuple) else (value,))
        return tuple(words)

    def job(self, folder: Path) -> Job:
        """Return the job of this training; its folder lies in `folder`."""
        own = folder / self.name
        makes = tuple(f"{self.world}/{config.name()}.jsonl" for config in self.configs())
        return Job(name=self.name, folder=own, arguments=self.arguments(own), makes=makes)

    def configs(self) -> list[ExperimentConfig]:
        """Return the configurations that it trains."""
        return list(session.configs_of(self.world, condition=self.condition, **self.axes))

    def runs(self) -> int:
        """Return how many runs it trains."""
        return len({config.as_trained() for config in self.configs()}) * self.seeds

    def episodes(self) -> int:
        """Return the episodes of all its runs together."""
        return self.runs() * self.preset().episodes

    def updates(self) -> float:
        """Return the updates of a run. All runs are updated at once."""
        preset = self.preset()
        return preset.episodes / preset.batch

    def preset(self) -> Preset:
        """Return its numbers."""
        config = self.configs()[0]
        return preset_of(config.preset, self.world, config.backbone, **self.numbers)

    def seconds(self, device: str) -> float:
        """Return about how long it takes on a device, "cpu" (two cores) or "gpu" (one H200)."""
        episodes = self.episodes() + self.runs() * EVALUATED
        ticks = episodes * TICKS[self.world]
        trained = max(ticks / STEPS[device][self.world], self.updates() * UPDATE[device])
        return trained + COMPILING[device][self.world]

    def but(self, **axes: Any) -> Training:
        """Return the same training with some axes changed."""
        return dataclasses.replace(self, axes={**self.axes, **axes})


def _training(name: str, world: str, **given: Any) -> Training:
    """Return a training. Names that are not fields of `Training` are axes."""
    own = {field.name for field in dataclasses.fields(Training)}
    axes = {key: value for key, value in given.items() if key not in own}
    axes.setdefault("preset", "tuned")  # what the published records were trained with
    fields = {key: value for key, value in given.items() if key in own}
    return Training(name=name, world=world, axes=axes, **fields)


@dataclass(frozen=True, kw_only=True)
class Study:
    """One study: its name, what it shows, and its trainings by profile. A study without any is computed exactly."""

    name: str
    shows: str
    trainings: Mapping[str, tuple[Training, ...]]


def _grid(base: str, **axes: tuple[Any, ...]) -> tuple[str, ...]:
    """Return conditions: the base with every combination of the parts' values."""
    parts = ([f"{name}={value}" for value in values] for name, values in axes.items())
    return tuple("/".join([base, *point]) for point in product(*parts))


def _short(trainings: tuple[Training, ...], seeds: int, **numbers: Any) -> tuple[Training, ...]:
    """Return trainings for a quick look."""
    return tuple(
        dataclasses.replace(one, seeds=seeds, numbers={**one.numbers, **numbers}, quick=True)
        for one in trainings
    )


def _paper_rows(world: str) -> Training:
    """Return the paper's own setting: its numbers, network, hearing, schedule and rule."""
    return _training(
        name=f"paper-{world}",
        world=world,
        method=TABLE,
        network="shared",
        preset="paper",
        condition=("paper/add",),
    )


def _tuned_rows(world: str) -> Training:
    return _training(name=f"tuned-{world}", world=world, method=TABLE, network="residual")


TABLE1 = (
    *map(_paper_rows, WORLDS),
    # The paper's table of hyper-parameters names Mac-CAC for this world, its results Mac-IAC.
    dataclasses.replace(_paper_rows("box_pushing"), name="paper-box_pushing-cac").but(
        backbone="mac-cac"
    ),
    *map(_tuned_rows, WORLDS),
)


def _table1_quick() -> Iterator[Training]:
    """Yield short trainings, the longest first, so that two at once end together.

    Only Box Pushing learns something in minutes on two cores.
    """
    short = {  # seeds, episodes and their number in a batch
        "paper-overcooked": (1, 384, 64),
        "tuned-box_pushing": (1, 12_800, None),
        "paper-box_pushing": (2, 12_800, 32),
        "paper-warehouse": (1, 1_024, 64),
    }
    every = {one.name: one for one in TABLE1}
    for name, (seeds, episodes, batch) in short.items():
        fewer = every[name].but(method=("vanilla", "naive", "switch", "mavic"))
        sizes = {} if batch is None else {"batch": batch, "first_to_finish": batch}
        yield from _short((fewer,), seeds=seeds, episodes=episodes, **sizes)


HEATMAP = _training(
    name="heatmap",
    world="box_pushing",
    method=("naive", "mavic"),
    network="shared",
    hear="vectors",
    condition=_grid(
        "paper/add/kinds=dont-push",
        penalty=(20, 60, 150, 300, 600, 1000),
        rate=(0.01, 0.02, 0.05, 0.1, 0.2),
    ),
    seeds=3,
    numbers={**PLAIN, "episodes": 128_000},
)
HEATMAP_QUICK = dataclasses.replace(
    HEATMAP,
    condition=_grid("paper/add/kinds=dont-push", penalty=(20, 150, 600), rate=(0.02, 0.05, 0.2)),
)


def _kitchen(network: str) -> Training:
    """Return the kitchen on one network, hearing vectors as in the paper, for several of its figures."""
    return _training(
        name=f"kitchen-{network}",
        world="overcooked",
        method=("vanilla", "naive", "switch", "mavic", "mavic-shift"),
        network=network,
        hear="vectors",
        seeds=5,
        words=True,
    )


KITCHENS = (_kitchen("shared"), _kitchen("protected"))
WORDS_QUICK = _short(
    (
        dataclasses.replace(KITCHENS[0], name="kitchen-words").but(
            method=("naive", "switch", "mavic")
        ),
    ),
    seeds=1,
    episodes=2_560,
)
BOXES_QUICK = tuple(  # the same comparison where two cores learn something in minutes
    _training(
        name=f"boxes-{network}",
        world="box_pushing",
        method=("vanilla", "naive", "mavic"),
        network=network,
        hear="vectors",
        seeds=2,
        numbers={"episodes": 24_000},
        quick=True,
    )
    for network in ("shared", "protected")
)
SINGLE = _training(
    name="single",
    world="overcooked",
    method=("vanilla", "naive", "mavic"),
    network="shared",
    hear="vectors",
    condition=(
        "live/add/kinds=get-tomato",
        "live/add/kinds=get-tomato/bonus=10",
        "live/add/kinds=avoid-right-board",
    ),
    seeds=5,
    numbers=PLAIN,
)
RARE = _training(
    name="rare",
    world="box_pushing",
    method=("naive", "mavic"),
    network="residual",
    condition=(
        *_grid("live/by-kind", rate=(0.05, 0.01, 0.002)),
        *_grid(
            "live/by-kind",
            weights=tuple(f"push@{w}+avoid-small-box-0@{w}" for w in (0.1, 0.01)),
        ),
    ),
    seeds=5,
)
AGENTS = (
    _training(
        name="agents-box_pushing",
        world="box_pushing",
        method=("vanilla", "naive", "switch", "mavic"),
        network="residual",
        condition=("live/by-kind", "live/by-kind/one-agent"),
        seeds=5,
    ),
    _training(
        name="agents-overcooked",
        world="overcooked",
        method=("vanilla", "naive", "switch", "mavic"),
        network="residual",
        condition=("live/by-kind/one-agent",),
        seeds=5,
    ),
)


def _atlas(network: str) -> Training:
    return _training(
        name=f"atlas-{network}",
        world="box_pushing",
        method=("naive", "mavic"),
        network=network,
        hear="vectors",
        condition=_grid(
            "live/add",
            penalty=(50, 300),
            rate=(0.02, 0.05, 0.1, 0.2),
            hold=("2-5", "5-20", "20-60"),
        ),
        seeds=3,
        numbers={**PLAIN, "episodes": 128_000},
    )


ATLAS = tuple(map(_atlas, ("shared", "protected")))
ATLAS_QUICK = tuple(
    dataclasses.replace(
        one,
        condition=_grid("live/add", penalty=(50, 300), rate=(0.05, 0.2), hold=("2-5", "20-60")),
    )
    for one in ATLAS
)
ABLATIONS: dict[str, dict[str, Any]] = {  # changes to MAVIC as we train it
    "full": {"method": ("mavic", "mavic-shift", "naive", "vanilla"), "seeds": 10},
    "network-shared": {"network": "shared"},
    "network-protected": {"network": "protected"},
    "no-drills": {"numbers": {"drill_prob": 0.0}},
    "hear-vectors": {"hear": "vectors"},
    "encoder-l6": {"hear": "vectors", "encoder": "minilm-l6"},
    "no-hysteresis": {
        "numbers": {
            "actor_hysteresis": (1.0, 1.0),
            "critic_hysteresis": (1.0, 1.0),
            "actor_hysteresis_end": (1.0, 1.0),
            "hysteresis_end": (1.0, 1.0),
        }
    },
}


def _ablation(world: str, changed: str) -> Training:
    own: dict[str, Any] = {"network": "residual", "hear": "kinds", "seeds": 5, **ABLATIONS[changed]}
    return _training(name=f"ablation-{world}-{changed}", world=world, **own)


ABLATION = tuple(_ablation(w, c) for w, c in product(("box_pushing", "overcooked"), ABLATIONS))
ABLATION_QUICK = tuple(
    _ablation("box_pushing", changed)
    for changed in ABLATIONS
    if changed not in ("network-protected", "encoder-l6")  # so that it takes minutes
)


def _study(name: str, shows: str, full: tuple[Training, ...], quick: tuple[Training, ...]) -> Study:
    return Study(name=name, shows=shows, trainings={"full": full, "quick": quick})


_ROWS = (
    _study(
        "table1",
        "the paper's Table 1: three worlds, as the paper sets it and as we do",
        TABLE1,
        tuple(_table1_quick()),
    ),
    _study(
        "heatmap",
        "penalty × rate in Box Pushing under “do not push any boxes”, naive beside MAVIC",
        (HEATMAP,),
        _short((HEATMAP_QUICK,), seeds=1, episodes=16_000),
    ),
    _study(
        "curves",
        "return with instructions, return without, and compliance over training",
        KITCHENS,
        BOXES_QUICK,
    ),
    _study(
        "single",
        "Overcooked with one kind: the tomato, the right board; and the board when nothing is asked",
        (SINGLE,),
        _short((SINGLE,), seeds=1, episodes=2_560),
    ),
    _study(
        "compliance",
        "compliance early, in the middle and late in training",
        KITCHENS,
        BOXES_QUICK,
    ),
    _study(
        "dual",
        "two separate networks without the correction (dual) beside MAVIC, with instructions active",
        KITCHENS,
        BOXES_QUICK,
    ),
    _study(
        "ood",
        "the paper's three unseen phrases, one by one, every method",
        KITCHENS,
        WORDS_QUICK,
    ),
    _study(
        "infeasible",
        "which macros are chosen under infeasible requests",
        KITCHENS,
        WORDS_QUICK,
    ),
    _study(
        "rare",
        "rare and unbalanced instructions, the paper's limitation",
        (RARE,),
        _short((RARE,), seeds=1, episodes=16_000),
    ),
    _study(
        "shaping",
        "the correction is not potential-based shaping: exact, on random semi-MDPs",
        (),
        (),
    ),
    _study(
        "agents",
        "instructions for one agent of several",
        AGENTS,
        _short(AGENTS[:1], seeds=1, episodes=24_000),
    ),
    _study(
        "atlas",
        "where the correction matters: rate × hold × penalty × network",
        ATLAS,
        _short(ATLAS_QUICK, seeds=1, episodes=9_600),
    ),
    _study(
        "ablation",
        "what each part of our recipe does: cut, shift, network, drills, hearing, hysteresis, encoder",
        ABLATION,
        _short(ABLATION_QUICK, seeds=1, episodes=12_800),
    ),
)
STUDIES: dict[str, Study] = {row.name: row for row in _ROWS}


# What the worlds cost, for estimates: the mean length of a training episode in ticks, and training steps per second on
# two cores (results/box_pushing/bench-backbones-cpu.json; the other worlds in proportion to their bench-cpu.json) and
# on one H200 that trains dozens of runs at once (bench-gpu.json).
TICKS = {"box_pushing": 20, "warehouse": 120, "overcooked": 130}
STEPS = {
    "cpu": {"box_pushing": 66_000, "warehouse": 74_000, "overcooked": 44_000},
    "gpu": {"box_pushing": 3_000_000, "warehouse": 5_000_000, "overcooked": 5_000_000},
}
COMPILING = {  # seconds
    "cpu": {"box_pushing": 130.0, "warehouse": 130.0, "overcooked": 300.0},
    "gpu": {"box_pushing": 120.0, "warehouse": 120.0, "overcooked": 120.0},
}
# However small its batch, an update takes this long on a GPU: with the preset `paper` 37 ms alone in Overcooked, and 42
# in Warehouse beside one other training (the records in results/repeat-table1).
UPDATE = {"cpu": 0.0, "gpu": 0.04}  # seconds, at least
EVALUATED = 7_000  # episodes that a run plays for its learning curve and its score
QUICK_JOBS = 2  # quick trainings at once where there is no GPU: they mostly compile, which keeps one core busy each


def seconds_of_all(trainings: Sequence[Training], profile: str, device: str) -> float:
    """Return about how long trainings take together as `mavic reproduce` runs them on one machine, in seconds.

    Args:
        trainings: the trainings of a study.
        profile: "full" or "quick".
        device: "cpu" or "gpu".
    """
    jobs = QUICK_JOBS if profile == "quick" and device == "cpu" and len(trainings) > 1 else 1
    return sum(one.seconds(device) for one in trainings) / jobs

"""The studies of `mavic reproduce`, as rows of a table: what each shows, and which trainings it needs.

A training is one `mavic train` command with numbers of its own; configurations that fit one compiled program are one
training. Studies share trainings. The profile `full` is meant for a GPU, `quick` for minutes on two cores; quick
trainings are too short for figures to quote. `mavic.reporting.studies` draws each study from the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from mavic.studies.trainings import PLAIN, WORLDS, Training, training


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


# The blocks of the paper's Table 1, each trained in every world.
TABLE1: dict[str, dict[str, Any]] = {
    "paper_conditions": {"preset": "paper-tuned", "network": "shared", "condition": ("paper/add",)},
    "paper_literal": {"preset": "paper", "network": "shared", "condition": ("paper/add",)},
    "ours": {
        "preset": "default",
        "network": "residual",
        "condition": ("live/by-kind",),
        "population": 1,
    },
}
FRESH = 1_000  # the first seed of blocks that were trained when seeds from 200 on had been seen
BLOCK_SEEDS = {"paper_conditions": FRESH, "paper_literal": 200, "ours": FRESH}


def table1_rows(block: str, world: str) -> tuple[Training, ...]:
    """Return the trainings of a block of Table 1 in a world: all methods; dual, which has another network; and MAVIC
    with a population if the block is ours.

    Args:
        block: A key of TABLE1.
        world: The world.
    """
    first = training(
        name=f"{block}-{world}",
        world=world,
        method=("vanilla", "naive", "switch", "mavic", "mavic-shift"),
        first_seed=BLOCK_SEEDS[block],
        **TABLE1[block],
    )
    dual = first.but(method="naive", network="protected")
    more = [dataclasses.replace(dual, name=f"{first.name}-dual")]
    if block == "ours":
        eight = first.but(method="mavic", population=8)
        more.append(dataclasses.replace(eight, name=f"{first.name}-population"))
    return first, *more


TABLE1_FULL = tuple(
    one for block in TABLE1 for world in WORLDS for one in table1_rows(block, world)
)


def _table1_quick() -> Iterator[Training]:
    """Yield short trainings, the longest first, so that two at once end together.

    Only Box Pushing learns something in minutes on two cores.
    """
    short = {  # seeds, episodes and their number in a batch
        "paper_conditions-overcooked": (1, 384, 64),
        "ours-box_pushing": (1, 12_800, None),
        "paper_conditions-box_pushing": (2, 12_800, 32),
        "paper_conditions-warehouse": (1, 1_024, 64),
    }
    every = {one.name: one for one in TABLE1_FULL}
    for name, (seeds, episodes, batch) in short.items():
        fewer = every[name].but(method=("vanilla", "naive", "switch", "mavic"))
        sizes = {} if batch is None else {"batch": batch}
        yield from _short((fewer,), seeds=seeds, episodes=episodes, **sizes)


HEATMAP = training(
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
    return training(
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
    training(
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
SINGLE = training(
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
RARE = training(
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
    training(
        name="agents-box_pushing",
        world="box_pushing",
        method=("vanilla", "naive", "switch", "mavic"),
        network="residual",
        condition=("live/by-kind", "live/by-kind/one-agent"),
        seeds=5,
    ),
    training(
        name="agents-overcooked",
        world="overcooked",
        method=("vanilla", "naive", "switch", "mavic"),
        network="residual",
        condition=("live/by-kind/one-agent",),
        seeds=5,
    ),
)


UNRELIABLE = {"fails": 0.1, "slips": 0.2, "stopping": 2}
RELIABLE = {"reliable": {}, "tested": {**UNRELIABLE, "practised": 0}, "practised": UNRELIABLE}
UNRELIABLES = tuple(
    training(
        name=f"unreliable-{where}",
        world="box_pushing",
        method=("vanilla", "naive", "mavic"),
        preset="default",
        population=1,
        seeds=5,
        **({"options": options} if options else {}),
    )
    for where, options in RELIABLE.items()
)


def _atlas(network: str) -> Training:
    return training(
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
    return training(name=f"ablation-{world}-{changed}", world=world, **own)


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
        "the paper's Table 1 in three worlds: its conditions, its literal numbers, our recipe",
        TABLE1_FULL,
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
        "unreliable",
        "macros that fail, slip and stop late: what is earned and followed, with and without practice",
        UNRELIABLES,
        _short(UNRELIABLES, seeds=1, episodes=16_000),
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

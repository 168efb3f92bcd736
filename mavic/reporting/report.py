"""Run records → tables and figures, from JSON-lines files alone, the same bytes every time.

`report(folder)` is the whole of it: read the records, estimate over seeds (D18), write `table.json`, Markdown, LaTeX
and CSV, draw the figures. The parts are `table` (records → rows), `grids` (rows → tables of texts, which every writer
shares) and one function a writer or figure. Needs the extra `report`.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.console import Group as Lined
from rich.table import Table
from rich.text import Text

from mavic.envs.painting import PALETTE, ink
from mavic.experiments.config import ExperimentConfig, as_trained
from mavic.experiments.methods import METHODS
from mavic.experiments.records import Record, RecordError, plain, read_folder

LEVEL, RESAMPLES, BOOTSTRAP_SEED = 0.95, 9_999, 18
NONE = "—"


class MissingExtraError(ImportError):
    """Tables and figures need packages that are not installed; the message says what to type."""


def _extra(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"tables and figures need {module.split('.')[0]}: pip install 'mavic[report]'"
        ) from error


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """What the paper's table says of a method: means and standard deviations over 5 seeds."""

    base: float
    base_std: float
    compliance: float | None = None
    compliance_std: float | None = None


def _paper(base: float, std: float, *compliance: float) -> PaperFigure:
    return PaperFigure(
        base=base,
        base_std=std,
        compliance=compliance[0] if compliance else None,
        compliance_std=compliance[1] if compliance else None,
    )


PAPER: dict[str, dict[str, PaperFigure]] = {
    "box_pushing": {
        "mavic": _paper(288.32, 4.1, 0.50, 0.0014),
        "naive": _paper(270.60, 5.68, 0.05, 0.05),
        "switch": _paper(267.85, 3.90, 0.06, 0.079),
        "vanilla": _paper(290.42, 0.01),
    },
    "warehouse": {
        "mavic": _paper(438.90, 15.238, 0.93, 0.02),
        "naive": _paper(359.12, 63.62, 0.92, 0.013),
        "switch": _paper(454.49, 30.11, 0.86, 0.21),
        "vanilla": _paper(473.65, 13.35),
    },
    "overcooked": {
        "mavic": _paper(122.28, 0.56, 0.99, 0.013),
        "naive": _paper(3.62, 9.98, 0.93, 0.033),
        "switch": _paper(104.00, 49.46, 0.99, 0.001),
        "vanilla": _paper(152.31, 22.00),
    },
}
PAPER_NOTES = {"box_pushing": "its text says 99 % where its table says 50 %"}
FOLLOWED = {"warehouse": "the tool asked for came first and no other was looked for"}
TITLES = {"box_pushing": "Box Pushing", "warehouse": "Warehouse", "overcooked": "Overcooked"}


@dataclass(frozen=True)
class Look:
    """How a method appears in every table and figure."""

    label: str
    colour: str
    dash: str | tuple = "-"


LOOKS = {  # in the order of tables; hues of Okabe and Ito, and a dash each
    "mavic": Look("MAVIC", PALETTE["blue"]),
    "mavic-shift": Look("MAVIC-shift", PALETTE["sky"], (0, (5, 1))),
    "switch": Look("switch", PALETTE["green"], (0, (3, 1, 1, 1))),
    "naive": Look("naive", PALETTE["red"], (0, (1, 1))),
    "vanilla": Look("vanilla", PALETTE["slate"], (0, (6, 2))),
    "random": Look("random", PALETTE["grey"], (0, (1, 3))),
}
MARKERS = {"protected": "o", "residual": "D", "shared": "s"}
ORDER = {  # the headline, tuned/protected/live/by-kind, is the first of each
    "preset": ("tuned", "paper"),
    "network": ("protected", "residual", "shared"),
    "schedule": ("live", "paper"),
    "rule": ("by-kind", "add"),
}


Lines = tuple[str, ...]


def look(method: str) -> Look:
    """A method's label, colour and dash; methods we have no look for get their own name."""
    return LOOKS.get(method, Look(method, PALETTE["purple"], ":"))


def label(method: str, network: str) -> str:
    """A method's name in tables (D17: naive on `protected` is the paper's dual)."""
    if (method, network) == ("naive", "protected"):
        return "dual (naive, protected)"
    return look(method).label


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number a seed, summed up; `std` has n−1, `low` and `high` bound the mean."""

    values: tuple[float, ...]
    mean: float
    std: float
    min: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference of two means with its interval."""

    mean: float
    low: float
    high: float

    @property
    def contains_zero(self) -> bool:
        """Whether the interval leaves open that there is none."""
        return self.low <= 0.0 <= self.high


def interval(*samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % percentile-bootstrap interval of a mean, or of the difference of two, over axis 0 (seeds).

    Columns are bootstrapped alike. Where nothing varies the interval is the point; where a number is missing, nan."""
    point = _contrast(*samples, axis=0)
    finite = np.all([np.isfinite(s).all(0) for s in samples], axis=0)
    steady = np.all([np.ptp(np.where(finite, s, 0.0), axis=0) == 0 for s in samples], axis=0)
    if steady.all():
        return point, point
    # scipy wants two observations; a single one, twice, is resampled to itself
    data = [np.where(finite, s, 0.0).repeat(2 if len(s) == 1 else 1, axis=0) for s in samples]
    bounds = (
        _extra("scipy.stats")
        .bootstrap(
            data,
            _contrast,
            n_resamples=RESAMPLES,
            batch=max(1, 4_000_000 // max(d.size for d in data)),
            confidence_level=LEVEL,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(BOOTSTRAP_SEED),
        )
        .confidence_interval
    )
    steady = steady | ~finite
    return np.where(steady, point, bounds.low), np.where(steady, point, bounds.high)


def _contrast(*samples: np.ndarray, axis: int = 0) -> np.ndarray:
    first, *rest = (sample.mean(axis) for sample in samples)
    return first - rest[0] if rest else first


def estimates(values: np.ndarray) -> list[Estimate]:
    """Each column of [seeds, …] summed up."""
    low, high = interval(values)
    many = len(values) > 1
    return [
        Estimate(
            values=tuple(map(float, column)),
            mean=float(column.mean()),
            std=float(column.std(ddof=1)) if many else math.nan,
            min=float(column.min()),
            low=float(low[i]),
            high=float(high[i]),
        )
        for i, column in enumerate(values.T)
    ]


def difference(first: Any, second: Any) -> Difference:
    """mean(first) − mean(second), each a number a seed; the two are resampled independently."""
    pair = np.asarray(first, float)[:, None], np.asarray(second, float)[:, None]
    low, high = interval(*pair)
    return Difference(mean=float(_contrast(*pair)[0]), low=float(low[0]), high=float(high[0]))


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Learning: checkpoints in training episodes, and [checkpoints, seeds] of base return and compliance."""

    episodes: tuple[int, ...]
    base: np.ndarray
    compliance: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """A set of phrases that nobody was trained on, and the share of instructions in them that was followed."""

    phrases: int
    understood: int
    followed: Estimate
    """Of those understood, heard as the nearest trained phrase of the kind."""
    own_vector: Estimate
    """Of those understood, heard as they are."""
    anyway: Estimate
    """Of all, heard as they are."""


def _spoken(record: Record) -> dict[str, Spoken]:
    def sets(name: str, entry: dict[str, Any]) -> Spoken:
        ways = ("per_instruction", "own_vector", "own_vector_anyway")
        columns = np.concatenate([_numbers(record, "words", name, way) for way in ways], axis=1)
        followed, own, anyway = estimates(columns)
        return Spoken(
            phrases=entry["phrases"],
            understood=entry["understood"],
            followed=followed,
            own_vector=own,
            anyway=anyway,
        )

    words = (record.score or {}).get("words", {})
    return {name: sets(name, entry) for name, entry in words.items()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell of the study, judged. Shares, compliance and leak are fractions."""

    cell: ExperimentConfig
    seeds: tuple[int, ...]
    preset: dict[str, Any]
    versions: dict[str, str]
    episodes: int
    """Training episodes."""
    optimum: float | None
    base: Estimate
    share: Estimate
    """Of the optimum; nan where it is not known."""
    undiscounted: Estimate
    solved: Estimate
    length: Estimate
    base_greedy: Estimate
    base_episodes: int
    compliance: Estimate
    """Instructions followed / given."""
    per_decision: Estimate
    per_step: Estimate
    solved_told: Estimate
    """Episodes with instructions in which the task was done all the same."""
    compliance_greedy: Estimate
    compliance_episodes: int
    given: tuple[int, ...]
    """Instructions a seed was given."""
    given_by_kind: dict[str, tuple[int, ...]]
    by_kind: dict[str, Estimate]
    held: dict[str, tuple[Estimate, Estimate]]
    """Return of the task and episodes in which it was done, by kind that leaves the task on, held from start to end."""
    words: dict[str, Spoken]
    """Instructions in words that were not trained on, by set; empty where that was not judged."""
    leak: Estimate
    leak_by_kind: dict[str, Estimate]
    leak_over_vanilla: Difference | None
    """None for vanilla itself, or where vanilla was not run."""
    paper: PaperFigure | None
    curve: Curve

    @property
    def group(self) -> str:
        """The table it stands in: preset/network/schedule/rule[/overlap][/extras]."""
        return self.cell.key()

    @property
    def label(self) -> str:
        """Its name there."""
        return label(self.cell.method, self.cell.network)

    @property
    def told(self) -> bool:
        """Whether it hears instructions: vanilla's compliance is chance."""
        return self.cell.method != "vanilla"


def _numbers(record: Record, *path: str) -> np.ndarray:
    """A list with one entry a seed from the score line, as [seeds, 1]."""
    found: Any = record.score
    for name in path:
        if not isinstance(found, dict) or name not in found:
            raise RecordError(f"{record.path}: the score line has no {'.'.join(path)}")
        found = found[name]
    seeds = len(record.run["seeds"])
    if not isinstance(found, list) or len(found) != seeds:
        raise RecordError(
            f"{record.path}: {'.'.join(path)} of the score line needs one entry a seed ({seeds})"
        )
    if METHODS[record.cell().method].random:
        found = found[:1]  # one sample: it has no parameters, and all seeds meet the same episodes
    numbers = np.asarray([math.nan if x is None else x for x in found], float)
    return np.where(np.isfinite(numbers), numbers, math.nan)[:, None]


def _curve(record: Record) -> Curve:
    def points(name: str) -> np.ndarray:
        rows = [[math.nan if x is None else x for x in line[name]] for line in record.curve]
        return np.asarray(rows, float).reshape(len(rows), len(record.run["seeds"]))

    cell, compliance = record.cell(), points("compliance")
    if as_trained(cell).setting() != cell.setting():  # it was watched in another test
        compliance = np.full_like(compliance, math.nan)
    return Curve(
        episodes=tuple(line["episodes"] for line in record.curve),
        base=points("base"),
        compliance=compliance,
    )


def _row(record: Record, vanilla: Record | None) -> Row:
    cell, score = record.cell(), record.score
    assert score is not None
    kinds = list(score["compliance"]["given"])
    given = {kind: _numbers(record, "compliance", "given", kind) for kind in kinds}
    followed = {kind: _numbers(record, "compliance", "followed", kind) for kind in kinds}
    kinds = [kind for kind in kinds if given[kind].any()]
    base = _numbers(record, "base", "discounted")
    optimum = score.get("optimum")
    columns = {
        "base": base,
        "share": base / (math.nan if optimum is None else optimum),
        "undiscounted": _numbers(record, "base", "undiscounted"),
        "solved": _numbers(record, "base", "solved"),
        "length": _numbers(record, "base", "length"),
        "base_greedy": _numbers(record, "base_greedy", "discounted"),
        "compliance": _numbers(record, "compliance", "per_instruction"),
        "per_decision": _numbers(record, "compliance", "per_decision"),
        "per_step": _numbers(record, "compliance", "per_step"),
        "solved_told": _numbers(record, "compliance", "solved")
        if "solved" in score["compliance"]
        else np.full_like(base, math.nan),  # older records do not say
        "compliance_greedy": _numbers(record, "compliance_greedy", "per_instruction"),
        "leak": _numbers(record, "leak", "none"),
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = {("kind", kind): followed[kind] / given[kind] for kind in kinds}
    told = METHODS[cell.method].instructions != "none"  # others' critics have learnt no such value
    leaks = {
        ("leak", kind): _numbers(record, "leak", kind)
        for kind in score["leak"]
        if kind != "none" and told
    }
    held = {
        ("held", kind, what): _numbers(record, "held", kind, what)
        for kind in score.get("held", {})  # older records do not say
        for what in ("task", "solved")
    }
    held = {name: numbers for name, numbers in held.items() if np.isfinite(numbers).all()}
    wide: dict[Any, np.ndarray] = {**columns, **rates, **leaks, **held}
    found = dict(zip(wide, estimates(np.concatenate(list(wide.values()), axis=1)), strict=True))
    against = None
    if vanilla is not None and cell.method != "vanilla":
        pair = columns["leak"][:, 0], _numbers(vanilla, "leak", "none")[:, 0]
        if min(map(len, pair)) > 1:  # of one seed nobody knows how far it strays
            against = difference(*pair)
    dual = label(cell.method, cell.network).startswith("dual")
    return Row(
        cell=cell,
        seeds=tuple(record.run["seeds"]),
        preset=record.run["preset"],
        versions=record.run["versions"],
        episodes=int(score["episodes"]),
        optimum=optimum,
        **{name: found[name] for name in columns},
        base_episodes=int(score["base"]["episodes"]),
        compliance_episodes=int(score["compliance"]["episodes"]),
        given=tuple(int(x) for x in sum(given.values(), np.zeros((len(base), 1)))[:, 0]),
        given_by_kind={kind: tuple(int(x) for x in given[kind][:, 0]) for kind in kinds},
        by_kind={kind: found["kind", kind] for kind in kinds},
        held={
            kind: (found["held", kind, "task"], found["held", kind, "solved"])
            for _, kind, what in held
            if what == "task"
        },
        words=_spoken(record),
        leak_by_kind={name: found["leak", name] for _, name in leaks},
        leak_over_vanilla=against,
        paper=None if dual else PAPER.get(cell.world, {}).get(cell.method),
        curve=_curve(record),
    )


def _check_comparable(records: Iterable[Record]) -> None:
    """One world; in a group one row a method, and the same kinds, scope and options."""
    worlds: dict[str, Record] = {}
    groups: dict[str, Record] = {}
    rows: dict[tuple[str, str], Record] = {}
    for record in records:
        cell = record.cell()
        first = groups.setdefault(cell.key(), record)
        worlds.setdefault(cell.world, record)
        twin = rows.setdefault((cell.key(), cell.method), record)
        other = first.cell()
        if len(worlds) > 1:
            raise RecordError(
                f"records of several worlds in one folder ({', '.join(worlds)}): "
                "give each world a folder of its own"
            )
        if twin is not record:
            raise RecordError(
                f"{twin.path.name} and {record.path.name} are both {cell.method} of {cell.key()}"
            )
        for name in ("kinds", "one_agent", "options"):
            mine, theirs = getattr(cell, name), getattr(other, name)
            if mine != theirs:
                raise RecordError(
                    f"{first.path.name} and {record.path.name} stand in one table, {cell.key()}, but "
                    f"differ in {name} ({theirs} and {mine}): give each a folder of its own"
                )


def _rank(cell: ExperimentConfig) -> tuple:
    def place(name: str) -> tuple[int, str]:
        value, order = getattr(cell, name), ORDER[name]
        return (order.index(value) if value in order else len(order), value)

    methods = tuple(LOOKS)
    method = methods.index(cell.method) if cell.method in methods else len(methods)
    places = (
        place("preset"),
        cell.extras,
        cell.overlap,
        place("rule"),
        place("schedule"),
        place("network"),
    )
    return (*places, method, cell.method)


def table(records: Iterable[Record]) -> list[Row]:
    """Finished records as rows, the headline group first; unfinished ones are left out."""
    done = [record for record in records if record.score is not None]
    _check_comparable(done)
    vanillas = [record for record in done if record.cell().method == "vanilla"]

    def vanilla(cell: ExperimentConfig) -> Record | None:
        # vanilla never meets an instruction, so one that was judged without overlap or extras stands for both
        same = [v for v in vanillas if _plain(v.cell()) == _plain(cell)]
        return next((v for v in same if v.cell().key() == cell.key()), same[0] if same else None)

    rows = [_row(record, vanilla(record.cell())) for record in done]
    return sorted(rows, key=lambda row: _rank(row.cell))


def _plain(cell: ExperimentConfig) -> tuple[str, ...]:
    return cell.preset, cell.network, cell.schedule, cell.rule


def grouped(rows: Iterable[Row], by: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by a name of theirs, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    return groups


def setting(row: Row) -> str:
    """What a figure shows: a group without its network, so both networks stand side by side."""
    return f"{row.cell.preset}/{row.cell.setting()}"


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """A number as it is read, with a true minus; with `sign`, also that of what rounds to zero."""
    if not math.isfinite(value):
        return NONE
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    if value == 0 or (not sign and float(text.replace(",", "")) == 0):
        text = text.lstrip("+-")
    return text.replace("-", "−")


def hundredths(value: float, digits: int = 1, sign: bool = False) -> str:
    """A fraction as a number of hundredths; what is not the whole is never rounded up to it."""
    if value < 1:
        value = min(value, 1 - 10.0 ** -(digits + 2))
    return number(100 * value, digits, sign)


def percent(value: float, digits: int = 1, sign: bool = False) -> str:
    """A fraction in percent."""
    return f"{hundredths(value, digits, sign)} %" if math.isfinite(value) else NONE


def _spread(e: Estimate, digits: int = 2) -> str:
    text = number(e.mean, digits)
    return f"{text} ± {number(e.std, digits)}" if math.isfinite(e.std) else text


def _spread_percent(e: Estimate, digits: int = 2) -> str:
    if not math.isfinite(e.std):
        return percent(e.mean, digits)
    return f"{hundredths(e.mean, digits)} ± {number(100 * e.std, digits)} %"


def _bounds(e: Estimate, digits: int = 2) -> str:
    return f"[{number(e.low, digits)}, {number(e.high, digits)}]" if math.isfinite(e.low) else NONE


def _bounds_percent(e: Estimate | Difference, digits: int = 2, sign: bool = False) -> str:
    if not math.isfinite(e.low):
        return NONE
    return f"[{hundredths(e.low, digits, sign)}, {hundredths(e.high, digits, sign)}]"


def _leak(row: Row) -> Lines:
    own, found = percent(row.leak.mean, 1, True), row.leak_over_vanilla
    if found is None or not math.isfinite(found.mean):
        return (own,)
    verdict = "same" if found.contains_zero else "differs"
    return (own, f"Δ {hundredths(found.mean, 1, True)}", _bounds_percent(found, 1, True), verdict)


def _paper_text(figure: PaperFigure | None) -> Lines:
    if figure is None:
        return (NONE,)
    base = (number(figure.base), f"± {number(figure.base_std)}")
    if figure.compliance is None or figure.compliance_std is None:
        return base
    return (*base, f"{100 * figure.compliance:.0f} ± {100 * figure.compliance_std:.3g} %")


def _name(row: Row) -> Lines:
    return tuple(row.label.replace(" ", "\n").split("\n"))


def _share(e: Estimate, digits: int = 1) -> Lines:
    if not math.isfinite(e.mean):
        return (NONE,)
    return (percent(e.mean, digits), f"≥{percent(e.min, digits)}")


def _compliance(row: Row) -> Lines:
    return (
        _spread_percent(row.compliance),
        _bounds_percent(row.compliance),
        f"worst {percent(row.compliance.min, 2)}",
        f"greedy {percent(row.compliance_greedy.mean, 2)}",
        *(() if row.told else ("(not told)",)),
    )


@dataclass(frozen=True)
class Column:
    """A column of a table: its title and a cell's lines of text."""

    title: str
    text: Callable[[Row], Lines]


MAIN = (
    Column("Method", _name),
    Column(
        "Base return", lambda r: (_spread(r.base), _bounds(r.base), f"worst {number(r.base.min)}")
    ),
    Column("Of optimum", lambda r: _share(r.share, 2)),
    Column("Compliance", _compliance),
    Column("Leak", _leak),
    Column("Paper", lambda r: _paper_text(r.paper)),
)
TASK = (
    Column("Method", _name),
    Column("Undiscounted return", lambda r: (_spread(r.undiscounted), _bounds(r.undiscounted))),
    Column("Solved", lambda r: _share(r.solved)),
    Column("Length", lambda r: (_spread(r.length), _bounds(r.length))),
    Column("Greedy return", lambda r: (_spread(r.base_greedy), _bounds(r.base_greedy))),
    Column("Episodes", lambda r: (f"{r.base_episodes:,}",)),
)
OBEDIENCE = (
    Column("Method", _name),
    Column(
        "Per decision", lambda r: (_spread_percent(r.per_decision), _bounds_percent(r.per_decision))
    ),
    Column("Per step", lambda r: (_spread_percent(r.per_step), _bounds_percent(r.per_step))),
    Column(
        "Greedy",
        lambda r: (_spread_percent(r.compliance_greedy), _bounds_percent(r.compliance_greedy)),
    ),
    Column(
        "Solved", lambda r: (_spread_percent(r.solved_told, 1), _bounds_percent(r.solved_told, 1))
    ),
    Column("Leak", lambda r: (_spread_percent(r.leak, 1), _bounds_percent(r.leak, 1, True))),
    Column("Given", lambda r: (f"{sum(r.given):,}",)),
    Column("Episodes", lambda r: (f"{r.compliance_episodes:,}",)),
)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts; a cell is one or more lines."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Lines, ...], ...]
    caption: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """The tables of one preset, network, schedule and rule."""

    key: str
    main: Grid
    task: Grid
    obedience: Grid
    kinds: Grid
    held: Grid | None  # None where no kind leaves the task on, or records are older
    words: Grid | None  # where nobody was judged in other words


def _seeds_text(seeds: Sequence[int]) -> str:
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 2 and list(seeds) == list(range(first, last + 1)):
        return f"{len(seeds)} seeds ({first}–{last})"
    listed = ", ".join(map(str, seeds))
    return f"{len(seeds)} seed{'s' * (len(seeds) > 1)} ({listed})"


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"


def _versions_text(rows: Sequence[Row]) -> str:
    texts = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in rows]
    return "; ".join(dict.fromkeys(texts))


def _unequal(rows: Sequence[Row]) -> str:
    """Where a comparison would be won by tuning (D10), it says so."""
    names = dict.fromkeys(name for row in rows for name in row.preset)
    unequal = [
        f"{name} ("
        + "; ".join(f"{row.label} {plain(row.preset.get(name, 'none'))}" for row in rows)
        + ")"
        for name in names
        if len({json.dumps(row.preset.get(name)) for row in rows}) > 1
    ]
    return f"Not the same preset: {', '.join(unequal)}." if unequal else ""


def _setup(rows: Sequence[Row]) -> str:
    """What every table of a group was made from."""
    cell = rows[0].cell
    world = TITLES.get(cell.world, cell.world)
    facts = [f"{cell.preset} preset", f"{cell.network} network", f"{cell.schedule} schedule"]
    facts.append("rule by kind" if cell.rule == "by-kind" else f"rule {cell.rule} everywhere")
    facts += (
        ["overlap"] * cell.overlap
        + ["extra kinds too"] * cell.extras
        + ["one agent addressed"] * cell.one_agent
    )
    facts += [f"{name} {value}" for name, value in cell.options.items()]
    facts += [f"kinds {', '.join(cell.kinds)}"] if cell.kinds else []
    seeds = grouped(rows, lambda row: _seeds_text(row.seeds))
    who = "; ".join(
        text if len(seeds) == 1 else f"{', '.join(row.label for row in found)}: {text}"
        for text, found in seeds.items()
    )
    return f"{world}, {', '.join(facts)}. {who}, {_range(r.episodes for r in rows)} training episodes each."


_SPREAD = (
    "± is the standard deviation over seeds (n−1), [ ] the 95 % percentile-bootstrap interval "
    "of the mean over seeds."
)


def _main_caption(rows: Sequence[Row]) -> str:
    world, optimum = rows[0].cell.world, rows[0].optimum
    note = PAPER_NOTES.get(world)
    parts = [
        _setup(rows),
        "Final parameters, policy sampled without exploration.",
        f"Base return: instructions off, discounted, {_range(r.base_episodes for r in rows)} episodes a seed;",
        f"of optimum: its share of {number(optimum)}, the best possible (≥: the worst seed)."
        if optimum is not None
        else "the optimum is not known.",
        "Compliance: instructions followed / given, where followed means that "
        f"{FOLLOWED.get(world, 'nothing disallowed was done while it held')}, "
        f"{_range(g for r in rows for g in r.given)} instructions a seed; greedy: the likeliest macro always.",
        _SPREAD,
        "Leak: mean of V − G over base decisions, as a share of the mean of G; Δ: less vanilla's, with the interval "
        "of the difference in points (same: it contains 0).",
        "Not told: vanilla hears no instruction, its compliance is chance." if _deaf(rows) else "",
        "Dual: naive targets on the protected network, the paper's ablation."
        if _dual(rows)
        else "",
        f"Paper: its base return and compliance ± σ, 5 seeds, its own settings{f' ({note})' if note else ''}.",
        _unequal(rows),
        f"Made with {_versions_text(rows)}.",
    ]
    return " ".join(part for part in parts if part)


def _task_caption(rows: Sequence[Row]) -> str:
    return " ".join(
        [
            _setup(rows),
            "Instructions off: undiscounted return, share of episodes solved (≥: the worst seed), "
            "length in ticks, all sampled; discounted return of the likeliest macros; episodes a "
            "seed was judged on.",
            _SPREAD,
            f"Made with {_versions_text(rows)}.",
        ]
    )


def _obedience_caption(rows: Sequence[Row]) -> str:
    return " ".join(
        [
            _setup(rows),
            "Per decision: decisions of addressed agents that were allowed. Per step: their ticks "
            "under an allowed macro. Greedy: instructions followed / given by the likeliest macros. "
            "Solved: episodes with instructions in which the task was done all the same. "
            "Leak: mean of V − G over base decisions, as a share of the mean of G. Given: "
            "instructions to all seeds together. Episodes: played for them by a seed.",
            _SPREAD,
            f"Made with {_versions_text(rows)}.",
        ]
    )


def _kinds_caption(rows: Sequence[Row]) -> str:
    by_kind = (n for row in rows for counts in row.given_by_kind.values() for n in counts)
    return " ".join(
        [
            _setup(rows),
            "Instructions followed / given by kind, in %: mean over seeds (worst seed). "
            f"{_range(g for r in rows for g in r.given)} instructions a seed, "
            f"{_range(by_kind)} of a kind.",
            f"Made with {_versions_text(rows)}.",
        ]
    )


def _deaf(rows: Iterable[Row]) -> bool:
    return not all(row.told for row in rows)


def _dual(rows: Iterable[Row]) -> bool:
    return any(row.label.startswith("dual") for row in rows)


def _column_grid(title: str, columns: Sequence[Column], rows: Sequence[Row], caption: str) -> Grid:
    return Grid(
        title=title,
        header=tuple(column.title for column in columns),
        rows=tuple(tuple(column.text(row) for column in columns) for row in rows),
        caption=caption,
    )


def _kinds_grid(title: str, rows: Sequence[Row]) -> Grid:
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.by_kind))

    def followed(row: Row, kind: str) -> Lines:
        found = row.by_kind.get(kind)
        return (f"{hundredths(found.mean)} ({hundredths(found.min)})",) if found else (NONE,)

    names = [row.label + ("" if row.told else " (not told)") for row in rows]
    return Grid(
        title=title,
        header=("Kind", *names),
        rows=tuple(((kind,), *(followed(row, kind) for row in rows)) for kind in kinds),
        caption=_kinds_caption(rows),
    )


def _held_grid(title: str, rows: Sequence[Row]) -> Grid | None:
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.held))
    if kinds in ([], ["none"]):
        return None

    def earned(row: Row, kind: str) -> Lines:
        if kind not in row.held:
            return (NONE,)
        task, solved = row.held[kind]
        return (f"{number(task.mean, 1)} ({number(task.min, 1)})", percent(solved.mean))

    caption = (
        "What is left of the task when one instruction is given at the start and holds to the end, or until it is met, "
        "for the kinds that leave the task on: "
        "return of the task alone, penalties not counted, mean over seeds (worst seed); below it the share of episodes "
        "in which the task was done. At the last exploration of training."
    )
    return Grid(
        title=title,
        header=("Kind", *(row.label + ("" if row.told else " (not told)") for row in rows)),
        rows=tuple(((kind,), *(earned(row, kind) for row in rows)) for kind in kinds),
        caption=" ".join([_setup(rows), caption, f"Made with {_versions_text(rows)}."]),
    )


def _words_grid(title: str, rows: Sequence[Row]) -> Grid | None:
    def line(row: Row, name: str, said: Spoken) -> tuple[Lines, ...]:
        shares = (said.followed, said.own_vector, said.anyway)
        return (
            (row.label,),
            (name,),
            (f"{said.understood} of {said.phrases}",),
            *((_spread_percent(e), _bounds_percent(e)) for e in shares),
        )

    lines = tuple(line(row, name, said) for row in rows for name, said in row.words.items())
    if not lines:
        return None
    caption = (
        "Instructions given in phrases that nobody was trained on. Understood: phrases that the lexicon is sure of; "
        "the others ask for nothing. Followed: instructions followed / given in understood phrases, each heard as the "
        "trained phrase nearest to it of the kind it is understood as. Own vector: the same, heard as they are. Unsure "
        "too: heard as they are, understood or not."
    )
    return Grid(
        title=title,
        header=("Method", "Words", "Understood", "Followed", "Own vector", "Unsure too"),
        rows=lines,
        caption=" ".join([_setup(rows), caption, _SPREAD, f"Made with {_versions_text(rows)}."]),
    )


def grids(rows: Sequence[Row]) -> list[Group]:
    """Rows as tables of texts, a group each."""
    return [
        Group(
            key=key,
            main=_column_grid(key, MAIN, found, _main_caption(found)),
            task=_column_grid(f"{key}: the task", TASK, found, _task_caption(found)),
            obedience=_column_grid(
                f"{key}: compliance", OBEDIENCE, found, _obedience_caption(found)
            ),
            kinds=_kinds_grid(f"{key}: compliance by kind", found),
            held=_held_grid(f"{key}: the task under a lasting instruction", found),
            words=_words_grid(f"{key}: in other words", found),
        )
        for key, found in grouped(rows, lambda row: row.group).items()
    ]


def json_text(rows: Sequence[Row]) -> str:
    """`table.json`: group → method → numbers; what is not known is null."""

    def tidy(value: Any) -> Any:
        if isinstance(value, list):
            return [tidy(v) for v in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def entry(row: Row) -> dict[str, Any]:
        numbers = {
            "base_mean": row.base.mean,
            "base_std": row.base.std,
            "base_min": row.base.min,
            "base_ci": [row.base.low, row.base.high],
            "share_of_optimum": row.share.mean,
            "compliance_mean": row.compliance.mean,
            "compliance_std": row.compliance.std,
            "compliance_min": row.compliance.min,
            "compliance_ci": [row.compliance.low, row.compliance.high],
            "compliance_per_decision": row.per_decision.mean,
            "compliance_per_step": row.per_step.mean,
            "compliance_greedy": row.compliance_greedy.mean,
            "leak": row.leak.mean,
            "seeds": len(row.seeds),
            "episodes": row.episodes,
        }
        return {name: tidy(plain(value)) for name, value in numbers.items()}

    groups = {
        key: {row.cell.method: entry(row) for row in found}
        for key, found in grouped(rows, lambda row: row.group).items()
    }
    return json.dumps(groups, indent=1, allow_nan=False) + "\n"


def _markdown_grid(grid: Grid) -> str:
    lines = [
        "| " + " | ".join(grid.header) + " |",
        "|" + "|".join([":--", *["--:"] * (len(grid.header) - 1)]) + "|",
        *("| " + " | ".join("<br>".join(cell) for cell in row) + " |" for row in grid.rows),
    ]
    return "\n".join(lines) + f"\n\n{grid.caption}\n"


def markdown_text(
    rows: Sequence[Row], figures: Iterable[Path] = (), unfinished: Iterable[Path] = ()
) -> str:
    """All tables with their captions, then the figures; paths are written as they are given."""
    parts = [f"# {TITLES.get(rows[0].cell.world, rows[0].cell.world)}\n"]
    if names := [f"`{path.name}`" for path in unfinished]:
        parts.append(f"Unfinished, left out: {', '.join(names)}.\n")
    for group in grids(rows):
        parts += [f"## {group.key}\n", _markdown_grid(group.main)]
        parts += ["### The task\n", _markdown_grid(group.task)]
        parts += ["### Compliance\n", _markdown_grid(group.obedience)]
        parts += ["### Compliance by kind\n", _markdown_grid(group.kinds)]
        if group.held:
            parts += ["### The task under a lasting instruction\n", _markdown_grid(group.held)]
        if group.words:
            parts += ["### In other words\n", _markdown_grid(group.words)]
    shown = [path for path in figures if path.suffix == ".png"]
    if shown:
        parts.append("## Figures\n")
        parts += [f"![{path.stem.replace('-', ' ')}]({path.as_posix()})\n" for path in shown]
    return "\n".join(parts)


_TEX = {
    "\\": r"\textbackslash{}", "%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "±": r"$\pm$", "≥": r"$\geq$", "Δ": r"$\Delta$",
    "σ": r"$\sigma$", "—": "---", "–": "--", "[": "{[}", "]": "{]}",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)


def _latex_grid(grid: Grid, name: str) -> str:
    def lines(row: Sequence[Lines]) -> list[str]:
        stacked = zip_longest(*([_tex(line) for line in cell] for cell in row), fillvalue="")
        return [" & ".join(line) + r" \\" for line in stacked]

    body: list[str] = []
    for row in grid.rows:
        if body and any(len(cell) > 1 for cell in row):
            body.append(r"\addlinespace")
        body += lines(row)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{_tex(grid.caption)}}}",
            rf"\label{{tab:{name}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
            r"\toprule",
            *lines([tuple(name.split()) for name in grid.header]),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def latex_text(rows: Sequence[Row]) -> str:
    """All tables for LaTeX; needs the package booktabs."""
    parts = [r"% \usepackage{booktabs}"]
    world = rows[0].cell.world.replace("_", "-")
    for group in grids(rows):
        name = f"{world}-{group.key.replace('/', '-')}"
        parts.append(_latex_grid(group.main, name))
        parts.append(_latex_grid(group.task, f"{name}-task"))
        parts.append(_latex_grid(group.obedience, f"{name}-compliance"))
        parts.append(_latex_grid(group.kinds, f"{name}-kinds"))
        if group.held:
            parts.append(_latex_grid(group.held, f"{name}-held"))
        if group.words:
            parts.append(_latex_grid(group.words, f"{name}-words"))
    return "\n\n".join(parts) + "\n"


def _csv(lines: Iterable[dict[str, Any]]) -> str:
    def text(value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.6g}" if math.isfinite(value) else ""
        return "" if value is None else value

    lines = list(lines)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: text(value) for name, value in line.items()} for line in lines)
    return out.getvalue()


def _identity(row: Row) -> dict[str, Any]:
    cell = row.cell
    names = ("world", "method", "network", "preset", "schedule", "rule", "overlap", "extras")
    return {**{name: getattr(cell, name) for name in names}, "label": row.label}


def _flat(name: str, e: Estimate) -> dict[str, float]:
    parts = ("mean", "std", "min", "low", "high")
    return {f"{name}_{part}": getattr(e, part) for part in parts}


def csv_text(rows: Iterable[Row]) -> str:
    """One line a row, all numbers; shares, compliance and leak are fractions."""
    names = (
        "base", "share", "undiscounted", "solved", "length", "base_greedy", "compliance", "per_decision", "per_step",
        "compliance_greedy", "leak",
    )  # fmt: skip

    def line(row: Row) -> dict[str, Any]:
        found = {**_identity(row), "seeds": len(row.seeds), "episodes": row.episodes}
        found |= {"optimum": row.optimum, "told": row.told}
        for name in names:
            found |= _flat(name, getattr(row, name))
        against, paper = row.leak_over_vanilla, row.paper
        found |= {
            "leak_over_vanilla": against and against.mean,
            "leak_over_vanilla_low": against and against.low,
            "leak_over_vanilla_high": against and against.high,
            "leak_over_vanilla_contains_zero": against and against.contains_zero,
            "base_episodes": row.base_episodes,
            "compliance_episodes": row.compliance_episodes,
            "given": sum(row.given),
            "given_min": min(row.given),
            "paper_base": paper and paper.base,
            "paper_base_std": paper and paper.base_std,
            "paper_compliance": paper and paper.compliance,
            "paper_compliance_std": paper and paper.compliance_std,
        }
        return found

    return _csv(line(row) for row in rows)


def kinds_csv_text(rows: Iterable[Row]) -> str:
    """One line a row and kind: compliance and leak."""
    return _csv(
        {
            **_identity(row),
            "kind": kind,
            "given": sum(row.given_by_kind[kind]),
            **_flat("compliance", found),
            "leak_mean": row.leak_by_kind[kind].mean if kind in row.leak_by_kind else None,
            "leak_low": row.leak_by_kind[kind].low if kind in row.leak_by_kind else None,
            "leak_high": row.leak_by_kind[kind].high if kind in row.leak_by_kind else None,
        }
        for row in rows
        for kind, found in row.by_kind.items()
    )


def terminal(grid: Grid) -> Lined:
    """A table for a terminal."""
    shown = Table(
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    tall = any(len(cell) > 1 for row in grid.rows for cell in row)
    for i, name in enumerate(grid.header):
        stacked = name.replace(" ", "\n")
        shown.add_column(stacked, justify="right" if i else "left", no_wrap=True)
    for row in grid.rows:
        shown.add_row(*("\n".join(cell) for cell in row), end_section=tall)
    return Lined(Text(grid.title, "bold"), shown, Text(f"{grid.caption}\n", "dim"))


def show(rows: Sequence[Row], console: Console) -> None:
    """Print every group's table, and compliance by kind of the first."""
    for i, group in enumerate(grids(rows)):
        console.print(terminal(group.main))
        if i == 0:
            console.print(terminal(group.kinds))
        if group.held:
            console.print(terminal(group.held))
        if group.words:
            console.print(terminal(group.words))


def _panel(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)


def _in_percent(axis: Any) -> None:
    axis.set_major_formatter(_extra("matplotlib.ticker").PercentFormatter(1.0, decimals=0))


def _optimum_lines(panels: Iterable[Any], optimum: float | None, vertical: bool) -> list[Any]:
    """Mark the optimum; its entry for the legend."""
    if optimum is None:
        return []
    style = {"color": PALETTE["black"], "linewidth": 1, "linestyle": (0, (2, 2))}
    for axes in panels:
        (axes.axvline if vertical else axes.axhline)(optimum, zorder=1, **style)
    text = f"optimum {number(optimum)}"
    return [_extra("matplotlib.lines").Line2D([], [], label=text, **style)]


def _method_handles(rows: Sequence[Row], **style: Any) -> list[Any]:
    """Legend entries, one a method, in the order of tables."""
    networks = {row.cell.network for row in rows if row.cell.method == "naive"}
    handles = []
    for method in dict.fromkeys(row.cell.method for row in rows):
        seen, text = look(method), look(method).label
        if method == "naive" and "protected" in networks:
            text = "naive (on protected: dual)" if len(networks) > 1 else label(method, "protected")
        text += " (not told)" * (method == "vanilla")
        own = {"linestyle": seen.dash, **style}
        line = _extra("matplotlib.lines").Line2D([], [], color=seen.colour, label=text, **own)
        handles.append(line)
    return handles


def _learners(rows: Sequence[Row]) -> Sequence[Row]:
    """Without the yardstick that learns nothing, if there are others."""
    return [row for row in rows if not METHODS[row.cell.method].random] or rows


def draw_curves(rows: Sequence[Row]) -> Any:
    """Base return and compliance while learning: a line a method, mean and 95 % interval over seeds."""
    rows = _learners(rows)
    ticker = _extra("matplotlib.ticker")
    networks = list(grouped(rows, lambda row: row.cell.network).items())
    size = (9, 0.7 + 2.7 * len(networks))
    figure = _extra("matplotlib.figure").Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(networks), 2, squeeze=False, sharex=True)
    for (base, compliance), (network, found) in zip(panels, networks, strict=True):
        for row in found:  # the solid line of the first shows between the dashes of those above it
            for axes, points in ((base, row.curve.base), (compliance, row.curve.compliance)):
                _draw_curve(axes, row, points)
        _panel(base, f"Base return · {network} network")
        _panel(compliance, f"Compliance · {network} network")
        _in_percent(compliance.yaxis)
        compliance.set_ylim(-0.03, 1.03)
    for axes in panels[-1]:
        axes.set_xlim(left=0)
        axes.set_xlabel("training episodes")
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6))
    handles = _method_handles(rows, linewidth=2)
    handles += _optimum_lines(panels[:, 0], rows[0].optimum, vertical=False)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_curve(axes: Any, row: Row, points: np.ndarray) -> None:
    if not len(points) or np.isnan(points).all():
        return
    low, high = interval(points.T)
    episodes, style = row.curve.episodes, look(row.cell.method)
    axes.fill_between(episodes, low, high, color=style.colour, alpha=0.18, linewidth=0, zorder=2)
    axes.plot(
        episodes,
        points.mean(1),
        color=style.colour,
        linestyle=style.dash,
        linewidth=2.4 if style.dash == "-" else 1.8,
        marker="o" if len(episodes) < 3 else None,
        zorder=3,
    )


def draw_kinds(rows: Sequence[Row]) -> Any:
    """Compliance by kind: methods × kinds, in percent; the first column is all kinds together."""
    colours = _extra("matplotlib").colormaps["cividis"]
    to_hex = _extra("matplotlib.colors").to_hex
    rectangle = _extra("matplotlib.patches").Rectangle
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.by_kind))
    networks = [row.cell.network for row in rows]
    left = np.array([0.0, *(1.35 + np.arange(len(kinds)))])
    top = np.array([i + 0.25 * (network != networks[0]) for i, network in enumerate(networks)])
    size = (9, 1.75 + 0.36 * (top[-1] + 1))
    figure = _extra("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    for y, row in zip(top, rows, strict=True):
        found = [row.compliance, *(row.by_kind.get(kind) for kind in kinds)]
        for x, estimate in zip(left, found, strict=True):
            known = estimate is not None and math.isfinite(estimate.mean)
            value = estimate.mean if estimate is not None and known else 0.0
            fill = to_hex(colours(value)) if known else PALETTE["white"]
            text = hundredths(value).replace("100.0", "100") if known else NONE
            axes.add_patch(rectangle((x, y), 1, 1, facecolor=fill, edgecolor="white"))
            axes.text(x + 0.5, y + 0.5, text, color=ink(fill), fontsize=9, ha="center", va="center")
    axes.set_xlim(0, left[-1] + 1)
    axes.set_ylim(top[-1] + 1, 0)
    axes.set_xticks(
        left + 0.5, ["all kinds", *kinds], rotation=35, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(top + 0.5, [_with_network(row) for row in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("Instructions followed, % (mean over seeds)", loc="left", fontsize=11)
    return figure


def _with_network(row: Row) -> str:
    if row.label.startswith("dual"):
        return row.label
    return f"{row.label}{'' if row.told else ' (not told)'} · {row.cell.network}"


CLOSE = (0.97, 0.9)  # shares of the optimum from one of which on dots get a panel of their own


def closest_look(shares: np.ndarray) -> float:
    """The highest of these that at least half of the dots reach; the first if none does."""
    return next((share for share in CLOSE if np.mean(shares >= share) >= 0.5), CLOSE[0])


def draw_both(rows: Sequence[Row]) -> Any:
    """Base return against compliance, a dot a seed: who has both stands in the upper right corner."""
    rows = _learners(rows)
    optimum = rows[0].optimum
    bases = np.array([value for row in rows for value in row.base.values])
    shares = bases / optimum if optimum is not None else np.ones(len(bases))
    close = closest_look(shares)
    near = shares >= close
    zoomed = near.any() and not near.all()
    figure = _extra("matplotlib.figure").Figure(figsize=(9, 4.9), layout="constrained")
    panels = figure.subplots(1, 1 + zoomed, squeeze=False, sharey=True)[0]
    told = {
        row.cell.method: row.paper for row in rows if row.paper and row.paper.compliance is not None
    }
    for axes in panels:
        for row in reversed(rows):  # the first of the table lies on top
            axes.scatter(
                row.base.values,
                row.compliance.values,
                s=46,
                marker=MARKERS.get(row.cell.network, "^"),
                color=look(row.cell.method).colour,
                edgecolor="white",
                linewidth=0.6,
                alpha=0.85,
                zorder=3,
            )
        for method, paper in told.items():
            axes.scatter(
                [paper.base], [paper.compliance], s=110, marker="D", facecolor="none",
                edgecolor=look(method).colour, linewidth=1.8, zorder=4,
            )  # fmt: skip
        axes.set_xlabel("base return (instructions off, discounted)")
    _panel(panels[0], "A dot a seed: upper right has both")
    panels[0].set_ylabel("instructions followed")
    _in_percent(panels[0].yaxis)
    panels[0].set_ylim(-0.04, 1.04)
    if zoomed and optimum is not None:
        _panel(panels[1], f"The same, from {close:.0%} of the optimum on")
        reach = max(optimum, bases.max()) - close * optimum
        panels[1].set_xlim(close * optimum, close * optimum + 1.06 * reach)
    line = _extra("matplotlib.lines").Line2D
    dot = {"linestyle": "none", "markersize": 7}
    handles = _method_handles(rows, marker="o", **dot)
    for network in dict.fromkeys(row.cell.network for row in rows):
        mark = {"color": PALETTE["grey"], "marker": MARKERS.get(network, "^")}
        handles.append(line([], [], label=f"{network} network", **mark, **dot))
    if told:
        mark = {"color": PALETTE["black"], "marker": "D", "markerfacecolor": "none"}
        handles.append(line([], [], label="the paper's figure", **mark, **dot))
    handles += _optimum_lines(panels, optimum, vertical=True)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES: dict[str, Callable[[Sequence[Row]], Any]] = {
    "curves": draw_curves,
    "kinds": draw_kinds,
    "both": draw_both,
}
STYLE = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same bytes everywhere
    "font.size": 10,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "mavic",
    "svg.fonttype": "path",
}


def write_figures(rows: Sequence[Row], folder: Path) -> tuple[Path, ...]:
    """Every figure of every setting, as SVG and PNG."""
    matplotlib = _extra("matplotlib")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, found in grouped(rows, setting).items():
        for kind, draw in FIGURES.items():
            with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
                figure = draw(found)
                stem = f"{kind}-{name.replace('/', '-')}"
                svg, png = folder / f"{stem}.svg", folder / f"{stem}.png"
                figure.draw_without_rendering()
                figure.set_layout_engine("none")  # laid out once is enough
                figure.savefig(svg, metadata={"Date": None, "Creator": None})
                figure.savefig(png, dpi=150, metadata={"Software": None})
            written += [svg, png]
    return tuple(written)


@dataclass(frozen=True, kw_only=True)
class ReportPaths:
    """What a report wrote, and the records it left out."""

    json: Path
    markdown: Path
    latex: Path
    csv: Path
    kinds_csv: Path
    figures: tuple[Path, ...]
    unfinished: tuple[Path, ...]

    def written(self) -> tuple[Path, ...]:
        """All files."""
        return (
            self.json, self.markdown, self.latex, self.csv, self.kinds_csv, *self.figures
        )  # fmt: skip


def report(
    folder: str | Path, out: str | Path | None = None, *, console: Console | None = None
) -> ReportPaths:
    """Make all tables and figures of a folder's records, into `out` (default: the folder itself).

    With a console the tables are printed too. Unfinished records are listed and left out."""
    folder = Path(folder)
    records = read_folder(folder)
    unfinished = tuple(record.path for record in records if record.score is None)
    if len(unfinished) == len(records):
        names = ", ".join(path.name for path in unfinished)
        raise RecordError(f"{folder}: every record is unfinished (no score line yet): {names}")
    rows = table(records)
    out = Path(out) if out is not None else folder
    out.mkdir(parents=True, exist_ok=True)
    figures = write_figures(rows, out / "figures")
    linked = [path.relative_to(out) for path in figures]
    texts = {
        "table.json": json_text(rows),
        "table.md": markdown_text(rows, linked, unfinished),
        "table.tex": latex_text(rows),
        "table.csv": csv_text(rows),
        "kinds.csv": kinds_csv_text(rows),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8", newline="\n")
    if console is not None:
        show(rows, console)
        if unfinished:
            names = ", ".join(path.name for path in unfinished)
            console.print(f"unfinished, left out: {names}", style="yellow")
    return ReportPaths(
        json=out / "table.json",
        markdown=out / "table.md",
        latex=out / "table.tex",
        csv=out / "table.csv",
        kinds_csv=out / "kinds.csv",
        figures=figures,
        unfinished=unfinished,
    )

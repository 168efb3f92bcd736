"""The table of metrics: what evaluation sums, what reports show, and what docs/record/definitions.md says.

A metric is a ratio of two sums. Evaluation sums the numerator and the denominator on the device (`measure`), adds
batches of episodes, and divides once at the end (`Ratio.value`). Score lines, tables, captions, CSV, JSON and the page
of definitions read `METRICS`. A new row there is a new metric in all of them. Where reports show the worst seed, larger
must be better: they show the smallest. Section `leak` holds one metric; metrics of held instructions belong to `under`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mavic.evaluation import quantities as q
from mavic.evaluation.quantities import EPISODES, Quantity, Tally

OVERALL = "none"
"""The kind "none". In sections by kind it holds the uninstructed value; in rows, the value over all kinds."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """How tables write a number."""

    percent: bool = False
    digits: int = 2
    sign: bool = False
    """Write signs in intervals and differences, so that a reader sees on which side of 0 they are."""
    worst: bool = False
    """Show the mean and the worst seed instead of the spread and the interval."""


@dataclass(frozen=True, kw_only=True)
class _Section:
    """A section of the score line: the episodes that its numbers come from."""

    instructed: bool = False
    """Instructions come and go by the schedule."""
    greedy: bool = False
    """Always the most likely macro; otherwise macros are sampled."""
    enough: float
    """The least number of episodes per seed; with instructions, the least number of instructions per seed."""
    held: int = 0
    """How many instructions hold from the start of an episode. If any, the section has one entry per kind or pair."""

    @property
    def text(self) -> str:
        """Return in words which episodes these are."""
        if self.held:
            return ("one held instruction", "two held instructions")[self.held - 1]
        greedy = ", greedy" if self.greedy else ""
        return f"{'instructed' if self.instructed else 'uninstructed'}{greedy}"


UNDER = "under"
"""The section of episodes in which one kind holds from the start, played without exploration."""
PAIRS = "pairs"
"""The section of episodes in which two prohibitions hold from start to end. Its kinds are pairs: "KIND+KIND"."""
SECTIONS = {  # D15
    "base": _Section(enough=1024),
    "base_greedy": _Section(greedy=True, enough=1024 / 4),
    "compliance": _Section(instructed=True, enough=2000),
    "compliance_greedy": _Section(instructed=True, greedy=True, enough=2000 / 4),
    "leak": _Section(held=1, enough=256),
    UNDER: _Section(held=1, enough=512),
    PAIRS: _Section(held=2, enough=512),
}
FREE = tuple(name for name, section in SECTIONS.items() if not section.held)
"""The sections whose episodes have no held instruction."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One row of the table of metrics."""

    name: str
    """Its name in reports and CSV files."""
    section: str
    """The section of the score line that holds it, one of SECTIONS."""
    key: str = ""
    """Its name in that section; empty if it is the only metric there."""
    numerator: Quantity
    denominator: Quantity
    title: str
    """The header of its column."""
    caption: str
    """What it is, for the captions of tables: a noun phrase without a full stop."""
    format: Format = Format()
    table: str = ""
    """The table with a column for it, `task` or `compliance`; empty for the columns of the main table."""
    line: str = ""
    """Its name in the tables of `under` and `pairs`, where each cell has one line per metric, and in `table.json`,
    which holds `<line>_mean` and `<line>_min` of each kind. Empty if it is in neither."""
    over_kinds: bool = False
    """`table.json` holds `<name>_mean` and `<name>_min` over kinds and seeds; for `under`, `table.csv` does too."""
    counts: tuple[str, str] | None = None
    """Both sums are counts by kind [C]; the score line keeps them under these names, besides their ratio."""
    per: str = ""
    """Where the score line keeps a number by which reports divide the recorded one, such as `optimum` or
    `base.discounted`. It may differ between seeds or between kinds."""
    episodes: str = ""
    """The section whose episodes it is summed over, if that is not its own."""
    json: str = ""
    """Its key in `table.json`; empty if it is not there."""
    json_spread: bool = False
    """`table.json` holds `<json>_mean`, `_std`, `_min` and `_ci` instead of the mean alone."""
    json_min: bool = False
    """`table.json` also holds `<json>_min`, the worst seed."""
    unless: str = ""
    """Tables show it only where this other metric is unknown, and then in its place."""
    optional: bool = False
    """Older records do not hold it; it is unknown there."""
    if_known: bool = False
    """Tables have its column only if some row has the number."""
    headline: bool = False
    """It belongs in every report."""

    @property
    def by_kind(self) -> bool:
        """Return whether records hold it for each kind of instruction."""
        return self.counts is not None or SECTIONS[self.section].held == 1

    @property
    def overall(self) -> bool:
        """Return whether there is a number that is not split by kind, which `under` and `pairs` do not have."""
        return self.section not in (UNDER, PAIRS)

    def path(self, kind: str = OVERALL) -> tuple[str, ...]:
        """Return where its numbers, one per seed, stand in a score line."""
        middle = (kind,) if SECTIONS[self.section].held else ()
        return (self.section, *middle, *((self.key,) if self.key else ()))


class Ratio(NamedTuple):
    """A metric's two sums, [runs] or, for counts by kind, [runs, C]."""

    numerator: Any
    denominator: Any

    def value(self) -> np.ndarray:
        """Return the metric [runs]; nan where the denominator is 0. Counts [runs, C] are added over kinds."""
        numerator, denominator = (np.asarray(part) for part in self)
        if denominator.ndim > 1:
            numerator, denominator = numerator.sum(-1), denominator.sum(-1)
        unknown = np.full_like(denominator, np.nan)
        return np.divide(numerator, denominator, out=unknown, where=denominator > 0)


def measure(metrics: Iterable[Metric], tally: Tally) -> dict[str, Ratio]:
    """Return the two sums of each of the `metrics` over the episodes of `tally`, by name."""
    return {m.name: Ratio(m.numerator.total(tally), m.denominator.total(tally)) for m in metrics}


def measured(sections: Iterable[str]) -> tuple[Metric, ...]:
    """Return the metrics that are summed for these sections. Rows that read the same entry are summed once."""
    found: dict[tuple[str, str], Metric] = {}
    for metric in METRICS.values():
        if metric.section in sections:
            found.setdefault((metric.section, metric.key), metric)
    return tuple(found.values())


def lines_of(section: str) -> list[Metric]:
    """Return the metrics that the table of `under` or `pairs` shows, in the order of METRICS."""
    return [m for m in METRICS.values() if m.section == section and m.line]


_PERCENT, _SHARE = Format(percent=True), Format(percent=True, digits=1)
# fmt: off
BASE = Metric(
    name="base", section="base", key="discounted", numerator=q.RETURN, denominator=EPISODES,
    title="Base return", caption="the discounted task return of uninstructed episodes",
    json="base", json_spread=True, headline=True,
)
_SOLVED = Metric(
    name="solved", section="base", key="solved", numerator=q.SOLVED, denominator=EPISODES,
    title="Solved", caption="the share of episodes in which the task was completed (≥: the worst seed)",
    format=replace(_SHARE, worst=True), table="task",
)
COMPLIANCE = Metric(
    name="compliance", section="compliance", key="per_instruction", numerator=q.FOLLOWED, denominator=q.GIVEN,
    counts=("followed", "given"), title="Compliance", caption="instructions followed / instructions given",
    format=_PERCENT, json="compliance", json_spread=True, headline=True,
)
LIVE = Metric(
    name="live", section="compliance", key="discounted", numerator=q.RETURN, denominator=EPISODES,
    title="Live return", caption="the discounted task return of episodes with instructions, without penalties",
    table="compliance", optional=True,
)
_UNDER_TASK = Metric(
    name="under_task", section=UNDER, key="task", numerator=q.RETURN, denominator=EPISODES,
    title="Task return", caption="the discounted return of the task alone, without penalties",
    format=Format(digits=1), line="task", optional=True,
)
_UNDER_SOLVED = Metric(
    name="under_solved", section=UNDER, key="solved", numerator=q.SOLVED, denominator=EPISODES,
    title="Solved", caption="the share of episodes in which the task was completed",
    format=_SHARE, line="solved", over_kinds=True, optional=True, headline=True,
)
_UNDER_OBEYED = Metric(
    name="under_obeyed", section=UNDER, key="obeyed", numerator=q.FOLLOWED, denominator=q.GIVEN,
    title="Obeyed", caption="the share of these instructions that was followed to the end",
    format=_SHARE, line="obeyed", over_kinds=True, optional=True, headline=True,
)
_UNDER_TWIN = Metric(
    name="under_twin", section=UNDER, key="twin", numerator=q.TWIN, denominator=q.MACRO_TICKS, title="Twin",
    caption="the share of addressed agents' ticks in which a macro runs that the kind's twin would forbid",
    format=_PERCENT, optional=True,
)
_UNDER_USE = replace(
    _UNDER_TWIN, name="under_use", key="use", numerator=q.USE, title="Use",
    caption="the share of addressed agents' ticks in which a macro runs that the kind names",
)
_ROWS = (
    BASE,
    replace(
        BASE, name="share", per="optimum", title="Share of optimum",
        caption="the base return as a share of the best possible return",
        format=Format(percent=True, worst=True), json="share_of_optimum", json_spread=False,
    ),
    Metric(
        name="undiscounted", section="base", key="undiscounted", numerator=q.UNDISCOUNTED, denominator=EPISODES,
        title="Undiscounted return", caption="the undiscounted task return", table="task",
    ),
    _SOLVED,
    Metric(
        name="length", section="base", key="length", numerator=q.TICKS, denominator=EPISODES,
        title="Length", caption="the length of an episode in ticks", table="task",
    ),
    replace(
        BASE, name="base_greedy", section="base_greedy", title="Greedy return",
        caption="the discounted return when every decision takes the most likely macro",
        table="task", json="", headline=False,
    ),
    COMPLIANCE,
    Metric(
        name="per_decision", section="compliance", key="per_decision",
        numerator=q.ALLOWED_DECISIONS, denominator=q.DECISIONS,
        title="Per decision", caption="the share of addressed agents' decisions that chose an allowed macro",
        format=_PERCENT, table="compliance", json="compliance_per_decision",
    ),
    Metric(
        name="per_step", section="compliance", key="per_step",
        numerator=q.ALLOWED_TICKS, denominator=q.ADDRESSED_TICKS,
        title="Per step", caption="the share of addressed agents' ticks under an allowed macro",
        format=_PERCENT, table="compliance", json="compliance_per_step",
    ),
    Metric(
        name="latency", section="compliance", key="latency",
        numerator=q.WAITING_TICKS, denominator=q.BEGINNINGS, title="Latency",
        caption="the ticks from an instruction's arrival until an addressed agent first chose an allowed macro; all "
        "ticks for which it held if the agent never did",
        table="compliance", optional=True, if_known=True,
    ),
    replace(
        COMPLIANCE, name="compliance_greedy", section="compliance_greedy", title="Greedy",
        caption="instructions followed / given when every decision takes the most likely macro",
        table="compliance", json="compliance_greedy", json_spread=False, headline=False,
    ),
    replace(
        _SOLVED, name="solved_instructed", section="compliance",
        caption="the share of episodes with instructions in which the task was completed",
        format=_SHARE, table="compliance", json="live_solved", json_min=True, optional=True,
    ),
    Metric(
        name="leak", section="leak", numerator=q.VALUE_ERROR, denominator=q.REALISED, title="Value bias (leak)",
        caption="the mean of V − G over decisions without an instruction, as a share of the mean of G",
        format=replace(_SHARE, sign=True), table="compliance", json="leak", headline=True,
    ),
    LIVE,
    replace(
        LIVE, name="live_share", per="base.discounted", title="Of base",
        caption="the live return as a share of the base return",
        format=replace(_SHARE, worst=True), json="live_share", json_min=True,
    ),
    _UNDER_TASK,
    replace(
        _UNDER_TASK, name="under_share", per="optima", title="Of the best obedient plan",
        caption="the task return under the kind as a share of that of the best plan that obeys it",
        format=_SHARE, line="share", over_kinds=True, headline=True,
    ),
    replace(
        _UNDER_TASK, name="under_of_base", per="base.discounted", title="Of base", unless="under_share",
        caption="the task return under the kind as a share of the base return, because no best plan is known",
        format=_SHARE, line="of base",
    ),
    _UNDER_SOLVED,
    _UNDER_OBEYED,
    _UNDER_TWIN,
    replace(
        _UNDER_TWIN, name="twin_uninstructed", key="twin_uninstructed", episodes="base",
        title="Twin, nothing asked", caption="the same share in episodes without instructions",
    ),
    _UNDER_USE,
    replace(
        _UNDER_USE, name="use_uninstructed", key="use_uninstructed", episodes="base",
        title="Use, nothing asked", caption="the same share in episodes without instructions",
    ),
    replace(_UNDER_TASK, name="pairs_task", section=PAIRS),
    replace(_UNDER_SOLVED, name="pairs_solved", section=PAIRS, headline=False),
    replace(
        _UNDER_OBEYED, name="pairs_obeyed", section=PAIRS, numerator=q.FOLLOWED_BOTH, denominator=EPISODES,
        caption="the share of episodes in which both instructions were followed to the end", headline=False,
    ),
)
# fmt: on
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
CURVES = (BASE, COMPLIANCE, LIVE)
"""The metrics that are measured during training too. Older records have no live return there."""

"""The table of metrics: what evaluation sums, what reports show, and what docs/definitions.md says.

A metric is a ratio of two sums. Evaluation sums the numerator and the denominator on the device (`measure`), adds
batches of episodes, and divides once at the end (`divide`). Score lines, tables, CSV, JSON and the page of
definitions read `METRICS`. A new row there is a new metric everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mavic.experiments.quantities import (
    DECISIONS,
    EPISODES,
    FOLLOWED,
    FOLLOWED_BOTH,
    GIVEN,
    MACRO_TICKS,
    RETURN,
    SOLVED,
    TICKS,
    TWIN,
    USE,
    Played,
    Quantity,
    addressed_ticks,
    agents_mean,
    count,
    decides,
)

OVERALL = "none"
"""The kind "none". Sections of held instructions keep the number without an instruction under it. In rows it stands for
the number that is not split by kind."""


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
class Section:
    """A part of the score line: the episodes that its numbers come from."""

    instructed: bool
    greedy: bool
    """Always the most likely macro; otherwise macros are sampled."""
    enough: float
    """The least number of episodes per seed; with instructions, the least number of instructions per seed."""

    @property
    def text(self) -> str:
        """Return in words which episodes these are."""
        return ("instructed" if self.instructed else "uninstructed") + (
            ", greedy" if self.greedy else ""
        )


SECTIONS = {  # D15
    "base": Section(instructed=False, greedy=False, enough=1024),
    "base_greedy": Section(instructed=False, greedy=True, enough=1024 / 4),
    "compliance": Section(instructed=True, greedy=False, enough=2000),
    "compliance_greedy": Section(instructed=True, greedy=True, enough=2000 / 4),
}
UNDER = "under"
"""The section of episodes in which one kind holds from the start, played without exploration."""
PAIRS = "pairs"
"""The section of episodes in which two prohibitions hold from start to end. Its kinds are pairs: "KIND+KIND"."""
HELD = ("leak", UNDER, PAIRS)
"""Sections with one entry per kind, from episodes under what is held."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One row of the table of metrics."""

    name: str
    """Its name in reports and CSV files."""
    section: str
    """The part of the score line that holds it: one of SECTIONS or HELD."""
    key: str = ""
    """Its name in that part; empty if the part holds nothing else."""
    numerator: Quantity
    denominator: Quantity
    title: str
    """The header of its column."""
    caption: str
    """What it is, for the captions of tables: a noun phrase without a full stop."""
    format: Format = Format()
    table: str = ""
    """The table that shows it, `task` or `compliance`; empty for the columns of the main table."""
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
    optional: bool = False
    """Older records do not hold it; it is unknown there."""
    headline: bool = False
    """It belongs in every report."""

    @property
    def by_kind(self) -> bool:
        """Return whether records hold it for each kind of instruction."""
        return self.counts is not None or (self.section in HELD and self.section != PAIRS)

    @property
    def overall(self) -> bool:
        """Return whether there is a number that is not split by kind, which `under` and `pairs` do not have."""
        return self.section not in (UNDER, PAIRS)

    def path(self, kind: str = OVERALL) -> tuple[str, ...]:
        """Return where its numbers, one per seed, stand in a score line."""
        middle = (kind,) if self.section in HELD else ()
        return (self.section, *middle, *((self.key,) if self.key else ()))


class Ratio(NamedTuple):
    """A metric's two sums, [runs] or, for counts by kind, [runs, C]."""

    numerator: Any
    denominator: Any


def measure(metrics: Iterable[Metric], played: Played) -> dict[str, Ratio]:
    """Return the two sums of each metric, by name. It is pure, for use inside a compiled program."""
    return {m.name: Ratio(m.numerator.total(played), m.denominator.total(played)) for m in metrics}


def divide(ratio: Ratio) -> np.ndarray:
    """Return a metric [runs] from its sums; nan where the denominator is 0. Counts [runs, C] are added over kinds."""
    numerator, denominator = (np.asarray(part) for part in ratio)
    if denominator.ndim > 1:
        numerator, denominator = numerator.sum(-1), denominator.sum(-1)
    unknown = np.full_like(denominator, np.nan)
    return np.divide(numerator, denominator, out=unknown, where=denominator > 0)


def measured(sections: Iterable[str]) -> tuple[Metric, ...]:
    """Return the metrics that are summed for these sections. Rows that read the same entry are summed once."""
    found: dict[tuple[str, str], Metric] = {}
    for metric in METRICS.values():
        if metric.section in sections:
            found.setdefault((metric.section, metric.key), metric)
    return tuple(found.values())


def entries(section: str) -> dict[str, Metric]:
    """Return the metrics of a section of the score line by key. A greedy section has those of the sampled one."""
    return {metric.key: metric for metric in measured([section.removesuffix("_greedy")])}


BASE = Metric(
    name="base",
    section="base",
    key="discounted",
    numerator=RETURN,
    denominator=EPISODES,
    title="Base return",
    caption="the discounted task return of uninstructed episodes",
    json="base",
    json_spread=True,
    headline=True,
)
COMPLIANCE = Metric(
    name="compliance",
    section="compliance",
    key="per_instruction",
    numerator=FOLLOWED,
    denominator=GIVEN,
    counts=("followed", "given"),
    title="Compliance",
    caption="instructions followed / instructions given",
    format=Format(percent=True),
    json="compliance",
    json_spread=True,
    headline=True,
)
LIVE = Metric(
    name="live",
    section="compliance",
    key="discounted",
    numerator=RETURN,
    denominator=EPISODES,
    title="Live return",
    caption="the discounted task return of episodes with instructions, without penalties",
    table="compliance",
    optional=True,
)
UNDER_TASK = Metric(
    name="under_task",
    section=UNDER,
    key="task",
    numerator=RETURN,
    denominator=EPISODES,
    title="Task return",
    caption="the discounted return of the task alone, without penalties",
    format=Format(digits=1),
    optional=True,
)
UNDER_TWIN = Metric(
    name="under_twin",
    section=UNDER,
    key="twin",
    numerator=TWIN,
    denominator=MACRO_TICKS,
    title="Twin",
    caption="the share of addressed agents' ticks in which a macro runs that the kind's twin would forbid",
    format=Format(percent=True),
    optional=True,
)
UNDER_USE = replace(
    UNDER_TWIN,
    name="under_use",
    key="use",
    numerator=USE,
    title="Use",
    caption="the share of addressed agents' ticks in which a macro runs that the kind names",
)
_ROWS = (
    BASE,
    replace(
        BASE,
        name="share",
        per="optimum",
        title="Share of optimum",
        caption="the base return as a share of the best possible return",
        format=Format(percent=True, worst=True),
        json="share_of_optimum",
        json_spread=False,
    ),
    Metric(
        name="undiscounted",
        section="base",
        key="undiscounted",
        numerator=Quantity(
            "sum of task rewards", lambda p: (p.rows.task_reward * p.rows.alive).sum()
        ),
        denominator=EPISODES,
        title="Undiscounted return",
        caption="the undiscounted task return",
        table="task",
    ),
    Metric(
        name="solved",
        section="base",
        key="solved",
        numerator=SOLVED,
        denominator=EPISODES,
        title="Solved",
        caption="the share of episodes in which the task was completed (≥: the worst seed)",
        format=Format(percent=True, digits=1, worst=True),
        table="task",
    ),
    Metric(
        name="length",
        section="base",
        key="length",
        numerator=Quantity("ticks", lambda p: count(p.rows.alive)),
        denominator=EPISODES,
        title="Length",
        caption="the length of an episode in ticks",
        table="task",
    ),
    replace(
        BASE,
        name="base_greedy",
        section="base_greedy",
        title="Greedy return",
        caption="the discounted return when every decision takes the most likely macro",
        table="task",
        json="",
        headline=False,
    ),
    COMPLIANCE,
    Metric(
        name="per_decision",
        section="compliance",
        key="per_decision",
        numerator=Quantity(
            "decisions of addressed agents for an allowed macro",
            lambda p: count(decides(p) & p.rows.complied),
        ),
        denominator=DECISIONS,
        title="Per decision",
        caption="the share of addressed agents' decisions that chose an allowed macro",
        format=Format(percent=True),
        table="compliance",
        json="compliance_per_decision",
    ),
    Metric(
        name="per_step",
        section="compliance",
        key="per_step",
        numerator=Quantity(
            "ticks × addressed agents whose running macro is allowed",
            lambda p: count(addressed_ticks(p) & p.rows.complied),
        ),
        denominator=TICKS,
        title="Per step",
        caption="the share of addressed agents' ticks under an allowed macro",
        format=Format(percent=True),
        table="compliance",
        json="compliance_per_step",
    ),
    replace(
        COMPLIANCE,
        name="compliance_greedy",
        section="compliance_greedy",
        title="Greedy",
        caption="instructions followed / given when every decision takes the most likely macro",
        table="compliance",
        json="compliance_greedy",
        json_spread=False,
        headline=False,
    ),
    Metric(
        name="solved_instructed",
        section="compliance",
        key="solved",
        numerator=SOLVED,
        denominator=EPISODES,
        title="Solved",
        caption="the share of episodes with instructions in which the task was completed",
        format=Format(percent=True, digits=1),
        table="compliance",
        json="live_solved",
        json_min=True,
        optional=True,
    ),
    Metric(
        name="leak",
        section="leak",
        numerator=Quantity(
            "mean of V(h, c) − G over decisions and agents", lambda p: agents_mean(p.value_error)
        ),
        denominator=Quantity(
            "absolute mean of G over the same decisions",
            lambda p: jnp.abs(agents_mean(p.realised)),
        ),
        title="Value bias (leak)",
        caption="the mean of V − G over decisions without an instruction, as a share of the mean of G",
        format=Format(percent=True, digits=1, sign=True),
        table="compliance",
        json="leak",
        headline=True,
    ),
    LIVE,
    replace(
        LIVE,
        name="live_share",
        per="base.discounted",
        title="Of base",
        caption="the live return as a share of the base return",
        format=Format(percent=True, digits=1, worst=True),
        json="live_share",
        json_min=True,
    ),
    UNDER_TASK,
    replace(
        UNDER_TASK,
        name="under_share",
        per="optima",
        title="Of the best obedient plan",
        caption="the task return under the kind as a share of that of the best plan that obeys it",
        format=Format(percent=True, digits=1),
        headline=True,
    ),
    Metric(
        name="under_solved",
        section=UNDER,
        key="solved",
        numerator=SOLVED,
        denominator=EPISODES,
        title="Solved",
        caption="the share of episodes in which the task was completed",
        format=Format(percent=True, digits=1),
        optional=True,
        headline=True,
    ),
    Metric(
        name="under_obeyed",
        section=UNDER,
        key="obeyed",
        numerator=FOLLOWED,
        denominator=GIVEN,
        title="Obeyed",
        caption="the share of these instructions that was followed to the end",
        format=Format(percent=True, digits=1),
        optional=True,
        headline=True,
    ),
    UNDER_TWIN,
    replace(
        UNDER_TWIN,
        name="twin_uninstructed",
        key="twin_uninstructed",
        episodes="base",
        title="Twin, nothing asked",
        caption="the same share in episodes without instructions",
    ),
    UNDER_USE,
    replace(
        UNDER_USE,
        name="use_uninstructed",
        key="use_uninstructed",
        episodes="base",
        title="Use, nothing asked",
        caption="the same share in episodes without instructions",
    ),
    replace(UNDER_TASK, name="pairs_task", section=PAIRS),
    Metric(
        name="pairs_solved",
        section=PAIRS,
        key="solved",
        numerator=SOLVED,
        denominator=EPISODES,
        title="Solved",
        caption="the share of episodes in which the task was completed",
        format=Format(percent=True, digits=1),
        optional=True,
    ),
    Metric(
        name="pairs_obeyed",
        section=PAIRS,
        key="obeyed",
        numerator=FOLLOWED_BOTH,
        denominator=EPISODES,
        title="Obeyed",
        caption="the share of episodes in which both instructions were followed to the end",
        format=Format(percent=True, digits=1),
        optional=True,
    ),
)
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
CURVES = (BASE, COMPLIANCE, LIVE)
"""The metrics that are measured during training too. Older records have no live return there."""


def definitions() -> str:
    """Return the table of docs/definitions.md in Markdown, one line per metric."""
    lines = [
        "| metric | episodes | numerator | denominator | score line | `table.json` |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS.values():
        name = f"**{metric.name}**" if metric.headline else metric.name
        denominator = metric.denominator.text
        if metric.per:
            by_kind = ".KIND" if metric.section in HELD else ""
            denominator += f" × `{metric.per}{by_kind}` of the score line"
        section = metric.episodes or metric.section
        held = "two held instructions" if section == PAIRS else "one held instruction"
        played = SECTIONS[section].text if section in SECTIONS else held
        place = ".".join(metric.path("KIND+KIND" if section == PAIRS else "KIND"))
        key = f"`{metric.json}{'_mean' * metric.json_spread}`" if metric.json else ""
        lines.append(
            f"| {name} | {played} | {metric.numerator.text} | {denominator} | `{place}` | {key} |"
        )
    return "\n".join(lines) + "\n"

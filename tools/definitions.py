"""The table of docs/record/definitions.md: one line per metric of `mavic.evaluation.metrics.METRICS`."""

from __future__ import annotations

from pathlib import Path

from mavic.evaluation.metrics import METRICS, PAIRS, SECTIONS, Metric


def markdown(results: Path | None = None, of: str = "") -> str:
    """Return the table in Markdown. The arguments are unused; every block of a page has them."""
    del results, of
    lines = [
        "| metric | episodes | numerator | denominator | score line | `table.json` |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS.values():
        lines.append(f"| {' | '.join(_cells(metric))} |")
    return "\n".join(lines) + "\n"


def _cells(metric: Metric) -> tuple[str, ...]:
    kind = "KIND+KIND" if metric.section == PAIRS else "KIND"
    denominator = metric.denominator.text
    if metric.per:
        by_kind = f".{kind}" if SECTIONS[metric.section].held and "." not in metric.per else ""
        denominator += f" × `{metric.per}{by_kind}` of the score line"
    keys = [f"{metric.json}{'_mean' * metric.json_spread}"] if metric.json else []
    keys += [f"{metric.section}.{kind}.{metric.line.replace(' ', '_')}_mean"] if metric.line else []
    keys += [f"{metric.name}_mean"] if metric.over_kinds else []
    return (
        f"**{metric.name}**" if metric.headline else metric.name,
        SECTIONS[metric.episodes or metric.section].text,
        metric.numerator.text,
        denominator,
        f"`{'.'.join(metric.path(kind))}`",
        ", ".join(f"`{key}`" for key in keys),
    )

"""Remakes the figures of docs/record/theory.md: `python tests/theory/table.py`."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import readings
from readings import READINGS, uninterrupted

from mavic.theory import semi_mdp

INSTANCES = 200
N_STEPS = (1, 5, math.inf)
EXACT = 1e-12
LABELS = {
    "none": "naive",
    "shift": "`shift` (Algorithm 1, line 12)",
    "cut": "`cut` (our default)",
    "literal": "return equation, literally",
    "double": "line 12 and the equation",
    "appendix": "appendix, no bootstrap when an instruction ends",
}


def fixed_points(count: int, arrivals: str, reading: str) -> np.ndarray:
    """Deviation of the fixed point from V_c. `[count, len(N_STEPS)]`"""
    worlds = semi_mdp.worlds(count, arrivals)
    return np.array([[readings.deviation(w, reading, n) for n in N_STEPS] for w in worlds])


def divergent(count: int, arrivals: str, reading: str) -> float:
    """Share of instances whose expected one-step update diverges."""
    worlds = semi_mdp.worlds(count, arrivals)
    return float(np.mean([readings.spectral_radius(w, reading, 1) > 1 for w in worlds]))


def leaks(count: int, arrivals: str, reading: str) -> np.ndarray:
    """Leak of the other classes' errors into a class's target. `[count, len(N_STEPS)]`"""
    worlds = semi_mdp.worlds(count, arrivals)
    return np.array([[readings.leak_of_errors(w, reading, n) for n in N_STEPS] for w in worlds])


def losses(count: int, arrivals: str, reading: str) -> tuple[np.ndarray, np.ndarray]:
    """Shortfall of policy iteration's outcome in M_c, matched and uninterrupted. `[count]` each"""
    matched, unbroken = [], []
    for world in semi_mdp.worlds(count, arrivals):
        kernels = world.kernels()
        policy = semi_mdp.iterate_policy(kernels, READINGS[reading])
        matched.append(kernels.loss(policy))
        unbroken.append(uninterrupted(world).kernels().loss(policy))
    return np.array(matched), np.array(unbroken)


def interruption_gap(count: int, arrivals: str) -> np.ndarray:
    """How far V_c with interruptions is from V_c without any. `[count]`"""
    gaps = []
    for world in semi_mdp.worlds(count, arrivals):
        unbroken = uninterrupted(world).kernels().values(world.policy)
        matched = world.kernels().values(world.policy)
        gaps.append(np.abs(matched - unbroken).max() / np.abs(unbroken).max())
    return np.array(gaps)


def _number(value: float) -> str:
    if abs(value) < EXACT:
        return "<1e-12" if value else "0"
    return f"{value:.2g}"


def _slashed(values: np.ndarray) -> str:
    texts = [_number(v) for v in values]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _table(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def lemma_table(count: int) -> str:
    """Lemma 1: every reading against V_c."""
    lines = []
    for reading, label in LABELS.items():
        line = [label]
        for arrivals in semi_mdp.ARRIVALS:
            found = fixed_points(count, arrivals, reading)
            line.append(f"{_slashed(np.median(found, 0))} (worst {_slashed(found.max(0))})")
        line += [f"{divergent(count, arrivals, reading):.0%}" for arrivals in semi_mdp.ARRIVALS]
        lines.append(line)
    return _table(
        ["reading", "anytime", "boundary", "diverges, anytime", "diverges, boundary"], lines
    )


def leak_table(count: int) -> str:
    """Errors of the other classes in a class's target."""
    return _table(
        ["target", "anytime, n = 1 / 5 / ∞", "boundary, n = 1 / 5 / ∞"],
        [
            [LABELS[r], *(_slashed(leaks(count, a, r).max(0)) for a in semi_mdp.ARRIVALS)]
            for r in ("none", "shift", "cut")
        ],
    )


FAMILIES = {  # chance of a change per tick, and the range of a macro's chance to end per tick
    "rare changes, short macros": (0.05, (0.6, 1.0)),
    "rare changes, macros as above": (0.05, (0.1, 0.6)),
    "changes as above, short macros": (0.15, (0.6, 1.0)),
    "as above, another hundred": (0.15, (0.1, 0.6)),
    "changes as above, long macros": (0.15, (0.02, 0.2)),
    "frequent changes, macros as above": (0.3, (0.1, 0.6)),
}


def family(count: int, change: float, ends: tuple[float, float]) -> list[semi_mdp.SemiMDP]:
    """Worlds with another chance of a change and macros of another length."""
    found = []
    for child in np.random.SeedSequence(0).spawn(count):
        rng = np.random.default_rng(child)
        world = semi_mdp.draw(rng, "anytime")
        macros = rng.uniform(*ends, size=world.ends.shape)
        found.append(dataclasses.replace(world, change=change, ends=macros))
    return found


def family_table(count: int) -> str:
    """Whether shift leaks more than naive depends on the worlds."""
    lines = []
    for name, (change, ends) in FAMILIES.items():
        worlds = family(count // 2, change, ends)
        line = [name]
        by_n = {}
        for n in (5, math.inf):
            by_n[n] = [
                [readings.leak_of_errors(w, r, n) for w in worlds] for r in ("none", "shift")
            ]
            line.append(" / ".join(_number(max(leaks)) for leaks in by_n[n]))
        more = sum(s > a for a, s in zip(*by_n[5], strict=True))
        lines.append([*line, f"{more} of {len(worlds)}"])
    return _table(["worlds", "n = 5", "n = ∞", "`shift` leaks more at n = 5"], lines)


def theorem_table(count: int) -> str:
    """Theorem 1: where policy iteration ends."""
    lines = []
    for reading in ("none", "literal", "shift", "cut"):
        line = [LABELS[reading]]
        for arrivals in semi_mdp.ARRIVALS:
            matched, unbroken = losses(count, arrivals, reading)
            line.append(
                f"{(matched > 1e-9).sum()} of {count} (worst loss {_number(matched.max())})"
            )
            line.append(f"{_number(unbroken.mean())} (worst {_number(unbroken.max())})")
        lines.append(line)
    return _table(
        [
            "reading",
            "anytime: suboptimal",
            "anytime: mean loss uninterrupted",
            "boundary: suboptimal",
            "boundary: mean loss uninterrupted",
        ],
        lines,
    )


def gap_table(count: int) -> str:
    """What interruptions themselves do to the value of one and the same policy."""
    lines = []
    for arrivals in semi_mdp.ARRIVALS:
        gap = interruption_gap(count, arrivals)
        lines.append([arrivals, _number(np.median(gap)), _number(gap.max())])
    return _table(["arrivals", "median", "worst"], lines)


TABLES = (lemma_table, leak_table, family_table, theorem_table, gap_table)


def main() -> None:
    """Print every table of the page."""
    for table in TABLES:
        print(table(INSTANCES), end="\n\n")


if __name__ == "__main__":
    main()

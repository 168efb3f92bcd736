"""Tries a simulator: an episode of random macros, played twice.

Whatever breaks a promise raises a `SimulatorError`. A simulator that does not repeat itself can be used, but results
made with it cannot be repeated, and its states cannot be returned to.
"""

from __future__ import annotations

import numpy as np

from mavic.simulators.description import Description
from mavic.simulators.macro_simulator import MacroSimulator, Row

TICKS = 40
SEED = 20_260_000


def difference(description: Description, ticks: int = TICKS) -> str:
    """Return where two episodes of the same seed and macros differ, as a line; empty if they agree.

    Args:
        description: The world.
        ticks: How many ticks are played at most.
    """
    first, macros = _played(description, ticks, None)
    second, _ = _played(description, ticks, macros)
    for tick, (one, two) in enumerate(zip(first, second, strict=False)):
        if np.array_equal(one, two):
            continue
        rows = [Row(vector, description.sizes) for vector in (one, two)]
        parts = ("observation", "reward", "ended", "over", "events", "available", "facts", "holds")
        part = next(
            name for name in parts if not np.array_equal(*(getattr(row, name) for row in rows))
        )
        whose = ""
        if part in ("observation", "reward", "ended", "available", "holds"):
            both = [getattr(row, part).reshape(len(description.agents), -1) for row in rows]
            agent = int(np.flatnonzero((both[0] != both[1]).any(-1))[0])
            whose = f" of {description.agents[agent]}"
        return (
            f"{description.name} is not deterministic: the {part}{whose} at tick {tick} differs between two episodes "
            f"with seed {SEED} and the same macros; results cannot be repeated"
        )
    return ""


def _played(
    description: Description, ticks: int, macros: list[list[int]] | None
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return the rows of an episode, and the macros [T, N] in it: those that are given, or random ones."""
    simulator, random = MacroSimulator(description), np.random.default_rng(0)
    agents = len(description.agents)
    try:
        rows, chosen = [simulator.reset(SEED)], []
        running = [0] * agents
        for tick in range(ticks):
            row = Row(rows[-1], description.sizes)
            if row.over.any():
                break
            fresh = row.ended > 0
            if macros is None:
                for agent in np.flatnonzero(fresh):
                    running[agent] = int(random.choice(np.flatnonzero(row.available[agent])))
            elif tick < len(macros):
                running = macros[tick]
            else:
                break
            chosen.append(list(running))
            rows.append(simulator.tick(running, fresh.tolist()))
        return rows, chosen
    finally:
        simulator.close()

"""A small random batch with instructions, changes, true ends and cut ends, for comparisons number by number."""

from __future__ import annotations

import numpy as np

from mavic.types import MacroTransitions

KINDS = 3  # none, one that leaves the task on, one that replaces it
EPISODES = ((3, 5), (2, 4, 2), (7,))  # lengths of the episodes in each lane
GAMMA = 0.9


def rows_of(seed: int, agents: int, observation: int, macros: int, phrases: int) -> dict:
    """Return arrays [K, L, N, ...] of macro transitions by name."""
    random = np.random.default_rng(seed)
    length = max(sum(lane) for lane in EPISODES)
    shape = (length, len(EPISODES), agents)
    rows = {
        "observation": random.normal(size=(*shape, observation)),
        "next_observation": random.normal(size=(*shape, observation)),
        "available": random.random((*shape, macros)) < 0.7,
        "last_macro": np.full(shape, -1),
        "macro": random.integers(macros, size=shape),
        "phrases": np.zeros((*shape, agents), int),
        "kind": np.zeros(shape, int),
        "reward": random.normal(scale=3.0, size=shape),
        "discount": GAMMA ** random.integers(1, 5, size=shape),
        "switched": np.zeros(shape, bool),
        "first": np.zeros(shape, bool),
        "last": np.zeros(shape, bool),
        "bootstraps_from_self": np.zeros(shape, bool),
        "time": np.zeros(shape, int),
        "valid": np.zeros(shape, bool),
    }
    for w, lane in enumerate(EPISODES):
        for i in range(agents):
            k = 0
            for episode, steps in enumerate(lane):
                kind = random.integers(KINDS)
                time = -1
                for step in range(steps):
                    at = (k, w, i)
                    time += random.integers(1, 4)
                    rows["time"][at], rows["kind"][at], rows["valid"][at] = time, kind, True
                    rows["first"][at], rows["last"][at] = step == 0, step == steps - 1
                    if kind:
                        rows["phrases"][at] = random.integers(phrases, size=agents)
                        rows["phrases"][at][random.integers(agents)] = 1 + random.integers(
                            phrases - 1
                        )
                    if step < steps - 1 and random.random() < 0.4:
                        rows["switched"][at] = True
                        kind = (kind + 1 + random.integers(KINDS - 1)) % KINDS
                    k += 1
                end = (k - 1, w, i)
                if (episode + w + i) % 2:  # a true end; what replaces the task outlives it
                    rows["bootstraps_from_self"][end] = rows["kind"][end] == 2
                    rows["discount"][end] *= rows["kind"][end] == 2
    taken = np.arange(macros) == rows["macro"][..., None]
    rows["available"] |= taken
    rows["context"] = rows["kind"].copy()
    asked = (rows["kind"] > 0)[..., None]
    rows["forbidden"] = asked & (random.random((*shape, macros)) < 0.4) & ~taken
    return rows


def transitions(rows: dict) -> MacroTransitions:
    """Return the same as the learner's record."""
    return MacroTransitions(
        **{
            name: x.astype(
                np.float32 if x.dtype.kind == "f" else x.dtype if x.dtype == bool else np.int32
            )
            for name, x in rows.items()
        }
    )


def of_agent(rows: dict, agent: int) -> dict:
    """Return one agent's rows [K, L, ...]."""
    return {name: x[:, :, agent] for name, x in rows.items()}

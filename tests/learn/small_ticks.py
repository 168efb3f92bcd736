"""Small random episodes tick by tick, and the team's rows found in them by plain loops."""

from __future__ import annotations

import numpy as np

from mavic.types import Timestep

EPISODES = ((5, 6), (9,))  # ticks of the episodes in each environment
GAMMA = 0.9


def ticks_of(
    seed: int, agents: int = 2, observation: int = 2, macros: int = 3, phrases: int = 3
) -> dict:
    """Return arrays [T, W, ...] by the names of `Timestep`. Macros last one to four ticks. A change of instruction
    ends all of them."""
    random = np.random.default_rng(seed)
    shape = (max(sum(lane) for lane in EPISODES), len(EPISODES))
    wide = (*shape, agents)
    rows = {
        "observation": np.zeros((*wide, observation)),
        "next_observation": random.normal(size=(*wide, observation)),
        "available": np.ones((*wide, macros), bool),
        "forbidden": np.zeros((*wide, macros), bool),
        "last_macro": np.full(wide, -1),
        "macro": np.zeros(wide, int),
        "fresh": np.zeros(wide, bool),
        "kind": np.zeros(wide, int),
        "phrase": np.zeros(wide, int),
        "context": np.zeros(wide, int),
        "reward": random.normal(size=wide),
        "task_reward": np.zeros(shape),
        "complied": np.ones(wide, bool),
        "ended": np.zeros(wide, bool),
        "unfinished": np.zeros(wide, bool),
        "switched": np.zeros(shape, bool),
        "terminal": np.zeros(shape, bool),
        "bootstraps_from_self": np.zeros(wide, bool),
        "truncated": np.zeros(shape, bool),
        "events": np.zeros((*shape, 1)),
        "closed": np.zeros(shape, int),
        "followed": np.zeros(shape, bool),
        "time": np.zeros(shape, int),
        "alive": np.zeros(shape, bool),
    }
    for w, lane in enumerate(EPISODES):
        t = 0
        for number, length in enumerate(lane):
            seen, left = random.normal(size=(agents, observation)), np.zeros(agents, int)
            macro, before = np.full(agents, -1), np.full(agents, -1)
            said = random.integers(phrases, size=agents)
            for clock in range(length):
                over, new = clock == length - 1, left == 0
                before = np.where(new, macro, before)
                macro = np.where(new, random.integers(macros, size=agents), macro)
                left = np.where(new, random.integers(1, 5, size=agents), left) - 1
                switched = not over and random.random() < 0.25
                ended = (left == 0) | switched | over
                at = (t, w)
                for name, value in dict(
                    observation=seen, last_macro=before, macro=macro, fresh=new, phrase=said,
                    kind=(said > 0).astype(int), context=int(said.any()) + (said > 0), ended=ended,
                    unfinished=over & (left > 0), switched=switched, alive=True, time=clock,
                    terminal=over and number == 0, truncated=over and number > 0,
                ).items():  # fmt: skip
                    rows[name][at] = value
                left = np.where(ended, 0, left)
                seen = np.where(ended[:, None], rows["next_observation"][at], seen)
                if switched:
                    said = random.integers(phrases, size=agents)
                t += 1
    return rows


def timestep(rows: dict) -> Timestep:
    """Return the same as the learner's record."""
    kinds = {"f": np.float32, "i": np.int32, "b": bool}
    return Timestep(**{name: x.astype(kinds[x.dtype.kind]) for name, x in rows.items()})


def team_rows(ticks: dict, w: int) -> list[dict]:
    """Return the team's rows of one environment, in order: a row ends when any agent's macro ends."""
    found, start = [], None
    for t in np.flatnonzero(ticks["alive"][:, w]):
        start = t if start is None else start
        if not ticks["ended"][t, w].any():
            continue
        began = [
            max(s for s in range(t + 1) if ticks["fresh"][s, w, i])
            for i in range(ticks["macro"].shape[-1])
        ]
        ended = ticks["ended"][t, w]
        span = range(start, t + 1)
        found.append(
            {
                "start": start,
                "end": t,
                "began": began,
                "seen": ticks["observation"][t, w],
                "received": [ticks["time"][s, w] + 1 for s in began],
                "new": ticks["fresh"][start, w],
                "next_seen": np.where(
                    ended[:, None], ticks["next_observation"][t, w], ticks["observation"][t, w]
                ),
                "next_received": [
                    ticks["time"][t, w] + 2 if ended[i] else ticks["time"][s, w] + 1
                    for i, s in enumerate(began)
                ],
                "next_new": ended,
                "phrase": ticks["phrase"][t, w],
                "reward": sum(GAMMA ** (s - start) * ticks["reward"][s, w].mean() for s in span),
                "discount": 0.0 if ticks["terminal"][t, w] else GAMMA ** len(span),
                "switched": ticks["switched"][t, w],
                "first": ticks["time"][start, w] == 0,
                "last": ticks["terminal"][t, w] or ticks["truncated"][t, w],
            }
        )
        start = None
    return found

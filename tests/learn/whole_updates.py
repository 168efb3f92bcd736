"""Whole updates by the independent computation, stored as data for `test_whole_updates.py`.

    PYTHONPATH=.:tests:tests/learn python tests/learn/whole_updates.py

writes them anew: one update of ACAC (`test_acac.py`), and one of Mac-IAC with layers of the kinds, drills and three
contexts (`test_numbers.py`). Of each it stores the networks before, the rows or ticks, and what every step must find:
targets, values, the scale, and the gradients or Adam's moments of every weight.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import independent as plain
import jax
import numpy as np
import test_acac
import test_numbers

DATA = Path(__file__).parent / "data"
KINDS = "layers of the kinds, drills, three contexts"


def flat(tree: Any, name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a tree of dictionaries by name and path."""
    return {f"{name}{path}": np.asarray(leaf) for path, leaf in plain.leaves(tree).items()}


def tree(arrays: dict[str, np.ndarray], name: str) -> Any:
    """Return the tree again."""
    found: dict[str, Any] = {}
    for path, leaf in arrays.items():
        if not path.startswith(f"{name}/"):
            continue
        *names, last = path.split("/")[1:]
        place = found
        for one in names:
            place = place.setdefault(one, {})
        place[last] = leaf
    return found


def state_of(state: Any) -> dict[str, np.ndarray]:
    nets = {
        name: jax.tree.map(np.asarray, getattr(state, name))
        for name in ("actor", "critic", "target")
    }
    scale = {
        f"scale/{name}": np.asarray(getattr(state.scale, name))
        for name in ("mean", "square", "weight")
    }
    return {**scale, **{k: v for name, net in nets.items() for k, v in flat(net, name).items()}}


def kinds() -> dict[str, np.ndarray]:
    """An update with layers of the kinds."""
    _, state, rows, _, _ = test_numbers.case(KINDS)
    found = {**state_of(state), **{f"rows/{name}": x for name, x in rows.items()}}
    for i in range(test_numbers.AGENTS):
        want = test_numbers.expected(KINDS, i)
        scale = {name: getattr(want["scale"], name) for name in ("mean", "square", "weight")}
        numbers = {name: want[name] for name in ("target", "value", "loss")}
        for name, leaf in {**numbers, **scale}.items():
            found[f"want{i}/{name}"] = leaf
        for role in ("actor", "critic"):
            found |= {f"gradient{i}/{role}{path}": g for path, g in want[role].items()}
    return found


def acac() -> dict[str, np.ndarray]:
    """An update of ACAC with several passes."""
    state, ticks, _ = test_acac.made()
    _, goal, _, stats, critic = test_acac.expected()
    found = {**state_of(state), **{f"ticks/{name}": x for name, x in ticks.items()}}
    found |= {"want/target": goal, "want/square": stats.square}
    found |= {f"moment/critic{path}": m for path, m in critic.first.items()}
    for i in range(test_acac.AGENTS):
        adam, outside = test_acac.expected_actor(i)
        assert outside > 0  # otherwise clipping is not tested
        found |= {f"moment/actor{i}{path}": m for path, m in adam.first.items()}
    return found


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for name, made in (("kinds", kinds), ("acac", acac)):
        np.savez_compressed(DATA / f"{name}.npz", **made())

"""Teams that never learned anything, as policy files: enough to play with, in every world."""

from __future__ import annotations

from pathlib import Path

import jax

from mavic.learn import learner as learning
from mavic.study import session
from mavic.study.experiment import Cell, bench_of
from mavic.study.methods import preset_of


def untrained(folder: Path, world: str, method: str = "mavic", seed: int = 0) -> Path:
    """Write `folder/<world>/<method>` as training would, with first weights."""
    cell = Cell(world=world, method=method)
    preset = preset_of(cell.preset, world)
    bench = bench_of(world)
    fixed = bench.fixed(preset, cell.network)
    learner = learning.init(jax.random.key(seed), fixed)
    trained = session.Trained(
        group=session.Group(cells=(cell,), seeds=(seed,), preset=preset),
        bench=bench,
        fixed=fixed,
        learner=jax.tree.map(lambda leaf: leaf[None], learner),
        curve=[],
        steps_per_second=0.0,
    )
    path = folder / world / method
    path.parent.mkdir(parents=True, exist_ok=True)
    return session.save_policy(path, trained, cell, seed)

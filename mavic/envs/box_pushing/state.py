"""The state of Box Pushing."""

from __future__ import annotations

import jax.numpy as jnp

from mavic.types import Array, record

CELL = jnp.int16  # positions; under `reference` a robot can walk far outside the grid
NOWHERE = -1  # the waypoint before any Go-To has ended


@record
class Robot:
    """One robot. Every leaf is a scalar."""

    x: Array
    y: Array
    heading: Array  # 0 north, 1 east, 2 south, 3 west
    waypoint: Array  # the Go-To that ended last, or NOWHERE; only `reference` updates it


@record
class State:
    """The full state. Every leaf is a scalar."""

    robots: tuple[Robot, Robot]
    small: tuple[Array, Array]  # rows of the small boxes
    big: Array  # row of the big box
    pushing: Array  # bool: both robots are pushing the big box

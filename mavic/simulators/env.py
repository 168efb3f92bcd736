"""The environment of a Python world: it keeps the `Env` protocol, and asks the host for each tick.

The compiled program calls the host once for all environments that play side by side. A state holds the handle of its
simulator (`mavic.simulators.pool`) and what the simulator last returned, so only `reset` and `tick` ask the host.
"""

from __future__ import annotations

import base64
import functools
import struct
import weakref
import zlib
from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic import run_axis
from mavic.simulators.description import Description
from mavic.simulators.macro_simulator import Row
from mavic.simulators.pool import Pool
from mavic.types import Array, ArrayLike, Scene, Sprite, Tick, record, static

_POOLS: weakref.WeakKeyDictionary[Description, Pool] = weakref.WeakKeyDictionary()


def pool_of(description: Description) -> Pool:
    """Return the pool of a world. All environments with the same description share it."""
    if description not in _POOLS:
        _POOLS[description] = Pool(description)
    return _POOLS[description]


@record
class SimulatorState:
    """A state of a simulator: where it is, and what it last returned."""

    handle: Array  # [3] simulator, episode, tick
    row: Array  # [F] as in `mavic.simulators.macro_simulator`


@record
class PythonEnv:
    """A world in plain Python."""

    description: Description = static()

    @property
    def name(self) -> str:
        """The world's id."""
        return self.description.name

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names."""
        return self.description.agents

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros per agent."""
        return self.description.macros

    @property
    def horizon(self) -> int:
        """The ticks after which an episode is cut."""
        return self.description.horizon

    @property
    def horizon_ends(self) -> bool:
        """Whether the horizon is a true end."""
        return self.description.horizon_ends

    @property
    def events(self) -> tuple[str, ...]:
        """The names of events."""
        return self.description.events

    @property
    def preconditions(self) -> tuple[str, ...]:
        """The names of facts that a kind may require."""
        return self.description.preconditions

    @property
    def predicates(self) -> tuple[str, ...]:
        """The names of what may hold of a choice."""
        return self.description.predicates

    @property
    def effects(self) -> tuple[str, ...]:
        """None: an instruction changes nothing in a Python world."""
        return ()

    @property
    def side_by_side(self) -> int | None:
        """How many simulators of one training play at once at most."""
        return self.description.side_by_side

    @property
    def pool(self) -> Pool:
        """The simulators."""
        return pool_of(self.description)

    def reset(self, key: Array) -> SimulatorState:
        """Begin an episode. The simulator's seed comes from the key."""
        return self._ask("reset", _words(key), _lane())

    def restart(self, key: Array, state: SimulatorState, done: Array) -> SimulatorState:
        """Begin an episode where `done` holds, and return the state itself elsewhere."""
        done = done.astype(jnp.int32)[None]
        return self._ask("restart", state.handle, _words(key), done, _lane())

    def tick(
        self, key: Array, state: SimulatorState, macro: Array, fresh: Array, effect: Array
    ) -> Tick:
        """Run one tick. The reward of an episode that fails is nan, and the tick is its last one."""
        del key, effect
        after = self._ask("tick", state.handle, macro.astype(jnp.int32), fresh.astype(jnp.int32))
        row = Row(after.row, self.description.sizes)
        return Tick(
            state=after,
            reward=row.reward,
            ended=row.ended > 0,
            terminal=row.over[0] > 0,
            events=row.events,
            effective_macro=macro.astype(jnp.int32),
            truncated=row.over[1] > 0,
        )

    def check(self, state: SimulatorState) -> Array:
        """Return a bool for each precondition."""
        return Row(state.row, self.description.sizes).facts > 0

    def holds(self, state: SimulatorState) -> Array:
        """Return which predicates hold of each choice, [N, M, Q]."""
        return Row(state.row, self.description.sizes).holds > 0

    def observe(self, state: SimulatorState) -> Array:
        """Return what each agent sees, [N, O]."""
        return Row(state.row, self.description.sizes).observation

    def available(self, state: SimulatorState) -> Array:
        """Return which macros each agent may choose, [N, M]."""
        return Row(state.row, self.description.sizes).available > 0

    def scene(self, state: SimulatorState, macro: ArrayLike) -> Scene:
        """Return a picture: the world's own, an image that the simulator renders, or the agents side by side."""
        del macro
        found = self.pool.picture(np.asarray(state.handle))
        self.pool.raise_error()
        if isinstance(found, Scene):
            return found
        if found is not None:
            return _image(self.name, found)
        colours = ("blue", "orange", "green", "pink", "purple", "sky", "red", "brown")
        robots = tuple(
            Sprite(
                shape="robot", x=i, y=0, label=str(i), colour=colours[i % len(colours)], name=agent
            )
            for i, agent in enumerate(self.agents)
        )
        return Scene(width=len(robots), height=1, sprites=robots)

    def raise_failure(self) -> None:
        """Raise what the simulators cannot go on with, if anything."""
        self.pool.raise_error()

    def simulator_reports(self) -> tuple[list[str], int]:
        """Return lines about what happened since the last call, and how many episodes were dropped."""
        return self.pool.reports()

    def _ask(self, what: str, *words: Array) -> SimulatorState:
        """Ask the pool. All arguments travel as one vector of whole numbers, because each array costs time."""
        sizes = self.description.sizes
        like = (
            jax.ShapeDtypeStruct((3,), jnp.int32),
            jax.ShapeDtypeStruct((sizes.row,), jnp.float32),
        )
        answer = _ANSWERS[what]
        handle, row = jax.pure_callback(
            functools.partial(answer, self.description),
            like,
            jnp.concatenate(words),
            vmap_method="broadcast_all",
        )
        return SimulatorState(handle=handle, row=row)


def _reset(description: Description, words: Any) -> tuple[np.ndarray, np.ndarray]:
    words = np.asarray(words)
    return pool_of(description).reset(words[..., :2], *_lane_of(words[..., 2:]))


def _restart(description: Description, words: Any) -> tuple[np.ndarray, np.ndarray]:
    words = np.asarray(words)
    handles, keys, done = words[..., :3], words[..., 3:5], words[..., 5] > 0
    return pool_of(description).restart(handles, keys, done, *_lane_of(words[..., 6:]))


def _tick(description: Description, words: Any) -> tuple[np.ndarray, np.ndarray]:
    words = np.asarray(words)
    agents = len(description.agents)
    macro, fresh = words[..., 3 : 3 + agents], words[..., 3 + agents :] > 0
    return pool_of(description).tick(words[..., :3], macro, fresh)


_ANSWERS = {"reset": _reset, "restart": _restart, "tick": _tick}


def _lane() -> Array:
    """Return the number of this device, and how many there are."""
    return jnp.stack([jnp.asarray(one, jnp.int32) for one in run_axis.device()])


def _lane_of(words: np.ndarray) -> list[int]:
    """Return the two numbers of `_lane`, which are the same for all simulators of a call."""
    return words.reshape(-1, 2)[0].tolist()


def _words(key: Array) -> Array:
    """Return a random key as two whole numbers."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    return jax.lax.bitcast_convert_type(key, jnp.int32)


def _image(name: str, pixels: np.ndarray) -> Scene:
    """Return a rendered image [H, W, 3] as a scene."""
    height, width = pixels.shape[:2]
    cells = 8.0
    return Scene(
        width=cells, height=cells * height / width, sprites=(), image=_png(pixels), notes=()
    )


def _png(pixels: np.ndarray) -> str:
    """Return an image as a data address of a PNG."""
    pixels = np.ascontiguousarray(pixels[..., :3], np.uint8)
    height, width = pixels.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()

"""Overcooked: cooks chop, blend, cook, plate and deliver, with macros that act on what the cooks remember.

`dynamics="reference"` replays the public environment bit for bit on salad kitchens. `dynamics="paper"` follows the
paper: milestones pay once per episode, a one-tick move interacts with what it meets, and a macro ends when a cook
blocks its way.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked import scripted_cook
from mavic.envs.overcooked.controllers import CONTROLLERS
from mavic.envs.overcooked.grid import NOWHERE, look_up, step_from
from mavic.envs.overcooked.interactions import interact, macro_of_work
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import NO_MACRO, MacroTable, Mode, Primitive, Thing
from mavic.envs.overcooked.memory import remember
from mavic.envs.overcooked.observation import OBSERVE, REFERENCE_TASKS, SLOTS, TASKS
from mavic.envs.overcooked.render import picture
from mavic.envs.overcooked.state import FOODS, PLATES, Event, Place, State
from mavic.hints import suggest
from mavic.types import Array, ArrayLike, Scene, Tick, record, replace, static

DYNAMICS = ("paper", "reference")
MILESTONES = (
    Event.TOMATO_CHOPPED,
    Event.LETTUCE_CHOPPED,
    Event.ONION_CHOPPED,
    Event.BLENDED,
    Event.COOKED,
)
SHAPED = (Event.BOWL_IN_OVEN, Event.PATTY_TAKEN, Event.PATTY_PLATED)
PAID_ONCE = np.isin(np.arange(len(Event)), MILESTONES + SHAPED)


@record
class Overcooked:
    """The environment: a kitchen, a task and its rewards. Rewards are leaves, so a grid of rewards is one `vmap`."""

    map: str = static(default="D")  # the letter of a shipped map, or the path of your own
    task: str = static(default="")  # empty: the patty, or the salad of all three foods
    cooks: int = static(default=2)  # the cooks that choose macros
    third_cook: bool = static(default=False)  # add a scripted cook
    dynamics: str = static(default="paper")
    step: Array | float = -0.1  # every tick
    milestone: Array | float = 10.0  # each chopped, blended and cooked
    delivery: Array | float = 200.0
    wrong_delivery: Array | float = -5.0
    bridges: Array | float = (
        0.0  # shaping reward, for training only: bowl in oven, patty taken, patty plated
    )

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        if self.dynamics not in DYNAMICS:
            raise ValueError(
                f"overcooked: dynamics {self.dynamics!r}; {suggest(str(self.dynamics), DYNAMICS)}"
            )
        if self.task not in ("", *self.tasks):
            where = f"overcooked: map {self.kitchen.name}: task {self.task!r}"
            raise ValueError(f"{where}; {suggest(self.task, self.tasks)}")
        if self.dynamics == "reference" and self.kitchen.patty:
            raise ValueError(
                f"overcooked: map {self.kitchen.name}: dynamics 'reference' has no blender"
            )
        if self.cooks not in (2, SLOTS) or self.cook_count > SLOTS:
            raise ValueError(
                "overcooked: allowed are two cooks, two cooks and a scripted third, or three cooks"
            )
        if self.third_cook and self.dynamics == "reference":
            raise ValueError("overcooked: dynamics 'reference' has no scripted third cook")

    name: ClassVar[str] = "overcooked"
    horizon: ClassVar[int] = 200  # paper, appendix Overcooked
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = tuple(e.name.lower().replace("_", "-") for e in Event)
    preconditions: ClassVar[tuple[str, ...]] = ("plate-1-free", "plate-2-free")
    effects: ClassVar[tuple[str, ...]] = scripted_cook.EFFECTS

    @property
    def kitchen(self) -> Kitchen:
        """The checked map."""
        return Kitchen.load(self.map)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of this kitchen. The last is the default."""
        return TASKS[-1:] if self.kitchen.patty else REFERENCE_TASKS

    @property
    def order(self) -> str:
        """The name of the task."""
        return self.task or self.tasks[-1]

    @property
    def agents(self) -> tuple[str, ...]:
        """The cooks that choose macros."""
        return tuple(f"cook_{k}" for k in range(self.cooks))

    @property
    def cook_count(self) -> int:
        """The number of cooks in the kitchen, a scripted one included."""
        return self.cooks + self.third_cook

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """Every cook has the same enum."""
        return (self._table().enum,) * self.cooks

    def reset(self, key: Array) -> State:
        """Return the only first state, without randomness."""
        del key
        return _first_state(self.kitchen, self.cook_count)

    def tick(self, key: Array, state: State, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one primitive step. `fresh` is not needed, because controllers keep no state of a running macro."""
        del key, fresh
        return self.advance(state, macro, effect)[0]

    @jax.jit  # so that a tick outside a compiled program is fast too
    def advance(self, state: State, macro: Array, effect: Array) -> tuple[Tick, Array]:
        """Run one tick. Also return the primitives [B] that the cooks' macros chose.

        Args:
            state: Before the tick.
            macro: [N] the macro that each cook runs.
            effect: [N] what its instruction changes, as `Env.tick` says.
        """
        table, kitchen = self._table(), self.kitchen
        running = macro.astype(jnp.int32)
        if self.third_cook:
            running = jnp.append(running, scripted_cook.choose(kitchen, table, state, effect))
        controller = CONTROLLERS[self.dynamics]
        steering = controller.steer(kitchen, table, state, running, self.third_cook)
        moved = replace(state, cook=_move_cooks(kitchen, state.cook, steering.primitive))
        moved = replace(moved, chop_pushes=steering.chop_pushes)
        against = step_from(state.cook, steering.primitive)
        after, team, events, named = self._work(moved, against)
        after = remember(kitchen, replace(after, cell=_carried_cells(after)))
        if self.third_cook:
            after = scripted_cook.know_all(after)
        ended = controller.has_ended(kitchen, table, state, after, running, steering.primitive)
        effective_macro = running
        if self.dynamics == "paper":
            one_tick = jnp.asarray(table.mode)[running] == Mode.MOVE
            effective_macro = jnp.where(one_tick & (named != NO_MACRO), named, running)
        tick = Tick(
            state=after,
            reward=jnp.broadcast_to(team, (self.cooks,)),
            ended=(ended | steering.ended)[: self.cooks],
            terminal=events[Event.SOLVED] > 0,
            events=events,
            effective_macro=effective_macro[: self.cooks],
        )
        return tick, steering.primitive

    def check(self, state: State) -> Array:
        """Return [2]: which plates are empty."""
        laden = [jnp.any(state.place == place) for place in (Place.PLATE_1, Place.PLATE_2)]
        return ~jnp.stack(laden)

    @jax.jit
    def observe(self, state: State) -> Array:
        """Return [N, O], what lies in each cook's 5x5 window. The module `observation` describes the layout."""
        return OBSERVE[self.dynamics](self.kitchen, self.order, state, self.cooks)

    def available(self, state: State) -> Array:
        """Return all true [N, M]: every macro is always available."""
        del state
        return jnp.ones((self.cooks, len(self.macros[0])), bool)

    @jax.jit
    def effective_macros(self, state: State) -> Array:
        """Return [N, M], the effective macro of each choice if teammates stay still.

        A one-tick move against a station or thing may do another macro's work. All others count as themselves.
        """
        table, cooks = self._table(), jnp.arange(self.cooks, dtype=jnp.int32)
        mode, primitive = np.asarray(table.mode), np.asarray(table.primitive)
        own = jnp.broadcast_to(jnp.arange(len(mode), dtype=jnp.int32), (self.cooks, len(mode)))
        if self.dynamics != "paper":
            return own
        moves = np.flatnonzero((mode == Mode.MOVE) & (primitive != Primitive.STAY))
        against = jax.vmap(step_from, in_axes=(None, 0), out_axes=1)(
            state.cook[: self.cooks], jnp.asarray(primitive[moves], jnp.int32)
        )
        by_move = jax.vmap(partial(macro_of_work, self.kitchen, table, state), in_axes=(None, 0))
        found = jax.vmap(by_move)(cooks, against)
        found = jnp.where(found == NO_MACRO, jnp.asarray(moves, jnp.int32)[None], found)
        return own.at[:, moves].set(found)

    def scene(self, state: State, macro: ArrayLike) -> Scene:
        """Return a picture of the kitchen. This runs on the host."""
        names = [self.macros[0](int(m)).name for m in np.asarray(macro)[: self.cooks]]
        return picture(self.kitchen, self.order, names, state)

    def _table(self) -> MacroTable:
        """Return what the kitchen's macros do."""
        return MacroTable.of(self.kitchen)

    def _recipe(self) -> np.ndarray:
        """Return bool [3]: the foods that the task needs."""
        foods = ("tomato", "lettuce", self.kitchen.third_food)
        return np.array([food in self.order for food in foods])

    def _prices(self) -> Array:
        """Return [V], what each event pays."""
        chops = (Event.TOMATO_CHOPPED, Event.LETTUCE_CHOPPED, Event.ONION_CHOPPED)
        unwanted = {e for e, wanted in zip(chops, self._recipe(), strict=True) if not wanted}
        worth: dict[Event, Array | float] = dict.fromkeys(Event, 0.0)
        worth |= dict.fromkeys(set(MILESTONES) - unwanted, self.milestone)
        worth |= dict.fromkeys(SHAPED, self.bridges)
        worth |= {Event.SOLVED: self.delivery, Event.WRONG_DELIVERY: self.wrong_delivery}
        return jnp.stack([jnp.asarray(worth[event], float) for event in Event])

    def _work(self, state: State, against: Array) -> tuple[State, Array, Array, Array]:
        """Let the cooks interact in order.

        Return the state, the team's reward, events [V], and the macros [B] that do the same work.
        """
        reference = self.dynamics == "reference"
        once, prices = jnp.asarray(PAID_ONCE & (not reference)), self._prices()
        at_work = partial(interact, self.kitchen, self._recipe(), self._table(), reference)

        def work(so_far: tuple[State, Array], turn: tuple[Array, Array]) -> Any:
            state, reward = so_far
            done = at_work(state, *turn)
            earned = jnp.where(once & state.paid, 0.0, done.events)
            state = replace(done.state, paid=state.paid | (done.events > 0))
            return (state, reward + jnp.sum(prices * earned)), (done.events, done.named)

        turns = (jnp.arange(self.cook_count, dtype=jnp.int32), against)
        start = (state, jnp.asarray(self.step, float))
        # A CPU's compiler would compute an unrolled loop anew in every kernel that reads it, which takes 2.6 times as
        # long. A GPU is faster without a loop.
        loop: Callable = jax.lax.scan
        if jax.default_backend() != "cpu" and not reference:
            loop = _one_by_one
        (state, reward), (events, named) = loop(work, start, turns)
        return state, reward, jnp.sum(events, axis=0), named


def _one_by_one(function: Callable, state: Any, rows: Any) -> tuple[Any, Any]:
    """Return what `jax.lax.scan` returns."""
    found = []
    for i in range(len(jax.tree.leaves(rows)[0])):
        state, made = function(state, jax.tree.map(lambda x: x[i], rows))  # noqa: B023
        found.append(made)
    return state, jax.tree.map(lambda *x: jnp.stack(x), *found)


def _move_cooks(kitchen: Kitchen, cook: Array, primitive: Array) -> Array:
    """Return [B], the cells after all cooks have moved.

    The cook with the lower number goes first. A queue of cooks advances together, and two cooks may swap places.
    """
    number = cook.shape[0]
    wanted = step_from(cook, primitive)
    floor = look_up(kitchen.is_floor(), wanted)

    def go_round(_: Any, so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        cells, done = so_far
        for i in range(number):
            met = (cells == wanted[i]) & (jnp.arange(number) != i) & ~done[i]
            swaps = met & ~done & (wanted == cells[i])
            swap, free = jnp.any(swaps), ~done[i] & ~jnp.any(met)
            settled = free | swap | jnp.any(met & done)
            old = cells[i]
            cells = jnp.where(swaps, old, cells)
            moves = (free & floor[i]) | swap
            own = jnp.arange(number) == i
            cells = jnp.where(own & moves, wanted[i], cells)
            done = done | swaps | (own & settled)
        return cells, done

    start = (cook, wanted == cook)
    if number == 2 and jax.default_backend() != "cpu":
        return go_round(None, go_round(None, start))[0]
    return jax.lax.fori_loop(0, number, go_round, start)[0]


def _first_state(kitchen: Kitchen, cooks: int) -> State:
    """Return the first state: everything at its start, and every cook knows where it is."""
    cook = jnp.asarray(kitchen.starts[:cooks], jnp.int32)
    cell = jnp.asarray((*kitchen.homes, NOWHERE), jnp.int32)
    known = jnp.concatenate([cell, cook])
    return State(
        cook=cook,
        place=jnp.asarray([Place.COUNTER] * len(kitchen.homes) + [Place.NOWHERE], jnp.int32),
        cell=cell,
        chopped=jnp.zeros(FOODS, jnp.int32),
        blended=jnp.int32(0),
        cooked=jnp.int32(0),
        paid=jnp.zeros(len(Event), bool),
        chop_pushes=jnp.zeros(cooks, jnp.int32),
        last_seen=jnp.broadcast_to(known[None], (cooks, known.size)),
        last_seen_patty=jnp.zeros(cooks, bool),
    )


def _carried_cells(state: State) -> Array:
    """Return [6], the cells of all things: what is carried, plated or blended has the cell of its holder."""
    cell, place = state.cell, state.place
    for cook in range(state.cook.shape[0]):
        cell = jnp.where(place == Place.HAND + cook, state.cook[cook], cell)
    for plate, inside in zip(PLATES, (Place.PLATE_1, Place.PLATE_2), strict=True):
        cell = jnp.where(place == inside, cell[plate], cell)
    return jnp.where(place == Place.DISH, cell[Thing.DISH], cell)

"""Overcooked: cooks who chop, blend, cook, plate and deliver, by macros on what they remember.

`rules="reference"` replays the reference on salad kitchens to the bit; `rules="paper"` is the
study's: milestones pay once, the one-tick moves work on what they meet, and a macro ends where its
way is blocked.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked import controllers, partner
from mavic.envs.overcooked.belief import remember
from mavic.envs.overcooked.kitchen import Kitchen, load
from mavic.envs.overcooked.macros import NO_MACRO, MacroTable, Mode, enum_for, table_for
from mavic.envs.overcooked.paths import look_up, step_from
from mavic.envs.overcooked.pushes import push
from mavic.envs.overcooked.render import picture
from mavic.envs.overcooked.sight import (
    REFERENCE_TASKS,
    SLOTS,
    TASKS,
    observe_paper,
    observe_reference,
)
from mavic.envs.overcooked.state import Event, Place, State, first_state, follow
from mavic.hints import suggest
from mavic.types import Array, Scene, Tick, record, replace, static

RULES = ("paper", "reference")
MILESTONES = (
    Event.TOMATO_CHOPPED,
    Event.LETTUCE_CHOPPED,
    Event.ONION_CHOPPED,
    Event.BLENDED,
    Event.COOKED,
)
BRIDGES = (Event.BOWL_IN_OVEN, Event.PATTY_TAKEN, Event.PATTY_PLATED)
ONCE = np.isin(np.arange(len(Event)), MILESTONES + BRIDGES)


@record
class Overcooked:
    """A kitchen, a task and what it pays; rewards are leaves, so a grid of them is one `vmap`."""

    map: str = static(default="D")  # a shipped map's letter, or the path of one's own
    task: str = static(default="")  # default: the patty, or the salad of all three foods
    cooks: int = static(default=2)  # who choose macros
    third_cook: bool = static(default=False)  # a scripted one beside them
    rules: str = static(default="paper")
    step: Array | float = -0.1
    milestone: Array | float = 10.0
    delivery: Array | float = 200.0
    wrong_delivery: Array | float = -5.0
    bridges: Array | float = 0.0  # bowl into oven, patty taken, patty plated; for training only

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.rules not in RULES:
            raise ValueError(f"overcooked: rules {self.rules!r}; {suggest(self.rules, RULES)}")
        if self.task not in ("", *self.tasks):
            where = f"overcooked: map {self.kitchen.name}: task {self.task!r}"
            raise ValueError(f"{where}; {suggest(self.task, self.tasks)}")
        if self.rules == "reference" and self.kitchen.patty:
            raise ValueError(f"overcooked: map {self.kitchen.name}: the reference has no blender")
        if self.cooks not in (2, SLOTS) or self.bodies > SLOTS:
            raise ValueError("overcooked: two cooks and perhaps a scripted third, or three cooks")
        if self.third_cook and self.rules == "reference":
            raise ValueError("overcooked: the reference has no scripted third cook")

    name: ClassVar[str] = "overcooked"
    horizon: ClassVar[int] = 200  # paper, appendix Overcooked
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = tuple(e.name.lower().replace("_", "-") for e in Event)
    conditions: ClassVar[tuple[str, ...]] = ("plate-1-free", "plate-2-free")
    effects: ClassVar[tuple[str, ...]] = partner.EFFECTS

    @property
    def kitchen(self) -> Kitchen:
        """The checked map."""
        return load(self.map)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What can be ordered in this kitchen; the last is the default."""
        return TASKS[-1:] if self.kitchen.patty else REFERENCE_TASKS

    @property
    def order(self) -> str:
        """The task in words."""
        return self.task or self.tasks[-1]

    @property
    def agents(self) -> tuple[str, ...]:
        """The cooks that choose macros."""
        return tuple(f"cook_{k}" for k in range(self.cooks))

    @property
    def bodies(self) -> int:
        """All cooks in the kitchen, the scripted one included."""
        return self.cooks + self.third_cook

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """The same enum for every cook."""
        return (enum_for(self.kitchen),) * self.cooks

    def reset(self, key: Array) -> State:
        """Everything at its start; the kitchen is deterministic."""
        del key
        return first_state(self.kitchen, self.bodies)

    def tick(self, key: Array, state: State, macro: Array, fresh: Array, effect: Array) -> Tick:
        """One primitive step. Controllers keep nothing of a macro: it can be interrupted."""
        del key, fresh
        return self.advance(state, macro, effect)[0]

    @jax.jit  # so that a tick outside of any compiled program is fast too
    def advance(self, state: State, macro: Array, effect: Array) -> tuple[Tick, Array]:
        """One tick, and the primitives [B] by which the cooks carried out their macros."""
        table, known = self._table(), self.kitchen
        running = macro.astype(jnp.int32)
        if self.third_cook:
            running = jnp.append(running, partner.choose(known, table, state, effect))
        paper = self.rules == "paper"
        if paper:
            steering = controllers.steer_paper(known, table, state, running, self.third_cook)
        else:
            steering = controllers.steer_reference(known, table, state, running)
        moved = replace(state, cook=march(known, state.cook, steering.primitive))
        moved = replace(moved, pushes=steering.pushes)
        against = step_from(state.cook, steering.primitive)
        after, team, events, named = self._work(moved, against)
        after = remember(known, replace(after, cell=follow(after)))
        if self.third_cook:
            after = partner.know_all(after)
        if paper:
            ended = controllers.has_ended_paper(
                known, table, state, after, running, steering.primitive
            )
            one_tick = jnp.asarray(table.mode)[running] == Mode.MOVE
            judged = jnp.where(one_tick & (named != NO_MACRO), named, running)
        else:
            ended = controllers.has_ended_reference(known, table, after, running)
            judged = running
        tick = Tick(
            state=after,
            reward=jnp.broadcast_to(team, (self.cooks,)),
            ended=(ended | steering.ended)[: self.cooks],
            terminal=events[Event.SOLVED] > 0,
            events=events,
            judged=judged[: self.cooks],
        )
        return tick, steering.primitive

    def check(self, state: State) -> Array:
        """The plates that carry nothing."""
        laden = [jnp.any(state.place == place) for place in (Place.PLATE_1, Place.PLATE_2)]
        return ~jnp.stack(laden)

    @jax.jit
    def observe(self, state: State) -> Array:
        """[N, O] what lies in each cook's 5x5 window; `sight` says in which order."""
        look = observe_paper if self.rules == "paper" else observe_reference
        return look(self.kitchen, self.order, state, self.cooks)

    def available(self, state: State) -> Array:
        """Everything, always."""
        del state
        return jnp.ones((self.cooks, len(self.macros[0])), bool)

    def scene(self, state: State, macro: Array) -> Scene:
        """A picture of the kitchen (on the host)."""
        return picture(self, state, macro)

    def _table(self) -> MacroTable:
        return table_for(enum_for(self.kitchen))

    def _recipe(self) -> np.ndarray:
        foods = ("tomato", "lettuce", self.kitchen.third_food)
        return np.array([food in self.order for food in foods])

    def _prices(self) -> Array:
        """[V] what each event pays."""
        chops = (Event.TOMATO_CHOPPED, Event.LETTUCE_CHOPPED, Event.ONION_CHOPPED)
        unwanted = {e for e, wanted in zip(chops, self._recipe(), strict=True) if not wanted}
        worth: dict[Event, Array | float] = dict.fromkeys(Event, 0.0)
        worth |= dict.fromkeys(set(MILESTONES) - unwanted, self.milestone)
        worth |= dict.fromkeys(BRIDGES, self.bridges)
        worth |= {Event.SOLVED: self.delivery, Event.WRONG_DELIVERY: self.wrong_delivery}
        return jnp.stack([jnp.asarray(worth[event], float) for event in Event])

    def _work(self, state: State, against: Array) -> tuple[State, Array, Array, Array]:
        """The cooks' pushes in order: state, team reward, events [V], macros that name them [B]."""
        reference = self.rules == "reference"
        once, prices = jnp.asarray(ONCE & (not reference)), self._prices()
        at_work = partial(push, self.kitchen, self._recipe(), self._table(), reference)

        def work(so_far: tuple[State, Array], turn: tuple[Array, Array]) -> Any:
            state, reward = so_far
            done = at_work(state, *turn)
            earned = jnp.where(once & state.paid, 0.0, done.events)
            state = replace(done.state, paid=state.paid | (done.events > 0))
            return (state, reward + jnp.sum(prices * earned)), (done.events, done.named)

        turns = (jnp.arange(self.bodies, dtype=jnp.int32), against)
        start = (state, jnp.asarray(self.step, float))
        unroll = 1 if reference else self.bodies  # a loop compiles faster, unrolled it runs faster
        (state, reward), (events, named) = jax.lax.scan(work, start, turns, unroll=unroll)
        return state, reward, jnp.sum(events, axis=0), named


def march(kitchen: Kitchen, cook: Array, primitive: Array) -> Array:
    """[B] cells after all have moved: first come first, queues advance, two may swap places."""
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
            cells = cells.at[i].set(jnp.where(moves, wanted[i], old))
            done = (done | swaps).at[i].set(done[i] | settled)
        return cells, done

    start = (cook, wanted == cook)
    return jax.lax.fori_loop(0, number, go_round, start, unroll=number == 2)[0]

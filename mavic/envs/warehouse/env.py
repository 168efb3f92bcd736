"""Warehouse Tool Delivery: two Turtlebots carry the tools that a Fetch robot finds to people at work.

There are two dynamics. `reference` replays the public Warehouse-A bit for bit. `paper`, the default, follows the
paper's description where it is consistent. Under `paper` a driving Turtlebot is at no place, each wait at the table
has its full length, a Look that cannot find its tool ends at once, a failed pass puts the tool back on its shelf, and
Turtlebots and Fetch see what people have received. In the code the two differ wherever `self.follows_paper` is read.

Axes beside the usual ones: `B` Turtlebots (2), `P` people, `K` tools, `H` hand-over spots (2).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.warehouse import macros, render
from mavic.envs.warehouse.state import EMPTY, State
from mavic.hints import suggest
from mavic.types import Array, ArrayLike, Scene, Tick, record, replace, static

DYNAMICS = ("paper", "reference")
SPOTS = 2  # hand-over spots beside Fetch


def _pick(index: Array, values: Sequence[float | Array] | Array) -> Array:
    """Return `values[index]` by comparison. A gather would prevent vectorisation over environments."""
    return reduce(
        lambda rest, item: jnp.where(index == item[0], item[1], rest),
        list(enumerate(values))[1:],
        jnp.broadcast_to(jnp.asarray(values[0]), index.shape),
    )


def _one_hot(index: Array, size: int) -> Array:
    """Return a bool one-hot on a new last axis. An index out of range is all false."""
    axis = jnp.arange(size).reshape((1,) * index.ndim + (size,))
    return index[..., None] == axis


@record
class Warehouse:
    """The environment. Each person needs every tool once. Rewards and durations are leaves."""

    dynamics: str = static(default="paper")
    people: int = static(default=2)
    tools: int = static(default=3)
    noise: float = static(
        default=0.0
    )  # standard deviation of a move in metres; static, so that 0 adds no work
    delivery: float | Array = 100.0  # for each tool delivered
    delay: float | Array = -20.0  # for a tool delivered after its step's time is over
    drop: float | Array = -10.0  # for a failed pass
    tick_cost: float | Array = -1.0  # every tick
    speed: float | Array = 0.8  # metres per tick
    look: float | Array = 6.0  # ticks, at least 2
    hand_over: float | Array = 4.0  # ticks of a pass, at least 2
    # Ticks of each assembly step: [≥ K+1] for all people, or [P, ≥ K+1]. The default is a tuple, which can be hashed.
    step_times: tuple | np.ndarray | Array = (27.0,) + (20.0,) * macros.MOST_TOOLS

    def __post_init__(self) -> None:
        """Refuse unknown dynamics and impossible numbers of people and tools."""
        if self.dynamics not in DYNAMICS:
            raise ValueError(
                f"warehouse: dynamics {self.dynamics!r}; {suggest(str(self.dynamics), DYNAMICS)}"
            )
        if not 1 <= self.people <= macros.MOST_PEOPLE:
            raise ValueError(
                f"warehouse: people must be 1 to {macros.MOST_PEOPLE}, not {self.people}"
            )
        if not 1 <= self.tools <= macros.MOST_TOOLS:
            raise ValueError(f"warehouse: tools must be 1 to {macros.MOST_TOOLS}, not {self.tools}")

    @property
    def follows_paper(self) -> bool:
        """Whether the dynamics are the paper's rather than the reference's."""
        return self.dynamics == "paper"

    @property
    def name(self) -> str:
        """The world's id."""
        return "warehouse"

    @property
    def agents(self) -> tuple[str, ...]:
        """Two Turtlebots, which carry tools, and Fetch, which finds them."""
        return ("turtlebot_0", "turtlebot_1", "fetch")

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """The Turtlebots drive and wait; Fetch looks for tools and passes them."""
        return macros.macros_of(self.people, self.tools)

    @property
    def horizon(self) -> int:
        """200 ticks, as in the paper."""
        return 200

    @property
    def horizon_ends(self) -> bool:
        """The return is not discounted, so the horizon is a true end."""
        return True

    @property
    def events(self) -> tuple[str, ...]:
        """The task is done, each tool delivered, a late delivery, a failed pass."""
        delivered = (f"delivered-tool-{tool}" for tool in range(self.tools))
        return ("solved", *delivered, "late", "failed-pass")

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Two facts per tool: it is wanted, and it can be the next one to be delivered.

        A tool is wanted while some person lacks it; it can then still be brought, because tools are never lost. It
        can be first unless a tool that was already found may be handed over before it: one that is asked for by a
        person who already has the tool in question.
        """
        return tuple(
            f"tool-{t}-{what}" for what in ("wanted", "can-be-first") for t in range(self.tools)
        )

    @property
    def effects(self) -> tuple[str, ...]:
        """One per tool: each person who lacks the tool asks for it first. Only Fetch's entry is read."""
        return tuple(f"request-tool-{tool}" for tool in range(self.tools))

    @property
    def copies(self) -> int:
        """The number of copies of each tool: one per person."""
        return self.people

    def reset(self, key: Array) -> State:
        """Return the first state: robots at their starts, all tools on the shelves, all people at the first step."""
        people, tools, bots = self.people, self.tools, macros.TURTLEBOTS
        return State(
            xy=jnp.asarray(macros.START),
            place=jnp.full(bots, people + 2, jnp.int32),
            timer=jnp.zeros(bots),
            basket=jnp.zeros((bots, tools), jnp.int32),
            seen=jnp.zeros((bots, tools), bool),
            busy=jnp.zeros(()),
            doomed=jnp.zeros((), bool),
            staged=jnp.full(SPOTS, EMPTY, jnp.int32),
            shelf=jnp.full(tools, self.copies, jnp.int32),
            step=jnp.zeros(people, jnp.int32),
            left=self._times()[:, 0] * jnp.ones(people),
            served=jnp.zeros(people, bool),
            received=jnp.zeros((people, tools), bool),
        )

    def tick(self, key: Array, state: State, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one tick in the order of the reference: Turtlebots drive and deliver, Fetch works, people work."""
        bots = macros.TURTLEBOTS
        state, ended = self._drive(key, state, macro[:bots], fresh[:bots])
        state, handed = self._deliver(state, macro[:bots], effect[bots])
        state, fetch_ended, released, failed = self._fetch(state, macro, fresh[bots])
        delivered = handed.sum((0, 1))
        late = (handed.any(2) & (state.left <= 0)[None]).sum()
        terminal = state.received.all()
        state = self._remember(self._work(state))
        earned = self.delivery * delivered.sum() + self.delay * late + self.drop * failed
        reward = jnp.broadcast_to(self.tick_cost + earned, macro.shape)
        return Tick(
            state=state,
            reward=reward,
            ended=jnp.append(ended | released, fetch_ended),
            terminal=terminal,
            events=jnp.stack([terminal, *delivered, late, failed]).astype(reward.dtype),
            effective_macro=macro,
        )

    def check(self, state: State) -> Array:
        """Return [2 K]: which tools are wanted, and which of them can be the next to be delivered."""
        wanted = ~state.received.all(0)
        staged = _one_hot(state.staged, self.tools).any(0)
        found = (state.basket > 0).any(0) | staged
        served_next = (self._requests(state.received, jnp.int32(0)) & found[None]).any(1)  # [P]
        return jnp.concatenate([wanted, wanted & ~(state.received & served_next[:, None]).any(0)])

    def observe(self, state: State) -> Array:
        """Return [N, O], what each robot sees, padded with zeros.

        A Turtlebot sees its place (one-hot over work areas, tool room, table, none). Beside a person it sees that
        person's step (one-hot) and, under `paper`, the tools that the person has received. It sees its basket, and
        outside the work areas whether one or two tools are staged. Fetch sees the number of staged copies of each
        tool and which Turtlebots are at the table. Under `paper` it also sees, for each Turtlebot at the table, the
        tools that the person it visited last had received by then.
        """
        people, tools = self.people, self.tools
        place = _one_hot(state.place, people + 3)  # [B, P+3]
        beside = place[:, :people, None]  # [B, P, 1]
        step = beside & _one_hot(state.step, tools + 1)[None]
        staged = (state.staged != EMPTY).sum()
        ready = (state.place >= people)[:, None] & _one_hot(staged - 1, SPOTS)[None]
        carrier = [
            place,
            *([step, beside & state.received[None]] if self.follows_paper else [step]),
        ]
        carrier += [state.basket, ready]
        # By position, because the waypoint that the reference remembers is out of date while driving.
        at_table = (state.xy == jnp.asarray(macros.TABLE, state.xy.dtype)).all(1)
        counts = _one_hot(state.staged, tools).sum(0)
        known = state.seen & at_table[:, None]
        searcher = [counts, at_table, *([known.reshape(-1)] if self.follows_paper else [])]
        bots = jnp.concatenate(
            [part.reshape(macros.TURTLEBOTS, -1).astype(jnp.float32) for part in carrier], axis=1
        )
        fetch = jnp.concatenate([part.astype(jnp.float32) for part in searcher])
        longest = max(bots.shape[1], fetch.shape[0])
        bots = jnp.pad(bots, ((0, 0), (0, longest - bots.shape[1])))
        return jnp.concatenate([bots, jnp.pad(fetch, (0, longest - fetch.shape[0]))[None]])

    def available(self, state: State) -> Array:
        """Return [N, M]: an agent may always choose any macro it has."""
        most = max(len(macros) for macros in self.macros)
        return jnp.asarray([[i < len(macros) for i in range(most)] for macros in self.macros])

    def scene(self, state: State, macro: ArrayLike) -> Scene:
        """Return a picture of the room from above. This runs on the host."""
        return render.picture(self, state, macro)

    def _times(self) -> Array:
        """Return [P, K+1], the ticks of each person's assembly steps."""
        return jnp.broadcast_to(
            jnp.asarray(self.step_times)[..., : self.tools + 1], (self.people, self.tools + 1)
        )

    def _waypoints(self, bot: int) -> tuple[tuple[float, float], ...]:
        """Return the position that each of a Turtlebot's macros drives to, in the order of the macros."""
        return (*macros.WORK_AREAS[: self.people], macros.TOOL_ROOM, macros.TABLE[bot])

    def _drive(self, key: Array, state: State, macro: Array, fresh: Array) -> tuple[State, Array]:
        """Move the Turtlebots towards their waypoints, or let them wait at the table. Also return ended [B]."""
        ways = [self._waypoints(bot) for bot in range(macros.TURTLEBOTS)]
        goal = jnp.stack(
            [
                jnp.stack([_pick(macro[bot], [way[axis] for way in ways[bot]]) for axis in (0, 1)])
                for bot in range(macros.TURTLEBOTS)
            ]
        ).astype(state.xy.dtype)
        gap = goal - state.xy
        distance = (
            jnp.round(jnp.sqrt((gap * gap).sum(1)) * 100) / 100
        )  # rounded to centimetres, as in the reference
        timer = state.timer
        if self.follows_paper:  # under `reference`, a wait after a time-out begins at 1
            timer = jnp.where(fresh, jnp.maximum(timer, 0), timer)
        near = distance <= self.speed
        arriving = near & (timer > 0)
        getting = macro == self.people + 1
        waiting = near & getting & ~arriving  # the tick of arrival does not count as waiting
        timer = jnp.where(near, jnp.where(arriving, 0, timer), distance - self.speed) - waiting
        given_up = waiting & (timer <= -(self.look + self.hand_over))
        move = (self.speed / jnp.maximum(distance, self.speed))[:, None] * gap
        if self.noise:
            move = move + self.noise * jax.random.normal(key, gap.shape, gap.dtype)
        moved = state.xy + move
        if self.noise:
            moved = jnp.clip(moved, 0, jnp.asarray([macros.ROOM]))
        # A driving Turtlebot is at no place. Under `reference` it keeps its last waypoint.
        away = self.people + 2 if self.follows_paper else state.place
        state = replace(
            state,
            xy=jnp.where(near[:, None], goal, moved),
            place=jnp.where(near, macro, away),
            timer=jnp.where(given_up, -1, timer),
        )
        return state, (near & ~getting) | given_up

    def _requests(self, received: Array, effect: Array) -> Array:
        """Return bool [P, K], the one tool that each person asks for; none if the person has all."""
        lacked = ~received
        lowest = lacked & (jnp.cumsum(lacked, 1) == 1)
        asked = _one_hot(effect - 1, self.tools)[None]
        heard = (lacked & asked).any(1, keepdims=True)
        return jnp.where(heard, lacked & asked, lowest)

    def _deliver(self, state: State, macro: Array, effect: Array) -> tuple[State, Array]:
        """Let each Turtlebot hand the person beside it the tool that person asks for. Also return handed [B, P, K]."""
        beside = (macro == state.place)[:, None] & _one_hot(macro, self.people)  # [B, P]
        wanted = self._requests(state.received, effect) & ~state.served[:, None]
        handed = beside[:, :, None] & wanted[None] & (state.basket > 0)[:, None, :]
        first, second = handed[0], handed[1] & ~handed[0].any(1, keepdims=True)
        handed = jnp.stack([first, second])
        given = first | second
        state = replace(
            state,
            basket=state.basket - handed.any(1),
            received=state.received | given,
            served=state.served | given.any(1),
        )
        return state, handed

    def _fetch(self, state: State, macro: Array, fresh: Array) -> tuple[State, Array, Array, Array]:
        """Run Fetch's macro. Also return whether it ended, whose wait [B] a pass ended, and whether a pass failed."""
        own = macro[macros.TURTLEBOTS]
        target = _one_hot(own - macros.PASS, macros.TURTLEBOTS)  # [B]
        sought = _one_hot(own - macros.LOOK, self.tools)  # [K]
        passing, looking = target.any(), sought.any()
        full = state.staged[-1] != EMPTY
        findable = ~full & (sought & (state.shelf > 0)).any()

        cost = jnp.where(passing, self.hand_over, jnp.where(looking, self.look, 1))
        if self.follows_paper:
            cost = jnp.where(looking & ~findable, 1, cost)
        busy = jnp.where(fresh, cost, state.busy) - 1
        finishing = ~fresh & (busy <= 0)
        ended = finishing | (fresh & (busy <= 0))

        ready = target & (state.place == self.people + 1) & (state.timer <= -1)
        doomed = jnp.where(fresh, passing & ~ready.any(), state.doomed)
        getting = target & (state.timer < 0) & (macro[: macros.TURTLEBOTS] == self.people + 1)
        released = finishing & ~doomed & getting
        failed = finishing & passing & ~released.any()

        front = _one_hot(state.staged[0], self.tools)
        dropped = failed & self.follows_paper
        found = finishing & findable
        gone = released.any() | dropped
        spot_0, spot_1 = state.staged[0], state.staged[1]
        tool = own - macros.LOOK
        state = replace(
            state,
            timer=jnp.where(released, 0, state.timer),
            basket=state.basket + (released[:, None] & front[None]),
            busy=busy,
            doomed=doomed & ~finishing,
            staged=jnp.stack(
                [
                    jnp.where(gone, spot_1, jnp.where(found & (spot_0 == EMPTY), tool, spot_0)),
                    jnp.where(gone, EMPTY, jnp.where(found & (spot_0 != EMPTY), tool, spot_1)),
                ]
            ),
            shelf=state.shelf - (found & sought) + (dropped & front),
        )
        return state, ended, released, failed

    def _work(self, state: State) -> State:
        """Let people work. A person whose step is over and whose tool is there goes on to the next step."""
        last = self.tools
        left = state.left - ~((state.step == last) & (state.left <= 0))
        advancing = state.served & (left <= 0) & (state.step < last)
        step = state.step + advancing
        times = self._times()
        return replace(
            state,
            step=step,
            left=jnp.where(advancing, _pick(step, list(times.T)), left),
            served=state.served & (~advancing | (step == last)),
        )

    def _remember(self, state: State) -> State:
        """Let each Turtlebot beside a person remember what that person has received."""
        beside = _one_hot(state.place, self.people)  # [B, P]
        now = (beside[:, :, None] & state.received[None]).any(1)
        return replace(state, seen=jnp.where(beside.any(1)[:, None], now, state.seen))

"""The rules of Warehouse Tool Delivery, one tick at a time.

`reference` is the public Warehouse-A to the bit; `paper`, the default, is what the paper describes
where that is sane. They differ where `self.paper` stands below: a driving Turtlebot is at no place,
each wait at the table has its full length, a Look that can find nothing ends at once, a failed pass
puts the tool back on its shelf, and Turtlebots and Fetch see what people have received.

Axes beside the usual ones: `B` Turtlebots (2), `P` people, `K` tools, `H` = 2 hand-over spots.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.warehouse import macros, render
from mavic.types import Array, Scene, Tick, record, replace, static

RULES = ("paper", "reference")
SPOTS = 2  # hand-over spots
EMPTY = -1  # nothing on a hand-over spot


@record
class State:
    """Everything the world remembers; a boundary of an instruction never changes it."""

    xy: Array  # [B, 2] metres
    place: Array  # [B] waypoint (numbered as the macro that goes there), or P + 2: at none
    timer: Array  # [B] > 0: metres left after the last move; < 0: ticks waited at the table
    basket: Array  # [B, K] how many of each tool
    seen: Array  # [B, K] tools the person visited last had received when the Turtlebot was there
    busy: Array  # [] ticks that Fetch's macro still needs
    doomed: Array  # [] the running pass found its Turtlebot not ready and will fail
    staged: Array  # [H] tools on the hand-over spots, front first
    shelf: Array  # [K] copies not yet found
    step: Array  # [P] completed steps of the assembly
    left: Array  # [P] ticks left of the present step, ≤ 0 while waiting for its tool
    served: Array  # [P] this step's tool is in hand
    received: Array  # [P, K]


def _pick(index: Array, values: Sequence[float] | Array) -> Array:
    """`values[index]` by comparison: a gather would keep the lanes from being vectorised."""
    return reduce(
        lambda rest, item: jnp.where(index == item[0], item[1], rest),
        list(enumerate(values))[1:],
        jnp.broadcast_to(jnp.asarray(values[0]), index.shape),
    )


def _one_hot(index: Array, size: int) -> Array:
    """Bool, one axis more; an index outside is nowhere."""
    axis = jnp.arange(size).reshape((1,) * index.ndim + (size,))
    return index[..., None] == axis


@record
class Warehouse:
    """Two Turtlebots carry what Fetch finds to people who each need every tool once."""

    rules: str = static(default="paper")
    people: int = static(default=2)
    tools: int = static(default=3)
    noise: float = static(default=0.0)  # of a move, in metres; static, so that none costs nothing
    delivery: float | Array = 100.0
    delay: float | Array = -20.0  # for a tool that comes when its step's time is over
    drop: float | Array = -10.0  # for a failed pass
    tick_cost: float | Array = -1.0
    speed: float | Array = 0.8  # metres a tick
    look: float | Array = 6.0  # ticks, at least 2
    hand_over: float | Array = 4.0  # ticks of a pass, at least 2
    # Ticks of each assembly step, [≥ K+1] for everybody or [P, ≥ K+1]; a tuple can be hashed.
    step_times: tuple | np.ndarray | Array = (27.0,) + (20.0,) * macros.MOST_TOOLS

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise ValueError(f"rules {self.rules!r} are unknown; allowed: {', '.join(RULES)}")
        if not 1 <= self.people <= macros.MOST_PEOPLE:
            raise ValueError(f"people must be 1 to {macros.MOST_PEOPLE}, not {self.people}")
        if not 1 <= self.tools <= macros.MOST_TOOLS:
            raise ValueError(f"tools must be 1 to {macros.MOST_TOOLS}, not {self.tools}")

    @property
    def paper(self) -> bool:
        """Whether the paper's rules hold rather than the reference's."""
        return self.rules == "paper"

    @property
    def name(self) -> str:
        """World id."""
        return "warehouse"

    @property
    def agents(self) -> tuple[str, ...]:
        """Two carriers and one searcher."""
        return ("turtlebot_0", "turtlebot_1", "fetch")

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """Turtlebots drive, Fetch searches and hands over."""
        turtlebot = macros.turtlebot_macros(self.people)
        return (turtlebot, turtlebot, macros.fetch_macros(self.tools))

    @property
    def horizon(self) -> int:
        """The paper's 200 ticks."""
        return 200

    @property
    def horizon_ends(self) -> bool:
        """Undiscounted, so the horizon is a true end."""
        return True

    @property
    def events(self) -> tuple[str, ...]:
        """Done, a delivery of each tool, a late delivery, a failed pass."""
        delivered = (f"delivered-tool-{tool}" for tool in range(self.tools))
        return ("solved", *delivered, "late", "failed-pass")

    @property
    def conditions(self) -> tuple[str, ...]:
        """Somebody lacks the tool (tools are never lost, so it can then still be brought); and besides, Fetch can see
        to it that no other is delivered before: nothing already found is what someone who has it asks for."""
        return tuple(
            f"tool-{t}-{what}" for what in ("wanted", "can-be-first") for t in range(self.tools)
        )

    @property
    def effects(self) -> tuple[str, ...]:
        """Everybody who lacks the tool asks for it first. Read from Fetch's entry alone."""
        return tuple(f"request-tool-{tool}" for tool in range(self.tools))

    @property
    def copies(self) -> int:
        """Of each tool there is one for everybody."""
        return self.people

    def reset(self, key: Array) -> State:
        """Robots at their starts, everything on the shelves, everybody at the first step."""
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
        """Turtlebots drive and deliver, Fetch works, people work: in the reference's order."""
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
            judged=macro,
        )

    def check(self, state: State) -> Array:
        """Which tools somebody still lacks, and which of them can still be the next to be delivered."""
        wanted = ~state.received.all(0)
        staged = _one_hot(state.staged, self.tools).any(0)
        found = (state.basket > 0).any(0) | staged
        served_next = (self._requests(state.received, jnp.int32(0)) & found).any(1)  # [P]
        return jnp.concatenate([wanted, wanted & ~(state.received & served_next[:, None]).any(0)])

    def observe(self, state: State) -> Array:
        """What each robot sees, padded with zeros.

        A Turtlebot: one-hot place (work areas, tool room, table, none); of each person, if it is
        there, the one-hot step and, under `paper`, the received set; its basket; whether one or two
        tools are staged, unless it is in a work area. Fetch: counts of the staged tools; which
        Turtlebots are at the table; under `paper`, for each of those, what the person it visited
        last had received then.
        """
        people, tools = self.people, self.tools
        place = _one_hot(state.place, people + 3)  # [B, P+3]
        beside = place[:, :people, None]  # [B, P, 1]
        step = beside & _one_hot(state.step, tools + 1)[None]
        staged = (state.staged != EMPTY).sum()
        ready = (state.place >= people)[:, None] & _one_hot(staged - 1, SPOTS)[None]
        carrier = [place, *([step, beside & state.received[None]] if self.paper else [step])]
        carrier += [state.basket, ready]
        # By position: the reference's remembered waypoint is out of date while driving.
        at_table = (state.xy == jnp.asarray(macros.TABLE, state.xy.dtype)).all(1)
        counts = _one_hot(state.staged, tools).sum(0)
        known = state.seen & at_table[:, None]
        searcher = [counts, at_table, *([known.reshape(-1)] if self.paper else [])]
        bots = jnp.concatenate(
            [part.reshape(macros.TURTLEBOTS, -1).astype(jnp.float32) for part in carrier], axis=1
        )
        fetch = jnp.concatenate([part.astype(jnp.float32) for part in searcher])
        longest = max(bots.shape[1], fetch.shape[0])
        bots = jnp.pad(bots, ((0, 0), (0, longest - bots.shape[1])))
        return jnp.concatenate([bots, jnp.pad(fetch, (0, longest - fetch.shape[0]))[None]])

    def available(self, state: State) -> Array:
        """Every macro an agent has, always."""
        most = max(len(macros) for macros in self.macros)
        return jnp.asarray([[i < len(macros) for i in range(most)] for macros in self.macros])

    def scene(self, state: State, macro: Array) -> Scene:
        """The room from above."""
        return render.picture(self, state, macro)

    def _times(self) -> Array:
        return jnp.broadcast_to(
            jnp.asarray(self.step_times)[..., : self.tools + 1], (self.people, self.tools + 1)
        )

    def _drive(self, key: Array, state: State, macro: Array, fresh: Array) -> tuple[State, Array]:
        """Move towards the macro's waypoint; wait for a tool at the table; whose macro ended."""
        ways = [macros.waypoints(self.people, bot) for bot in range(macros.TURTLEBOTS)]
        goal = jnp.stack(
            [
                jnp.stack([_pick(macro[bot], [way[axis] for way in ways[bot]]) for axis in (0, 1)])
                for bot in range(macros.TURTLEBOTS)
            ]
        ).astype(state.xy.dtype)
        gap = goal - state.xy
        distance = jnp.round(jnp.sqrt((gap * gap).sum(1)) * 100) / 100  # as the reference rounds
        timer = state.timer
        if self.paper:  # the reference lets a wait that follows a time-out begin at 1
            timer = jnp.where(fresh, jnp.maximum(timer, 0), timer)
        near = distance <= self.speed
        arriving = near & (timer > 0)
        getting = macro == self.people + 1
        waiting = near & getting & ~arriving  # the tick of arrival is not yet a tick of waiting
        timer = jnp.where(near, jnp.where(arriving, 0, timer), distance - self.speed) - waiting
        given_up = waiting & (timer <= -(self.look + self.hand_over))
        move = (self.speed / jnp.maximum(distance, self.speed))[:, None] * gap
        if self.noise:
            move = move + self.noise * jax.random.normal(key, gap.shape, gap.dtype)
        moved = state.xy + move
        if self.noise:
            moved = jnp.clip(moved, 0, jnp.asarray([macros.ROOM]))
        # A driving Turtlebot is nowhere; the reference remembers its last waypoint instead.
        away = self.people + 2 if self.paper else state.place
        state = replace(
            state,
            xy=jnp.where(near[:, None], goal, moved),
            place=jnp.where(near, macro, away),
            timer=jnp.where(given_up, -1, timer),
        )
        return state, (near & ~getting) | given_up

    def _requests(self, received: Array, effect: Array) -> Array:
        """Bool [P, K]: the one tool each person asks for, none if it has all."""
        lacked = ~received
        lowest = lacked & (jnp.cumsum(lacked, 1) == 1)
        asked = _one_hot(effect - 1, self.tools)[None]
        heard = (lacked & asked).any(1, keepdims=True)
        return jnp.where(heard, lacked & asked, lowest)

    def _deliver(self, state: State, macro: Array, effect: Array) -> tuple[State, Array]:
        """Who stands with a person that asks for what it carries hands it over: [B, P, K]."""
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
        """Fetch's tick: its macro ended, whose wait [B] a pass ended, a pass failed."""
        own = macro[macros.TURTLEBOTS]
        target = _one_hot(own - macros.PASS, macros.TURTLEBOTS)  # [B]
        sought = _one_hot(own - macros.LOOK, self.tools)  # [K]
        passing, looking = target.any(), sought.any()
        full = state.staged[-1] != EMPTY
        findable = ~full & (sought & (state.shelf > 0)).any()

        cost = jnp.where(passing, self.hand_over, jnp.where(looking, self.look, 1))
        if self.paper:
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
        dropped = failed & self.paper
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
        """A person whose time is up and whose tool is there goes on to the next step."""
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
        """A Turtlebot with a person sees what that person has."""
        beside = _one_hot(state.place, self.people)  # [B, P]
        now = (beside[:, :, None] & state.received[None]).any(1)
        return replace(state, seen=jnp.where(beside.any(1)[:, None], now, state.seen))

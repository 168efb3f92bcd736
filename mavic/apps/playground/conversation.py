"""What people say to the teams of a session: what is heard, what holds for them, and what waits for its turn."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mavic.apps.playground.limits import LONGEST_RECORDING, RequestError
from mavic.apps.playground.messages import Frames
from mavic.apps.playground.orders import ENDS, QUEUED_HOLD, Line, Order, Orders, order_of, read_line
from mavic.experiment import talk
from mavic.language.conversation.cast import Cast
from mavic.language.conversation.decision import Asked, Decision
from mavic.language.conversation.hearing import Heard
from mavic.language.conversation.settling import Rules, Settled
from mavic.language.encoder import EncoderError
from mavic.teams.episode import Episode
from mavic.teams.stage import Stage, StageError


@dataclass(kw_only=True)
class Side:
    """One team of a session: its stage, its present episode and its frames so far."""

    stage: Stage
    episode: Episode
    frames: deque[bytes] = field(default_factory=lambda: deque(maxlen=LONGEST_RECORDING))
    about: str = ""  # what sort of team it is
    leak: tuple[float, float] | None = None  # what it expects without an instruction, and earns
    earlier: Frames.Counts = field(default_factory=Frames.Counts)  # in the episodes before it

    def counts(self) -> Frames.Counts:
        """Return how many instructions were given, judged and followed in all episodes."""
        before, now = self.earlier, self.episode
        return Frames.Counts(
            given=before.given + now.given,
            judged=before.judged + now.judged,
            followed=before.followed + now.followed,
        )


@dataclass(kw_only=True)
class Conversation:
    """The teams that people talk to, and what they were told."""

    world: str
    sides: list[Side]
    orders: Orders = field(default_factory=Orders)

    @property
    def stage(self) -> Stage:
        """The first team's stage. Both teams have the same agents, macros and kinds."""
        return self.sides[0].stage

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the agents."""
        return talk.names_of(self.world, self.stage.env.agents)

    @property
    def learnt(self) -> tuple[str, ...]:
        """The kinds with which the first team was trained, as its file says."""
        given = np.asarray(self.stage.instructed_env.rules.given)
        return tuple(kind for kind, one in zip(self.stage.kinds, given, strict=True) if one)

    @property
    def over(self) -> bool:
        """Whether the episodes of all teams have ended."""
        return all(side.episode.over for side in self.sides)

    def check_agents(self, agents: Sequence[int] | None) -> None:
        """Raise `RequestError` unless all numbers are numbers of agents."""
        last = len(self.stage.env.agents) - 1
        if not all(0 <= agent <= last for agent in agents or ()):
            raise RequestError(f"agents must be a list of numbers from 0 to {last}")

    def say(
        self, heard: Heard, agents: Sequence[int] | None, hold: int | None, also: bool = False
    ) -> list[str]:
        """Give an instruction to all teams. If it is wrong for one of them, none gets it.

        Args:
            heard: the instruction.
            agents: whom it addresses. None: all that no person drives.
            hold: ticks. None: until it is ended.
            also: it holds beside the active one instead of replacing it.

        Returns:
            The names of the teams whose state does not permit it.
        """
        self.check_agents(agents)
        self._check_meant(heard, agents)
        told = [side.stage.say(side.episode, heard, agents, hold, also) for side in self.sides]
        refused = []
        for side, episode in zip(self.sides, told, strict=True):
            if len(episode.refused) > len(side.episode.refused):
                refused.append(side.stage.name)
            side.episode = episode
        return refused

    def _check_meant(self, heard: Heard, agents: Sequence[int] | None) -> None:
        """Raise `RequestError` unless the kind is meant for one of the agents."""
        kind = self.stage.kinds.index(heard.kind)
        meant = np.asarray(self.stage.instructed_env.rules.addressed)[kind]
        if not any(meant[agent] for agent in (range(len(meant)) if agents is None else agents)):
            who = [name for name, is_meant in zip(self.names, meant, strict=True) if is_meant]
            raise RequestError(f"“{heard.text}” is only for {', '.join(who)}")

    def end(self, kinds: Sequence[str] | None = None, agents: Sequence[int] | None = None) -> bool:
        """End what holds. What waits for its turn follows.

        Args:
            kinds: end only these. None: all.
            agents: end them only for these agents. None: whomever they address.

        Returns:
            Whether something held and was ended.
        """
        orders = self.orders
        over = [o for o in orders.holding if kinds is None or o.heard.kind in kinds]
        if agents is not None:
            over = [order for order in over if order.agents == tuple(agents)]
        ended = bool(over) or (kinds is None and self.instructed)
        orders.holding = [order for order in orders.holding if order not in over]
        orders.last = orders.asked[-1:]
        if kinds is None or not orders.holding:
            orders.note(self.time, "")
            for side in self.sides:
                side.episode = side.stage.say(side.episode, "none")
            return ended
        for order in over:
            orders.note(self.time, f"{ENDS}{order.heard.kind}")
            self._end(order.asked)
        return ended

    def _end(self, asked: Asked) -> None:
        for side in self.sides:
            side.episode = side.stage.end(side.episode, asked.kind, asked.agents)

    @property
    def time(self) -> int:
        """The tick of the episode that is played."""
        return max(side.episode.time for side in self.sides)

    @property
    def cast(self) -> Cast:
        """Who and what can be spoken of now, and where the agents stand."""
        episode, env = self.sides[0].episode, self.stage.env
        scene = env.scene(episode.still().state, episode.still().macro)
        robots = [sprite for sprite in scene.sprites if sprite.shape == "robot"]
        return talk.cast_of(self.world, tuple(env.agents)).at((r.x, r.y) for r in robots)

    @property
    def rules(self) -> Rules:
        """Which instructions can hold together."""
        cast = talk.cast_of(self.world, tuple(self.stage.env.agents))
        return talk.rules_of(self.stage.env, self.stage.instructed_env.rules, cast)

    def hear(self, text: str, agents: Sequence[int] | None = None, hold: int | None = None) -> Line:
        """Return what a line asks for now. Nothing is done yet, but a question back waits for its answer."""
        self.check_agents(agents)
        line = read_line(self.stage.lexicon, self.cast, self.rules, text, agents, hold, self.orders)
        self.orders.offers = (
            () if line.clear else line.settled.offers or tuple((o,) for o in line.decision.offers)
        )
        return line

    @property
    def _holding(self) -> list[Asked]:
        """The instructions that hold in some team."""
        playing = [side.episode for side in self.sides if not side.episode.over]
        held = [one for e in playing for one in (e.instruction, e.also) if one is not None]
        kinds = {int(one.kind.max()) for one in held} - {0}
        return [Asked(self.stage.kinds[kind]) for kind in sorted(kinds)]

    @property
    def instructed(self) -> bool:
        """Whether an instruction holds in some team."""
        return bool(self._holding)

    def obey(self, line: Line) -> list[str]:
        """Carry out a line that is clear. Return the names of the teams whose state does not permit it."""
        orders, decision = self.orders, line.decision
        orders.cues = []
        lexicon, hold = self.stage.lexicon, line.hold
        later = [tuple(order_of(lexicon, o, hold) for o in group) for group in decision.later]
        refused: list[str] = []
        if decision.now or decision.ends:
            if later and hold is None:
                hold = self._turn_of(decision.now)
            alone = len(decision.now) == 1 and not later
            fresh = [
                order_of(lexicon, o, hold, line.text if alone else "")
                if o in decision.now
                else order_of(lexicon, o)  # it held before, for more agents
                for o in line.settled.fresh
            ]
            refused = self._hold(line.settled.holds, fresh)
            orders.last = decision.now or line.settled.holds[-1:]
            if decision.now or decision.ends_all:
                orders.queue = []
        if later:
            orders.last = decision.later[-1]
            orders.queue = [*orders.queue, *later]
            self._let_turns_pass()
        orders.note(self.time, line.text, line.chosen, line.hold)
        return refused

    def _turn_of(self, group: Sequence[Asked]) -> int | None:
        """Return for how many ticks instructions hold if others wait; None if an event resolves them."""
        rules = self.stage.instructed_env.rules
        resolved = (np.asarray(rules.outcome) != 0).any(-1)
        kinds = [self.stage.kinds.index(asked.kind) for asked in group]
        return None if resolved[kinds].all() else QUEUED_HOLD

    def _let_turns_pass(self) -> None:
        """Give everything that waits before another a time to hold, so that each has its turn."""
        queue = self.orders.queue
        for number, group in enumerate(queue[:-1]):
            turn = self._turn_of([order.asked for order in group])
            queue[number] = tuple(o if o.hold else o._replace(hold=turn) for o in group)

    def _hold(self, holds: Sequence[Asked], fresh: Sequence[Order]) -> list[str]:
        """Let these instructions hold and no others. If one is wrong for a team, nothing changes.

        Args:
            holds: all that hold afterwards.
            fresh: those of them that are new.

        Returns:
            The names of the teams whose state does not permit a new one.
        """
        orders = self.orders
        kept = [
            order for order in orders.holding if order.asked[:2] in [asked[:2] for asked in holds]
        ]
        before = [side.episode for side in self.sides]
        refused: list[str] = []
        try:
            if kept:
                for order in orders.holding:
                    if order not in kept:
                        self._end(order.asked)
            if not holds:
                for side in self.sides:
                    side.episode = side.stage.say(side.episode, "none")
            for number, order in enumerate(
                fresh
            ):  # the first replaces what is left of the earlier ones
                also = bool(kept or number)
                refused += self.say(order.heard, order.agents, order.hold, also=also)
        except (StageError, RequestError):
            for side, episode in zip(self.sides, before, strict=True):
                side.episode = episode
            raise
        orders.holding = [*kept, *fresh]
        return list(dict.fromkeys(refused))

    def choose(self, number: int) -> Line:
        """Answer the last question with one of its offers. Return what was done as a line."""
        if not 0 <= number < len(self.orders.offers):
            raise RequestError("that question is no longer open; say it again")
        holds = self.orders.offers[number]
        held = self.orders.asked
        fresh = tuple(one for one in holds if one[:2] not in [other[:2] for other in held])
        if len(holds) == len(fresh) == 1:  # an offer of one instruction, which what holds may join
            line = self.hear(holds[0].text or holds[0].kind, holds[0].agents)
            if line.clear:
                self.obey(line)
                return line
        lexicon = self.stage.lexicon
        self._hold(holds, [order_of(lexicon, one, None) for one in fresh])
        for order in self.orders.holding:
            self.orders.note(self.time, order.heard.kind, order.agents, order.hold)
        replaced = tuple(one for one in held if one[:2] not in [o[:2] for o in holds])
        self.orders.offers, self.orders.last = (), fresh or holds
        text = " and ".join(one.text or one.kind for one in fresh or holds)
        return Line(text, Decision(now=fresh or holds), Settled(holds, fresh, replaced))

    def unqueue(self, number: int) -> None:
        """Forget an instruction that waits for its turn."""
        if not 0 <= number < len(self.orders.queue):
            raise RequestError("that does not wait any more")
        self.orders.queue.pop(number)

    def offer(self, group: Sequence[Order], beside: bool = False) -> None:
        """Give orders whose turn has come. Those that cannot be given are dropped, and the next frame says so."""
        try:
            asked = tuple(order.asked for order in group)
            self._hold((*(self.orders.asked if beside else ()), *asked), group)
        except (StageError, RequestError):
            for side in self.sides:
                refused = (*side.episode.refused, *(order.heard.text for order in group))
                side.episode = dataclasses.replace(side.episode, refused=refused)

    def say_what_is_due(self) -> None:
        """Say what a shared address says at this tick. If no instruction holds, give the next of the queue."""
        cues = self.orders.take_cues(self.time)
        for cue in cues:
            waiting = self.orders.cues
            if not cue.text:
                self.end()
            else:
                with contextlib.suppress(StageError, RequestError, EncoderError):
                    line = self.hear(cue.text, cue.agents, cue.hold)
                    if line.clear:
                        self.obey(line)
            self.orders.cues = waiting
        if self.over:
            return
        if self.time and not any(side.episode.over for side in self.sides):
            self.orders.drop_over(self._holding)
        if self.orders.queue and not self.instructed:
            self.offer(self.orders.queue.pop(0))

"""An episode that people can talk to: its state between two ticks, what agents do, and the lines of a script."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from mavic.types import InstructedState, Instruction, replace


class _Verdict(NamedTuple):
    """Whether an instruction that ended was followed. Instructions that are not counted get none."""

    number: int  # of the instruction, 1 for the first of the episode
    kind: str
    followed: bool


class Moment(NamedTuple):
    """A state and what the agents do in it."""

    state: Any  # of the environment
    macro: np.ndarray  # [N]
    fresh: np.ndarray  # bool [N], who chose its macro in this tick
    complies: Sequence[bool | None]  # [N]; None: the agent is not addressed
    values: dict[str, float] | None = None  # V(h, c) by kind, mean over agents


class Cue(NamedTuple):
    """A line of a script: these words are said before tick `tick`."""

    tick: int
    words: str  # a kind's name, a phrase, a free sentence, or "none" to end the active instruction
    agents: Sequence[str | int] | None = None  # names or numbers; None: all that the kind addresses
    hold: int | None = None  # ticks; None: until it is resolved or the episode ends
    also: bool = False  # it holds beside the active instruction instead of replacing it


@dataclass(frozen=True, kw_only=True)
class Episode:
    """The state of an episode between two ticks."""

    state: InstructedState
    carry: Any  # the team's memory
    instruction: Instruction  # that of `state`, as numpy arrays
    also: Instruction | None = None  # the second one, likewise; None: there is no place for one
    numbers: tuple[int, int] = (
        0,
        0,
    )  # of the latest first and of the latest second instruction, counted from 1
    time: int = 0
    spoken: Mapping[tuple[int, bool], str] = field(default_factory=dict)
    """Sentences by their row of the lexicon and whether they are second instructions."""
    reward: float = 0.0
    earned: float = 0.0
    events: tuple[str, ...] = ()
    verdicts: tuple[_Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    judged: int = 0
    followed: int = 0
    over: str = ""

    @property
    def given(self) -> int:
        """The number of instructions that were given so far."""
        return int(self.instruction.given) + (0 if self.also is None else int(self.also.given))

    def now(self, instruction: Instruction, also: Instruction | None, **changes: Any) -> Episode:
        """Return the episode with these instructions. One that is new gets the next number."""
        changed = dataclasses.replace(self, instruction=instruction, also=also, **changes)
        before = 0 if self.also is None else int(self.also.given)
        first, second = self.numbers
        if int(instruction.given) > int(self.instruction.given):
            first = changed.given
        if also is not None and int(also.given) > before:
            second = changed.given
        return dataclasses.replace(changed, numbers=(first, second))

    def still(self) -> Moment:
        """Return the present moment; all agents wait."""
        state = jax.device_get(replace(self.state, key=None))
        macro = np.maximum(state.macro, 0)
        return Moment(state.state, macro, np.zeros(len(macro), bool), [None] * len(macro))

    def rows(self, also: bool) -> list[int]:
        """Return the row of the lexicon that is said to each agent, by the second instruction or by the first."""
        instruction = self.also if also else self.instruction
        return [] if instruction is None else np.asarray(instruction.phrase).tolist()

    def with_verdict(self, number: int, kind: str, followed: Any) -> Episode:
        """Return the episode with the verdict on an instruction that ended.

        Args:
            number: of the instruction.
            kind: its kind.
            followed: whether it was followed.
        """
        verdict = _Verdict(number=number, kind=kind, followed=bool(followed))
        return dataclasses.replace(
            self,
            verdicts=(*self.verdicts, verdict),
            judged=self.judged + 1,
            followed=self.followed + bool(followed),
        )

"""What holds after new instructions: which of the earlier ones they join, replace or contradict.

Prohibitions add up, and so do instructions for different agents. A command replaces what held for the same agents,
unless the person said "also". What cannot be done together is asked back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from mavic.language.conversation.decision import Agents, Asked, Decision

AT_ONCE = 2  # instructions that a team can follow at the same time
Clash = Callable[[Asked, Asked], str]  # why two cannot hold together, "" if they can


class Rules(NamedTuple):
    """What can hold together in a world."""

    clash: Clash
    commands: Collection[str]  # the kinds that say what to do
    meant: Callable[[Asked], frozenset[int]]  # the agents that an instruction addresses
    impossible: Collection[frozenset[str]] = ()  # pairs under which the task cannot be completed


class Settled(NamedTuple):
    """What holds after new instructions, or what must be asked before."""

    holds: tuple[Asked, ...] = ()  # the oldest first
    fresh: tuple[Asked, ...] = ()  # those that are new, or hold for fewer agents than before
    replaced: tuple[Asked, ...] = ()
    question: str = ""
    offers: tuple[tuple[Asked, ...], ...] = ()  # what may hold instead: all of it


def settle(rules: Rules, held: Sequence[Asked], decision: Decision) -> Settled:
    """Return what holds after a decision.

    Args:
        rules: What can hold together.
        held: What holds now, the oldest first.
        decision: What ends, and what is asked for now.

    Returns:
        What holds then. With a question nothing changes until the person answers.
    """
    now = decision.now
    kept, narrowed, replaced = _without(rules, held, decision)
    fresh = [one for one in now if not any(_same(one, other) for other in kept)]
    if stray := [one for one in fresh if not rules.meant(one)]:
        why = f"“{stray[0].text or stray[0].kind}” is not for them. Is it for the team?"
        return _asked(why, [(one._replace(agents=None),) for one in stray])
    if len(now) > AT_ONCE:
        return _asked(
            "Two instructions can hold at once, not more. Which one?", [(o,) for o in now]
        )
    if len(fresh) == AT_ONCE and (why := _why_not(rules, *fresh)):
        return _asked(why, [(one,) for one in fresh], both=_both(rules, fresh))
    for one in fresh:
        for other in list(kept):
            if not _meet(one.agents, other.agents):
                continue
            if frozenset((one.kind, other.kind)) in rules.impossible:
                why = _why_not(rules, other, one)
                return _asked(why, [(one,), (other,)], both=(other, one))
            clash = rules.clash(other, one)
            if clash and decision.adds:
                return _asked(_apart(other, one), [(one,), (other,)])
            ordered = {one.kind, other.kind} & set(rules.commands)
            if clash or (ordered and not decision.adds):
                kept.remove(other)
                replaced.append(other)
    if len(kept) + len(fresh) > AT_ONCE:
        offers = [(*(o for o in kept if o is not left_out), *fresh) for left_out in kept]
        return _asked(
            "Two instructions can hold at once. Which one is to go?", [*offers, tuple(kept)]
        )
    replaced = [one for one in replaced if not any(_same(one, other) for other in now)]
    narrowed = [one for one in narrowed if one in kept]
    return Settled((*kept, *fresh), (*narrowed, *fresh), tuple(replaced))


def _without(
    rules: Rules, held: Sequence[Asked], decision: Decision
) -> tuple[list[Asked], list[Asked], list[Asked]]:
    """Return what holds on after a decision's ends and corrections, what of it now holds for fewer agents, and what
    ended for somebody."""
    kept, narrowed, over = [], [], []
    for one in held:
        told = rules.meant(one)
        ends = told if decision.of is None else told & {*decision.of}
        corrected = any(_same(one, other) for other in decision.corrects)
        if not corrected and not (decision.is_over(one) and ends):
            kept.append(one)
            continue
        over.append(one)
        if not corrected and (left := told - ends):
            narrowed.append(one._replace(agents=tuple(sorted(left))))
            kept.append(narrowed[-1])
    return kept, narrowed, over


def _asked(
    question: str, offers: Sequence[tuple[Asked, ...]], both: tuple[Asked, ...] = ()
) -> Settled:
    return Settled(question=question, offers=(*offers, *((both,) if both else ())))


def _both(rules: Rules, fresh: Sequence[Asked]) -> tuple[Asked, ...]:
    """Return both instructions if they can be obeyed together, though the task cannot be done."""
    return tuple(fresh) if not rules.clash(fresh[0], fresh[1]) else ()


def _why_not(rules: Rules, one: Asked, other: Asked) -> str:
    """Return why a person should be asked before two instructions hold together; "" if there is no reason."""
    if not _meet(one.agents, other.agents):
        return ""
    if rules.clash(one, other):
        return _apart(one, other)
    if frozenset((one.kind, other.kind)) in rules.impossible:
        return "With both, the work cannot be done. Which one?"
    return ""


def _apart(one: Asked, other: Asked) -> str:
    return (
        f"“{one.text or one.kind}” and “{other.text or other.kind}” do not go together. Which one?"
    )


def _same(one: Asked, other: Asked) -> bool:
    return one.kind == other.kind and one.agents == other.agents


def _meet(one: Agents, other: Agents) -> bool:
    """Return whether an agent is addressed by both."""
    return one is None or other is None or bool(set(one) & set(other))

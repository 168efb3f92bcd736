"""Checks the kinds of an instruction file before anything is trained, for `mavic check` and `mavic train`.

Some mistakes are read from the file. The others are found by playing: `mavic.rollout.trial` gives every kind to random
teams, free and enforced. An error is certain to spoil a training and stops it. A warning is a sign that it may.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mavic.envs import api
from mavic.experiment.axes import Axes
from mavic.experiment.methods import preset_of
from mavic.experiment.task import instructions_of
from mavic.instruct import pairs
from mavic.instruct.reward import rules_of
from mavic.instruct.spec import RULES, InstructionFile, Kind
from mavic.language.reader.alike import alike
from mavic.rollout import trial
from mavic.types import Rules

EPISODES = 48  # of each kind, free and enforced each
FEW_EPISODES = 16  # before a training
HOST_TICKS = (
    20_000  # of simulators on the host, in all; fewer episodes are played if theirs are longer
)
ENOUGH = 5  # instructions, episodes or decisions from which a share says something
FEW_PHRASES = 3
STUCK = (0.02, 0.5)  # shares of decisions without an allowed macro: a warning, an error
RARELY = 0.25  # an enforced random team fulfils less: a warning
SAFELY = 1.1  # times the least penalty that makes obeying best
MOSTLY = 0.9  # an enforced team should follow more, if no event has to happen
ASKED = (
    "rule", "allow", "forbid", "when", "unless", "agents", "given_if", "effect", "resolved_by",
)  # fmt: skip

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A mistake, or a sign of one."""

    kind: str
    """The kind, or two kinds joined by " and "."""
    level: str
    """"error" or "warning"."""
    what: str
    """What is wrong."""
    change: str
    """What to change."""

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.kind}: {self.what}; {self.change}"


@dataclass(frozen=True, kw_only=True)
class Played:
    """How random teams fared under one kind. Shares are None where nothing was counted."""

    kind: str
    given: int
    followed: float | None
    """Share of instructions that free random teams followed."""
    enforced: float | None
    """The same of teams to which forbidden macros are unavailable."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a check found."""

    played: tuple[Played, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that stop a training."""
        return tuple(one for one in self.findings if one.level == ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that do not."""
        return tuple(one for one in self.findings if one.level == WARNING)


def check(
    world: str,
    *,
    file: InstructionFile | None = None,
    options: Mapping[str, Any] | None = None,
    episodes: int = EPISODES,
) -> Checked:
    """Check the kinds of a world.

    Args:
        world: the world's id.
        file: its instruction file. None: the one it is registered with.
        options: options of its environment.
        episodes: how many are played for each kind, free and enforced each.

    Returns:
        What was played, and every mistake that was found.
    """
    file = file or InstructionFile.read(instructions_of(world))
    record, env = api.world(world), api.make(world, **(options or {}))
    if api.runs_on_host(env):
        ticks = 2 * (len(file.kinds) + 1) * min(env.horizon, trial.MOST_TICKS)
        episodes = min(episodes, max(2 * ENOUGH, HOST_TICKS // ticks))
    rules = rules_of(env, file, extras=True)
    gamma = preset_of(Axes().preset, world).gamma
    played = trial.play_kinds(
        env,
        rules,
        gamma=gamma,
        episodes=episodes,
        key=jax.random.key(0),
        resting=record.resting_macros,
    )
    case = _Case(
        file=file,
        env=env,
        rules=rules,
        trial=played,
        optimum=_optimum(record, env, gamma, file),
        impossible=[set(pair) for pair in record.impossible_together],
    )
    by_kind = [one for kind in file.kinds for test in BY_KIND for one in test(kind, case)]
    together = [one for test in TOGETHER for one in test(case)]
    rows = tuple(_played(number, case) for number in range(1, len(rules.names)))
    return Checked(played=rows, findings=tuple(by_kind + together))


def before_training(world: str, options: Mapping[str, Any]) -> Checked:
    """Return what a short check finds. Worlds of the package are tested once and not at every training.

    Args:
        world: the world's id.
        options: options of its environment.
    """
    path = instructions_of(world)
    built_in = world in api.BUILT_IN and world not in api.REGISTERED
    if built_in:
        return Checked(played=(), findings=())
    key = (world, _hash(path), repr(sorted(options.items())))
    if key not in _CHECKED:
        _CHECKED[key] = check(world, options=options, episodes=FEW_EPISODES)
    return _CHECKED[key]


_CHECKED: dict[tuple[str, str, str], Checked] = {}
"""Short checks of this process: one for each content of a world's file."""


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # reading it says what is wrong
        return ""


@dataclass(frozen=True, kw_only=True)
class _Case:
    """What the tests look at."""

    file: InstructionFile
    env: api.Env
    rules: Rules
    trial: trial.Trial
    optimum: Callable[[str | None], float | None]
    impossible: Sequence[set[str]]

    def number(self, kind: Kind) -> int:
        return self.rules.names.index(kind.name)

    def count(self, name: str, kind: Kind, shield: bool | None = None) -> int:
        """Return the sum of a count over the episodes of a kind: of free teams, enforced teams or both."""
        rows = getattr(self.trial, name)[self.number(kind)]
        return int(rows.sum() if shield is None else rows[int(shield)].sum())


def _optimum(
    record: api.World, env: api.Env, gamma: float, file: InstructionFile
) -> Callable[[str | None], float | None]:
    """Return the best return under a kind of a file. The world's plans obey the kinds of its own file."""
    if record.optimum is None:
        return lambda kind: None
    own = InstructionFile.read(record.instructions).kinds if record.instructions else ()
    planned = {
        kind.name: same.name for kind in file.kinds for same in own if _asked(kind) == _asked(same)
    }

    def best(kind: str | None) -> float | None:
        if kind is not None and kind not in planned:
            return None
        return api.best_return(env, gamma, kind and planned[kind])

    return best


def _asked(kind: Kind) -> list[Any]:
    """Return what a kind asks for, whatever it is called and pays."""
    return [getattr(kind, key) for key in ASKED]


def _played(number: int, case: _Case) -> Played:
    rows = case.trial
    closed, followed = rows.closed[number].sum(-1), rows.followed[number].sum(-1)
    free, enforced = (float(f / c) if c else None for f, c in zip(followed, closed, strict=True))
    given = int(rows.given[number].sum())
    return Played(kind=case.rules.names[number], given=given, followed=free, enforced=enforced)


def _finding(level: str, kind: Kind | str, what: str, change: str) -> Finding:
    name = kind if isinstance(kind, str) else kind.name
    return Finding(kind=name, level=level, what=what, change=change)


def _pays_wrongly(kind: Kind, case: _Case) -> Iterator[Finding]:
    rule = RULES[kind.rule]
    if rule.each_choice and kind.penalty > 0:
        yield _finding(
            ERROR,
            kind,
            f"penalty = {kind.penalty:g} pays for disobeying",
            f"write penalty = {-kind.penalty:g}",
        )
    if rule.each_tick and kind.pay <= 0:
        yield _finding(
            ERROR, kind, f"pay = {kind.pay:g} does not pay for obeying", "write a pay above 0"
        )
    if rule.each_choice and kind.pay != Kind.pay:
        yield _finding(
            WARNING,
            kind,
            f"pay = {kind.pay:g} has no effect under rule {kind.rule}",
            "use rule replace, or penalty",
        )
    if kind.credit and not kind.resolved_by:
        yield _finding(
            ERROR,
            kind,
            f"credit = {kind.credit:g} is never paid, because no event resolves the kind",
            "name the event in resolved_by, or leave credit out",
        )
    if kind.credit < 0:
        yield _finding(
            ERROR, kind, f"credit = {kind.credit:g} costs fulfilling", "write a credit above 0"
        )
    if kind.resolved_by and 1 not in kind.resolved_by.values():
        yield _finding(
            ERROR,
            kind,
            "no event fulfils it, so it is never followed",
            "give an event of resolved_by the value 1",
        )


def _twin_is_no_way_out(kind: Kind, case: _Case) -> Iterator[Finding]:
    if kind.twin is None:
        return
    other = next(one for one in case.file.kinds if one.name == kind.twin)
    own, its = (case.rules.allowed[case.number(one)] for one in (kind, other))
    if kind.allow is not None or other.allow is not None:
        why = "a twin forbids the same elsewhere, and one of the two kinds lists what is allowed"
        yield _finding(ERROR, kind, f"twin = {kind.twin!r}: {why}", "leave twin out")
    elif kind is other or (
        np.array_equal(own, its) and (kind.when, kind.unless) == (other.when, other.unless)
    ):
        why = "it forbids the same macros, so neither can be used instead"
        yield _finding(
            ERROR, kind, f"twin = {kind.twin!r}: {why}", "name the kind of the other thing"
        )


def _has_few_phrases(kind: Kind, case: _Case) -> Iterator[Finding]:
    if len(kind.train) < FEW_PHRASES:
        yield _finding(
            WARNING,
            kind,
            f"only {len(kind.train)} training phrase{'s' * (len(kind.train) > 1)}",
            f"write at least {FEW_PHRASES}, better twelve: people's words are compared with them",
        )


def _never_arises(kind: Kind, case: _Case) -> Iterator[Finding]:
    if case.count("possible", kind) == 0:
        episodes = case.trial.given.shape[1] * case.trial.given.shape[2]
        yield _finding(
            ERROR,
            kind,
            f"given_if = {kind.given_if!r} held at no tick of {episodes} episodes, so it is never given",
            "use a precondition that holds in states which teams reach",
        )


def _has_no_choice(kind: Kind, case: _Case) -> Iterator[Finding]:
    decisions = case.count("decisions", kind)
    stuck = case.count("without_choice", kind)
    share = stuck / max(1, decisions)
    if stuck < ENOUGH or share < STUCK[0]:
        return
    yield _finding(
        ERROR if share >= STUCK[1] else WARNING,
        kind,
        f"no allowed macro is available in {share:.0%} of the decisions under it",
        "allow a macro that is always available, or give it only where one is (given_if)",
    )


def _asks_nothing(kind: Kind, case: _Case) -> Iterator[Finding]:
    decisions = case.count("decisions", kind)
    if decisions >= ENOUGH and not case.count("tempted", kind) and not kind.resolved_by:
        yield _finding(
            WARNING,
            kind,
            f"nothing that it forbids was available in {decisions} decisions, so every team follows it",
            "forbid macros that agents can choose",
        )


def _cannot_be_obeyed(kind: Kind, case: _Case) -> Iterator[Finding]:
    """Events are looked for in episodes that hold the kind from the start, where there are enough of them."""
    number, rows = case.number(kind), case.trial
    held = rows.from_start[number, 1]
    if kind.resolved_by:
        if 1 not in kind.resolved_by.values():
            return  # another line says so
        held = held if held.sum() >= ENOUGH else rows.given[number, 1] > 0
        if held.sum() < ENOUGH:
            return
        share = float((rows.followed[number, 1][held] > 0).mean())
        if share < RARELY:
            yield _finding(
                WARNING if share else ERROR,
                kind,
                f"fulfilled in {share:.0%} of {held.sum()} episodes even when enforced",
                "allow the macros that lead there, or use rule replace without resolved_by",
            )
        return
    closed = case.count("closed", kind, True)
    share = case.count("followed", kind, True) / max(1, closed)
    # Where no allowed macro is left, another line says so.
    if closed >= ENOUGH and share < MOSTLY and not case.count("without_choice", kind, True):
        yield _finding(
            WARNING,
            kind,
            f"followed in {share:.0%} even when enforced: allowed macros do forbidden work",
            "forbid them too, or let effective_macros say what they will do",
        )


def _can_be_got_round(kind: Kind, case: _Case) -> Iterator[Finding]:
    if kind.forbid is None:
        return
    number = case.number(kind)
    finished = case.trial.finished[number].sum(0)
    ways = case.trial.ways_round[number].sum(0)
    names = max((list(macros) for macros in case.env.macros), key=len)
    for broken, way in np.argwhere(ways > 0):
        yield _finding(
            WARNING,
            kind,
            f"{names[way].name} does the work of {names[broken].name} in one tick "
            f"({ways[broken, way]} of {finished[broken]} times) and counts as allowed",
            f"forbid {names[way].name} too, or report {names[broken].name} as its effective_macro",
        )


def _obeying_costs(kind: Kind, case: _Case) -> Iterator[Finding]:
    """D13: under a kind that leaves the task on, obeying must be best. A planner says so, or else the sample."""
    if not RULES[kind.rule].task or kind.penalty > 0:
        return
    best, obedient = case.optimum(None), case.optimum(kind.name)
    if best is not None and obedient is not None:
        gain = best - obedient
        if gain > -kind.penalty and not kind.resolved_by:
            yield _finding(
                ERROR,
                kind,
                f"the best plan earns {_short(gain)} more by disobeying, which costs {-kind.penalty:g}",
                _costlier(-gain),
            )
        return
    number, rows = case.number(kind), case.trial
    held, obeyed, paid, broken = (
        getattr(rows, n)[number] for n in ("from_start", "obeyed", "paid", "broken")
    )
    obeying, disobeying = paid[held & obeyed], paid[held & ~obeyed]
    if len(obeying) < ENOUGH or len(disobeying) < ENOUGH:
        return
    better = np.sort(disobeying)[-2] - obeying.max()  # one episode may be luck
    if better > 0:
        # With this penalty an episode that disobeyed would have earned what the best that obeyed did.
        fair = kind.penalty + (obeying.max() - disobeying) / broken[held & ~obeyed]
        yield _finding(
            WARNING,
            kind,
            f"of {held.sum()} random episodes the best two that disobeyed earned {_short(float(better))} more than "
            "the best that obeyed",
            _costlier(float(np.sort(fair)[1])),
        )


def _costlier(penalty: float) -> str:
    """Return the advice to charge more than a penalty, in two digits that are not rounded towards 0."""
    unit = 10.0 ** (math.floor(math.log10(-SAFELY * penalty)) - 1)
    enough = unit * math.floor(SAFELY * penalty / unit)
    return f"use rule replace, or a penalty of {_short(enough)} or less"


def _short(number: float) -> str:
    """Return a number in three digits."""
    return f"{float(f'{number:.3g}'):g}"


BY_KIND = (
    _pays_wrongly,
    _twin_is_no_way_out,
    _has_few_phrases,
    _never_arises,
    _has_no_choice,
    _asks_nothing,
    _cannot_be_obeyed,
    _can_be_got_round,
    _obeying_costs,
)


def _say_the_same(case: _Case) -> Iterator[Finding]:
    """Return phrases of two kinds that hardly differ."""
    phrases = {kind.name: kind.train + kind.held_out for kind in case.file.kinds}
    for one, other, said, also, same in alike(phrases):
        yield _finding(
            ERROR if same else WARNING,
            f"{one} and {other}",
            f"{said!r} and {also!r} are nearly the same",
            "say in each phrase what sets its kind apart",
        )


def _ask_the_same(case: _Case) -> Iterator[Finding]:
    """Return pairs of kinds that differ in nothing but their names and phrases."""
    rules = case.rules
    fields = ("allowed", "lists_allowed", "addressed", "replaces", "outcome", "precondition")
    asks = [*fields, "effect", *(("predicate", "negated") if rules.predicate is not None else ())]
    demands = [
        tuple(np.asarray(getattr(rules, name)[number]).tobytes() for name in asks)
        for number in range(len(rules.names))
    ]
    for one, other in combinations(case.file.kinds, 2):
        if demands[case.number(one)] == demands[case.number(other)]:
            yield _finding(
                WARNING,
                f"{one.name} and {other.name}",
                "both ask for the same",
                "merge their phrases into one kind",
            )


def _leave_nothing(case: _Case) -> Iterator[Finding]:
    """Return pairs of kinds that may hold together, and under which an agent has no macro left.

    Those are the kinds under which the task goes on, and all that forbid. Of two commands that replace the task, the
    later one ends the earlier.
    """
    rules = case.rules
    held = [k for k in case.file.kinds if k.forbid is not None or RULES[k.rule].task]
    for one, other in combinations(held, 2):
        numbers = (case.number(one), case.number(other))
        why = pairs.conflict(
            case.env, rules, *(np.asarray(rules.addressed[n]) * n for n in numbers)
        )
        if "nothing to do" in why and {one.name, other.name} not in case.impossible:
            yield _finding(
                WARNING,
                f"{one.name} and {other.name}",
                f"together they {why.split(' together ')[-1]}",
                "forbid less, so that one macro is left under both, or name the pair in impossible_together",
            )


TOGETHER = (_say_the_same, _ask_the_same, _leave_nothing)

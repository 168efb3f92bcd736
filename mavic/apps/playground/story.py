"""The first minute of a visitor: one team, one sentence at the right moment, and what a team without the correction
makes of the same sentence.

Every word of it is derived from episodes that are played for it. A chapter whose episode does not show what it would
say is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from mavic.apps import replay
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.seen import Seen, expectation, on_the_way, see, the
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.experiment.talk import names_of
from mavic.teams.episode import Cue
from mavic.teams.stage import StageError

TEAM, FAILING = "mavic", "naive-paper"  # names of shipped teams
CONTROL = "mavic-paper"  # trained as the failing one, but with the correction
SEEDS = range(1, 11)  # episodes in which a moment is looked for
SLIPS = 0.1  # share of the moves in which the second team may not comply; the page says how many
LANES = "not told", "told"  # of the finish line
CORRECTION = "The correction keeps what a team learns under one instruction out of what it expects under another."
LATEST = 30  # the tick until which the second team's own moment is waited for


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One team and the sentence."""

    recording: Recording
    at: int  # the tick at which the sentence is said
    note: str  # what a visitor must know of the team
    opening: str  # before it is said
    asking: str  # when it is said
    choices: tuple[tuple[str, bool], ...]  # what a visitor may guess, and whether it is right
    lines: tuple[tuple[int, str], ...]  # what is said from a tick on
    ending: str
    detail: str
    onward: str  # what the button to the next chapter says
    race: tuple[tuple[str, int, bool], ...]  # who, ticks, and whether the task was done


@dataclass(frozen=True, kw_only=True)
class Story:
    """What the first page shows."""

    world: str
    job: str
    words: str  # the sentence that is said
    seed: int
    chapters: tuple[Chapter, ...]


def can_be_told(catalog: Catalog) -> bool:
    """Return whether the world that pages open has the team and an example that names a thing."""
    world = catalog.opening
    return TEAM in catalog.teams.get(world, {}) and _named(world) is not None


def make(catalog: Catalog) -> Story | None:
    """Play the episodes and return the story, or None if they do not show it."""
    world = catalog.opening
    thing = _named(world) if can_be_told(catalog) else None
    if thing is None:
        return None
    words = api.known(world).examples[0]
    try:
        for seed in SEEDS:
            free = _play(catalog, TEAM, seed)
            if not see(free).finished:  # no finish line without a finish
                continue
            first = _obeying(catalog, seed, words, thing, free)
            if first is not None:
                second = _failing(catalog, seed, words, thing, first.at)
                return Story(
                    world=world,
                    job=api.known(world).job,
                    words=words,
                    seed=seed,
                    chapters=(first,) if second is None else (first, second),
                )
    except StageError:  # the sentence means nothing to these teams
        return None
    return None


def _named(world: str) -> str | None:
    """Return the thing that the first example of a world names."""
    record = api.known(world)
    example = record.examples[0] if record.examples else ""
    return next((thing for thing in record.macro_things.values() if thing in example), None)


def _play(catalog: Catalog, name: str, seed: int, *script: Cue) -> Recording:
    """Return an episode of a team of the world that pages open."""
    world = catalog.opening
    made = Recording.of_episode(catalog.stage(world, name), jax.random.key(seed), script)
    called, about = catalog.called(world, name), catalog.about(world, name)
    return dataclasses.replace(made, name=called, about=about)


def _leak(catalog: Catalog, name: str, free: Recording) -> tuple[float, float] | None:
    values = [frame["values"] for frame in free.frames[:-1]]
    rewards = [frame["reward"] for frame in free.frames[1:]]
    return expectation(values, rewards, catalog.entry(catalog.opening, name).gamma)


def _obeying(
    catalog: Catalog, seed: int, words: str, thing: str, free: Recording
) -> Chapter | None:
    """Return the chapter of the team that obeys and goes on working, or None if this episode does not show it. `free`
    is the episode without the sentence."""
    moment = on_the_way(free.frames, thing, api.known(free.world).macro_things, loaded=True)
    if moment is None:
        return None
    told = _play(catalog, TEAM, seed, Cue(moment[1], words))
    told = dataclasses.replace(told, leak=_leak(catalog, TEAM, free))
    return obeying_chapter(told, free, thing, *moment)


def _failing(catalog: Catalog, seed: int, words: str, thing: str, usual: int) -> Chapter | None:
    """Return the chapter of the team that obeys and never does its task, or None if there is none that does so. It is
    told when one of its agents is on its way to the thing, and at the usual tick if none goes there early."""
    if FAILING not in catalog.teams[catalog.opening]:
        return None
    free = _play(catalog, FAILING, seed)
    things = api.known(free.world).macro_things
    moment = on_the_way(free.frames, thing, things, loaded=True) or on_the_way(
        free.frames, thing, things
    )
    if moment is not None and moment[1] > LATEST:
        moment = None
    at = usual if moment is None else moment[1]
    told = _play(catalog, FAILING, seed, Cue(at, words))
    told = dataclasses.replace(told, leak=_leak(catalog, FAILING, free))
    agent = None if moment is None else moment[0]
    return failing_chapter(told, free, thing, agent, at, _control(catalog, seed, Cue(at, words)))


def _control(catalog: Catalog, seed: int, cue: Cue) -> tuple[Seen, ...]:
    """Return what the team does, without the sentence and with it, that was trained in the same setting with the
    correction; empty without such a team."""
    if CONTROL not in catalog.teams[catalog.opening]:
        return ()
    return tuple(see(_play(catalog, CONTROL, seed, *script)) for script in ((), (cue,)))


def _corrected(free: Seen, told: Seen) -> str:
    """Return what the correction changes in the same setting."""

    def does(seen: Seen) -> str:
        return (
            f"it does the job in {seen.ticks} moves" if seen.finished else "it does not do the job"
        )

    return (
        "Another team, trained like this one but with the correction: "
        f"told nothing, {does(free)}; told the sentence, {does(told)}. "
        "The team before was trained in another setting."
    )


def obeying_chapter(
    told: Recording, free: Recording, thing: str, agent: int, at: int
) -> Chapter | None:
    """Return the chapter of a team that obeys and goes on working, or None if the episodes do not show it.

    Args:
        told: the episode with the sentence.
        free: the same episode without it.
        thing: what the sentence forbids.
        agent: who is on its way there.
        at: the tick of the sentence.
    """
    seen, before = see(told), see(free)
    shown = seen.obeyed and seen.instead and not seen.misused
    if not (shown and seen.finished and before.finished) or seen.forbidden != (thing,):
        return None
    who, other = _called(told, agent), seen.instead[0]
    load = free.frames[at]["agents"][agent]["holds"]
    return Chapter(
        recording=told,
        at=at,
        note="",
        opening=api.known(told.world).job,
        asking=f"{who} is carrying a {load} to {the(thing)}. Now a person says:",
        choices=(
            (f"It takes {the(other)}", True),
            ("It stops working", False),
            (f"It still uses {the(thing)}", False),
        ),
        lines=_turning(told, agent, at, who, other),
        ending=_cost(seen, before, thing),
        detail="The finish line shows the same episode twice: told nothing, and told the sentence.",
        onward="And a team without the correction?",
        race=tuple(map(_runner, LANES, (before, seen))),
    )


def failing_chapter(
    told: Recording,
    free: Recording,
    thing: str,
    agent: int | None,
    at: int,
    control: tuple[Seen, ...] = (),
) -> Chapter | None:
    """Return the chapter of a team that obeys and never does its task, or None if the episodes do not show it.

    Args:
        told: the episode with the sentence.
        free: the same episode without it.
        thing: what the sentence forbids.
        agent: who is on its way there; None: nobody.
        at: the tick of the sentence.
        control: what a team of the same setting does that has the correction, without the sentence and with it.
    """
    seen, before = see(told), see(free)
    if seen.disobeyed > SLIPS * seen.told or seen.misused or seen.over != "time is up":
        return None
    obeys = "" if seen.obeyed else f" in {seen.told - seen.disobeyed} of {seen.told} moves"
    alone = (
        f"Not told anything, this team does the job in {before.ticks} moves."
        if before.finished
        else "Not told anything, this team does not do the job either."
    )
    never = "" if before.finished else ", told or not told"
    left = [step["name"] for step in told.frames[-1]["scene"]["steps"] if step["done"] < step["of"]]
    where = "" if agent is None else f"{_called(told, agent)} is on its way to {the(thing)}. "
    return Chapter(
        recording=told,
        at=at,
        note=CORRECTION,
        opening="The same job, and a team without the correction.",
        asking=f"{where}The same person says the same sentence:",
        choices=(("It takes a detour and does the job", False), ("It never does the job", True)),
        lines=(),
        ending=f"It obeys{obeys}. It never does the job{never}.",
        detail=" ".join(
            [
                f"After {seen.ticks} moves left undone: {', '.join(left)}. {alone}",
                *([_corrected(*control)] if control else []),
            ]
        ),
        onward="",
        race=(
            *map(_runner, LANES, (before, seen)),
            *map(_runner, (f"corrected, {who}" for who in LANES), control),
        ),
    )


def _called(recording: Recording, agent: int) -> str:
    name = the(names_of(recording.world, recording.agents)[agent])
    return name[0].upper() + name[1:]


def _runner(who: str, seen: Seen) -> tuple[str, int, bool]:
    return who, seen.ticks, seen.finished


def _turning(
    told: Recording, agent: int, at: int, who: str, other: str
) -> tuple[tuple[int, str], ...]:
    """Return what is said while the agent goes to the other thing and uses it."""
    things = api.known(told.world).macro_things
    turned = _first(told, at, lambda frame: things.get(frame["agents"][agent]["macro"]) == other)
    if turned is None:
        return ()
    free = _first(told, turned + 1, lambda frame: not frame["agents"][agent]["holds"])
    lines = [(turned, f"{who} turns to {the(other)}.")]
    if free is not None:
        lines.append((free, f"{who} uses {the(other)}. The work goes on."))
    return tuple(lines)


def _first(recording: Recording, start: int, shows: Callable[[Any], bool]) -> int | None:
    return next((f["time"] for f in recording.frames[start:] if shows(f)), None)


def _cost(told: Seen, free: Seen, thing: str) -> str:
    """Return what the detour cost."""
    more = told.ticks - free.ticks
    if more > 0:
        cost = f"The detour cost {more} {'move' if more == 1 else 'moves'}."
    else:
        cost = "The detour cost nothing." if not more else f"It was even {-more} moves faster."
    return f"The job is done, and nobody used {the(thing)}. {cost}"


def page(story: Story, turn: tuple[str, str], more: str = "") -> str:
    """Return the story as a page that needs no server.

    Args:
        story: what it tells.
        turn: what the visitor is invited to at the end, and where that leads.
        more: what follows below, as markup.
    """
    chapters = [
        {**vars(chapter), "recording": replay.pack(chapter.recording)} for chapter in story.chapters
    ]
    facts = {name: getattr(story, name) for name in ("world", "job", "words", "seed")}
    data = {**facts, "look": replay.look(), "chapters": chapters, "turn": turn}
    return replay.document("story.html", data, {"more": more}, ("story",), "story.css")

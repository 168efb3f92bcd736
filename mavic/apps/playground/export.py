"""A static build: the first minute, and recorded episodes of every world, as pages that any web host serves."""

from __future__ import annotations

import dataclasses
import html as markup
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from mavic.apps import replay
from mavic.apps.playground import seen, story
from mavic.apps.playground.catalog import Catalog
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.language.encoder import EncoderError
from mavic.teams.episode import Cue
from mavic.teams.stage import StageError

TOLD_AT = 12  # the tick at which a sentence is said that is not about a thing
HOLDS = 40  # ticks for which a sentence holds that replaces the task
SEED = 1
START = (
    "<h2>Say something yourself</h2><p>These pages are recordings. With mavic installed, this command opens the "
    "playground, where you talk to the teams or work beside them:</p><pre>mavic play</pre>"
)


class Episode(NamedTuple):
    """A sentence, and what the teams made of it."""

    words: str
    recordings: list[Recording]
    apart: str = ""  # what the teams differ in beside the correction

    @property
    def caption(self) -> str:
        """What the episode shows: of each team, and of both beside each other."""
        names = [one.name for one in self.recordings]
        facts = [seen.see(one) for one in self.recordings]
        said = [
            f"The team {name}: {seen.caption(one)}." for name, one in zip(names, facts, strict=True)
        ]
        contrast = [seen.contrast(names, facts, self.apart)] if len(facts) == 2 else []
        return " ".join([*said, *contrast])


def export(catalog: Catalog, folder: Path, say: Callable[[str], None]) -> Path:
    """Write the build.

    Args:
        catalog: the teams; of each world, two play side by side.
        folder: where to write.
        say: it is told of every page.

    Returns:
        The path of the first page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links: dict[str, list[str]] = {}  # by world
    count = 0
    for world in catalog.teams:
        for episode in _episodes(catalog, world):
            count += 1
            file = f"{world}-{count}.html"
            title = f"{_title(world)}: “{episode.words}”"
            replay.html(episode.recordings, folder / file, title, episode.caption)
            link = f'<a href="{markup.escape(file)}">{markup.escape(episode.words)}</a>'
            links.setdefault(world, []).append(
                f"<li>{link}<br>{markup.escape(episode.caption)}</li>"
            )
            say(f"{folder / file}: “{episode.words}”")
    first = folder / "index.html"
    made = story.make(catalog) if story.can_be_told(catalog) else None
    if made is None:
        page = replay.document("export.html", None, {"more": _more(links)}, (), "story.css")
    else:
        page = story.page(made, ("More episodes, and your turn", "#more"), _more(links))
    first.write_text(page, encoding="utf-8")
    return first


def _compared(catalog: Catalog, world: str) -> list[str]:
    """Return the names of the teams that play side by side: the first one, and the one that differs most from it."""
    teams = list(catalog.teams[world])
    return teams[:1] + ([story.FAILING] if story.FAILING in teams[1:] else teams[1:2])


def _episodes(catalog: Catalog, world: str) -> Iterator[Episode]:
    """Yield sentences and the episodes in which the teams hear them. Sentences that are unclear are left out."""
    teams = _compared(catalog, world)
    free = _play(catalog, world, teams[0], [])
    phrases = [kind.train[0] for kind in InstructionFile.read(instructions_of(world)).kinds]
    for words in api.known(world).examples or phrases[:3]:
        at, hold = _moment(world, words, free)
        try:
            played = [_play(catalog, world, t, [Cue(at, words, None, hold)]) for t in teams]
            yield Episode(words, played, catalog.apart(world, teams))
        except (StageError, EncoderError):
            continue


def _play(catalog: Catalog, world: str, name: str, script: Sequence[Cue]) -> Recording:
    made = Recording.of_episode(catalog.stage(world, name), jax.random.key(SEED), script)
    return dataclasses.replace(
        made, name=catalog.called(world, name), about=catalog.about(world, name)
    )


def _moment(world: str, words: str, free: Recording) -> tuple[int, int | None]:
    """Return when a sentence is said and for how long it holds: one about a thing when an agent is on its way there,
    to the end of the episode; others early in the episode."""
    things = api.known(world).macro_things
    for thing in things.values():
        way = seen.on_the_way(free.frames, thing, things) if thing in words else None
        if way is not None:
            return way[1], None
    return min(TOLD_AT, len(free.frames) // 3), HOLDS


def _title(world: str) -> str:
    return api.known(world).title or api.plain(world)


def _more(links: Mapping[str, Sequence[str]]) -> str:
    """Return the links of each world, and how to start the playground."""
    sections = [
        f"<section><h2>{markup.escape(_title(world))}</h2><p>{markup.escape(api.known(world).job)}</p>"
        f"<ul>{''.join(found)}</ul></section>"
        for world, found in links.items()
    ]
    return "\n".join(["<h2>More episodes</h2>", *sections, START])

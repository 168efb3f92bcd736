"""A static build: recorded episodes of every world as pages that any web host serves."""

from __future__ import annotations

import html as markup
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from mavic.apps import recording, replay
from mavic.apps.playground.catalog import Catalog, Entry, words_of
from mavic.apps.recording import Recording
from mavic.apps.stage import StageError
from mavic.envs import api
from mavic.language.encoder import EncoderError

TOLD_AT = 12  # the tick at which a sentence is said
HOLDS = 40  # ticks for which it holds
TICKS = 90  # of an episode that are shown
SEED = 1


class Page(NamedTuple):
    """A page of the build."""

    world: str
    words: str  # what is said in it
    file: str


def export(catalog: Catalog, folder: Path, say: Callable[[str], None]) -> Path:
    """Write the build into `folder` and return its first page. `say` is told of every page."""
    folder.mkdir(parents=True, exist_ok=True)
    pages: list[Page] = []
    for world, teams in catalog.teams.items():
        for words, recordings in _episodes(world, list(teams.values())[:2], catalog.shield):
            page = Page(world, words, f"{world}-{len(pages) + 1}.html")
            title = f"{api.known(world).title or api.plain(world)}: “{words}”"
            replay.html(recordings, folder / page.file, title)
            pages.append(page)
            say(f"{folder / page.file}: “{words}”")
    first = folder / "index.html"
    first.write_text(index(pages), encoding="utf-8")
    return first


def _episodes(
    world: str, teams: Sequence[Entry], shield: bool
) -> Iterator[tuple[str, list[Recording]]]:
    """Yield sentences and the episodes in which the teams hear them. Sentences that are unclear are left out."""
    record = partial(recording.record_policy, seed=SEED, ticks=TICKS, shield=shield)
    nothing = [(TICKS, "none", 1)]  # a script replaces the schedule; this one asks for nothing
    undisturbed = record(teams[0].path, script=nothing)
    told_at = min(TOLD_AT, len(undisturbed.frames) // 3)
    phrases = [kind.train[0] for kind in words_of(world).kinds]
    for words in api.known(world).examples or phrases[:3]:
        script = [(told_at, words, HOLDS)]
        try:
            yield words, [record(team.path, script=script) for team in teams]
        except (StageError, EncoderError):
            continue


def index(pages: Sequence[Page]) -> str:
    """Return the first page, with a link to every other."""
    web = resources.files("mavic.apps") / "web"
    worlds = dict.fromkeys(page.world for page in pages)
    parts = []
    for world in worlds:
        record = api.known(world)
        links = "".join(
            f'<li><a href="{markup.escape(page.file)}">{markup.escape(page.words)}</a></li>'
            for page in pages
            if page.world == world
        )
        title = markup.escape(record.title or api.plain(world))
        parts.append(
            f"<section><h2>{title}</h2><p>{markup.escape(record.job)}</p><ul>{links}</ul></section>"
        )
    template = (web / "export.html").read_text(encoding="utf-8")
    style = (web / "stage.css").read_text(encoding="utf-8")
    return replay.fill(template, {"style": style, "sections": "\n".join(parts)})

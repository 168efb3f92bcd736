"""A static build: recorded episodes of every world as pages that any web host serves."""

from __future__ import annotations

import html as markup
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

from mavic.apps import replay
from mavic.apps.playground.catalog import Catalog
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.language.encoder import EncoderError
from mavic.teams.stage import StageError

TOLD_AT = 12  # the tick at which a sentence is said
HOLDS = 40  # ticks for which it holds
TICKS = 90  # of an episode that are shown
SEED = 1


def export(catalog: Catalog, folder: Path, say: Callable[[str], None]) -> Path:
    """Write the build.

    Args:
        catalog: the teams; of each world, the first two play side by side.
        folder: where to write.
        say: it is told of every page.

    Returns:
        The path of the first page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links: dict[str, list[str]] = {}  # by world
    count = 0
    for world, teams in catalog.teams.items():
        for words, recordings in _episodes(
            world, [team.path for team in teams.values()][:2], catalog.shield
        ):
            count += 1
            file = f"{world}-{count}.html"
            replay.html(recordings, folder / file, f"{_title(world)}: “{words}”")
            link = f'<li><a href="{markup.escape(file)}">{markup.escape(words)}</a></li>'
            links.setdefault(world, []).append(link)
            say(f"{folder / file}: “{words}”")
    first = folder / "index.html"
    first.write_text(_index(links), encoding="utf-8")
    return first


def _episodes(
    world: str, teams: Sequence[Path], shield: bool
) -> Iterator[tuple[str, list[Recording]]]:
    """Yield sentences and the episodes in which the teams hear them. Sentences that are unclear are left out."""
    record = partial(Recording.of_policy, seed=SEED, ticks=TICKS, shield=shield)
    silence = [(TICKS, "none", 1)]  # a script replaces the schedule; this one gives no instruction
    undisturbed = record(teams[0], script=silence)
    told_at = min(TOLD_AT, len(undisturbed.frames) // 3)
    phrases = [kind.train[0] for kind in InstructionFile.read(instructions_of(world)).kinds]
    for words in api.known(world).examples or phrases[:3]:
        script = [(told_at, words, HOLDS)]
        try:
            yield words, [record(team, script=script) for team in teams]
        except (StageError, EncoderError):
            continue


def _title(world: str) -> str:
    return api.known(world).title or api.plain(world)


def _index(links: Mapping[str, Sequence[str]]) -> str:
    """Return the first page, with the links of each world."""
    web = resources.files("mavic.apps") / "web"
    sections = [
        f"<section><h2>{markup.escape(_title(world))}</h2><p>{markup.escape(api.known(world).job)}</p>"
        f"<ul>{''.join(found)}</ul></section>"
        for world, found in links.items()
    ]
    template = (web / "export.html").read_text(encoding="utf-8")
    style = (web / "stage.css").read_text(encoding="utf-8")
    return replay.fill(template, {"style": style, "sections": "\n".join(sections)})

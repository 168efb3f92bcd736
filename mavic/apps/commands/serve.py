"""`mavic serve`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, needing
from mavic.ranges import Range

TOKEN = "MAVIC_TOKEN"


@dataclass(frozen=True, kw_only=True)
class Serve(Command):
    """Serve a team to robots over HTTP and WebSocket (extra: mavic[web]). docs/robots.md describes the messages.

    For example:
      mavic serve team --log robots.jsonl
      mavic serve overcooked/mavic --port 8643 --shield
    """

    team: Positional[Path]
    """The folder that `mavic export team` wrote, a policy file, or the name of a shipped team."""
    host: str = "127.0.0.1"
    """The address to listen on. Every request needs the token, which is printed; the environment variable MAVIC_TOKEN
    sets it."""
    port: Annotated[int, Range(0, 65_535)] = 8643
    """The port to listen on; 0 takes a free one."""
    shield: bool = False
    """Enforce instructions: what they forbid is not available to the agents they address."""
    greedy: bool = False
    """Take the most likely macro instead of a sampled one."""
    silent_after: Annotated[float, Range(0, 1e9, above=True)] = 30.0
    """Seconds without a report after which a robot is given up until it reports again."""
    reader: str | None = None
    """The address of an OpenAI-compatible endpoint that reads sentences (default: the team's own reader)."""
    log: Path | None = None
    """The file for every event and decision, which `mavic replay` draws."""

    def run(self) -> None:
        """Carry out the command."""
        with needing("web", "mavic serve"):
            from mavic.runtime import server
        with needing("language", "mavic serve"):
            from mavic.runtime.team import open_team

        with tempfile.TemporaryDirectory() as place:
            team = open_team(
                self._folder(Path(place)),
                reader=self.reader,
                shield=self.shield,
                greedy=self.greedy,
                silent_after=self.silent_after,
                log=self.log,
            )
            server.serve(team, self.host, self.port, _say, token=os.environ.get(TOKEN, ""))

    def _folder(self, place: Path) -> Path:
        """Return the folder of the team. A policy is exported into a temporary one."""
        from mavic.runtime.folder import FACTS

        if (self.team / FACTS).is_file():
            return self.team
        with needing("interop", "serving a policy file"):
            from mavic.bridges import team_folder
        from mavic.teams import file as policy_files

        return team_folder.export(policy_files.load(self.team), place, reader=self.reader is None)


def _say(text: str) -> None:
    console.OUT.print(text, soft_wrap=True, markup=False)

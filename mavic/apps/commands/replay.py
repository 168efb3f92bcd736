"""`mavic replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError, options_from
from mavic.ranges import Range, Seed

if TYPE_CHECKING:
    from mavic.apps.recording import Recording

Tick = Annotated[int, Range(0, 10**6)]
Ticks = Annotated[int, Range(1, 10**6)]


@dataclass(frozen=True, kw_only=True)
class Replay(Command):
    """Record an episode: as one HTML page that needs no server, or as a GIF.

    For example:
      mavic replay box_pushing/mavic --out replay.html
      mavic replay box_pushing/mavic --against box_pushing/naive --say 3 "don't push" 12 --out r.html
      mavic replay robots.jsonl --out robots.html
    """

    policy: Positional[Path]
    """The team's policy file, a shipped team such as box_pushing/mavic, or the log of a team on robots (.jsonl)."""
    against: Path | None = None
    """Another team to show beside it, with the same seed and the same instructions."""
    say: tyro.conf.UseAppendAction[tuple[tuple[Tick, str, Ticks], ...]] = ()
    """An instruction: the tick at which it is given, its words, and the ticks for which it holds. Repeat the option for
    more instructions. Without it, instructions come by the schedule that the policy file names."""
    also: tyro.conf.UseAppendAction[tuple[tuple[Tick, str, Ticks], ...]] = ()
    """An instruction that holds beside the active one instead of replacing it, as in --say. At most two hold at
    once."""
    seed: Seed = 1
    """Which episode."""
    ticks: Ticks | None = None
    """Stop after this many ticks."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world that differ from the team's training, such as: --options third_cook true."""
    shield: bool = False
    """Enforce instructions: what they forbid is not available to the agents they address."""
    out: Path = Path("replay.html")
    """The file to write. It ends in .html or .gif."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.apps import replay
        from mavic.storage import files

        if self.out.suffix not in (".html", ".gif"):
            raise UserError(f"{self.out}: must end in .html or .gif")
        files.check_writable(self.out.parent)
        made = [self._logged()] if self.policy.suffix == ".jsonl" else self._played()
        if self.out.suffix == ".gif":
            written = replay.gif(made, self.out)
        else:
            written = replay.html(made, self.out, " and ".join(one.name for one in made))
        console.OUT.print(f"wrote {written}")

    def _logged(self) -> Recording:
        from mavic.apps import robot_log

        if self.against or self.say or self.also or self.options or self.shield:
            raise UserError("a log is shown as it is: --out and --ticks are its only options")
        return robot_log.recording_of(self.policy, self.ticks)

    def _played(self) -> list[Recording]:
        from mavic.apps.recording import Recording

        paths = [self.policy] + ([self.against] if self.against else [])
        options = options_from(self.options)
        return [
            Recording.of_policy(
                path, self.seed, self.say, self.ticks, options, self.shield, self.also
            )
            for path in paths
        ]

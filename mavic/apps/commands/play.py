"""`mavic play`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError, needing
from mavic.apps.commands.options import Folder
from mavic.ranges import Range

if TYPE_CHECKING:
    from mavic.apps.playground.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class Play(Command):
    """Open the playground: talk to teams in a browser and watch them, or drive one of their agents.

    For example:
      mavic play
      mavic play --policy runs/box_pushing/mavic-protected --against box_pushing/naive
      mavic play --host 0.0.0.0 --port 8000
      mavic play --export site
      mavic play --study my_study.toml
    """

    policy: Path | None = None
    """A policy file of your own, listed before the shipped teams, or the name of a shipped team."""
    against: Path | None = None
    """Another policy file of the same world, to compare with it."""
    policies: Folder | None = None
    """The folder of the teams, with a folder for each world (default: the shipped teams)."""
    shield: bool = False
    """Enforce instructions: what they forbid is not available to the agents they address."""
    host: str = "127.0.0.1"
    """The address to listen on. Other machines can connect only if you name an address that they reach; they are then
    asked for a token."""
    port: Annotated[int, Range(0, 65_535)] = 8642
    """The port to listen on; 0 takes a free one."""
    browser: bool = True
    """Open the page in your browser."""
    export: Folder | None = None
    """Do not open the playground; write recorded episodes into this folder, as pages that any web host serves."""

    study: Path | None = None
    """Run a study with people: its plan (begun with `mavic new NAME --study`). A link for each person is printed."""
    records: Folder | None = None
    """With --study: the folder of the links and of one record for each person (default: beside the plan)."""

    def run(self) -> None:
        """Carry out the command."""
        if self.export is not None and self.study is not None:
            raise UserError("--export and --study are two commands; give one of them")
        if self.records is not None and self.study is None:
            raise UserError("--records is the folder of a study; name its plan with --study")
        with needing("web", "the playground"):
            from mavic.apps.playground import server
        import jax

        from mavic.apps.playground import catalog, heaps

        heaps.share_heaps()
        if "JAX_PLATFORMS" not in os.environ:  # small programs run fastest on the CPU
            jax.config.update("jax_platforms", "cpu")
        teams = catalog.open_catalog(self.policies, self.policy, self.against, shield=self.shield)
        if self.export is not None:
            from mavic.apps.playground import export

            _say(f"open {export.export(teams, self.export, _say)} in a browser")
            return
        if self.study is not None:
            self._study(self.study, teams)
            return
        server.play(teams, self.host, self.port, _say, browser=self.browser)

    def _study(self, path: Path, teams: Catalog) -> None:
        from mavic.apps.participants import plan
        from mavic.apps.participants import server as study

        try:
            read = plan.read(path, teams)
        except plan.PlanError as error:
            for line in str(error).splitlines():
                console.ERR.print(line, soft_wrap=True, markup=False, highlight=False)
            raise UserError(f"{path}: nothing was begun; mend the lines above") from None
        folder = self.records or path.with_name(f"{path.stem}-records")
        study.run_study(read, teams, folder, self.host, self.port, _say)


def _say(text: str) -> None:
    console.OUT.print(text, soft_wrap=True, markup=False)

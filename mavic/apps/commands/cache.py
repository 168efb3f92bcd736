"""`mavic cache`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command


@dataclass(frozen=True, kw_only=True)
class Cache(Command):
    """Show what mavic keeps on disk between commands, or remove it.

    Compiled programs are kept up to 1024 MB. MAVIC_CACHE_MB sets another limit; 0 keeps none.

    For example:
      mavic cache
      mavic cache clear
    """

    action: Positional[Literal["show", "clear"]] = "show"
    """show lists the sizes; clear removes everything."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.apps import cache

        if self.action == "clear":
            cache.clear()
        console.OUT.print(str(cache.folder()), highlight=False, soft_wrap=True)
        for part in cache.parts():
            line = f"  {part.name}: {part.files} files, {part.megabytes:.1f} MB ({part.meaning})"
            console.OUT.print(line, highlight=False, soft_wrap=True)

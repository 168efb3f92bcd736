"""`mavic worlds`."""

from __future__ import annotations

from dataclasses import dataclass

from mavic.apps import console
from mavic.apps.commands.command import Command


@dataclass(frozen=True, kw_only=True)
class Worlds(Command):
    """List the worlds: their options with defaults, agents, macros and kinds of instruction.

    Example: mavic worlds
    """

    def run(self) -> None:
        """Carry out the command."""
        from mavic.envs import api
        from mavic.experiments.config import make_task

        for name in api.names():
            task = make_task(name)
            console.OUT.rule(name)
            options = ", ".join(f"{k} {v}" for k, v in api.options_of(task.env).items())
            if options:
                console.OUT.print(f"options: {options}", highlight=False)
            for agent, macros in zip(task.env.agents, task.env.macros, strict=True):
                console.OUT.print(f"[bold]{agent}[/]: {', '.join(m.name for m in macros)}")
            for kind in task.file.kinds:
                rule = kind.rule + (", extra" if kind.extra else "")
                console.OUT.print(
                    f"  [green]{kind.name}[/] ({rule}): {kind.meaning} — “{kind.train[0]}”"
                )

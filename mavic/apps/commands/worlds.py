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
        from mavic.instruct.spec import InstructionFile

        for name in api.names():
            env, path = api.make(name), api.world(name).instructions
            console.OUT.rule(name)
            options = ", ".join(f"{k} {v}" for k, v in api.options_of(env).items())
            if options:
                console.OUT.print(f"options: {options}")
            for agent, macros in zip(env.agents, env.macros, strict=True):
                console.OUT.print(f"[bold]{agent}[/]: {', '.join(m.name for m in macros)}")
            if path is None:
                console.OUT.print("no instruction file: register the world with one to train it")
            for kind in InstructionFile.read(path).kinds if path else ():
                rule = kind.rule + (", extra" if kind.extra else "")
                console.OUT.print(
                    f"  [green]{kind.name}[/] ({rule}): {kind.meaning} — “{kind.train[0]}”"
                )

"""`mavic new`."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError

SKELETONS = Path(__file__).parents[1] / "skeletons"
CHECKS = {
    "python": """def test_the_simulator_repeats_itself():
    from mavic.simulators.check import difference

    assert difference(mavic.make("NAME").description) == ""


""",
    "jax": """def test_the_world_keeps_the_protocol():
    from mavic.envs.conformance import check_env

    check_env(mavic.make("NAME"))


""",
}


@dataclass(frozen=True, kw_only=True)
class New(Command):
    """Write a world of your own that trains at once: a module, its instruction file and a test (docs/simulator.md).

    Example: mavic new my_world --python
    """

    name: Positional[str]
    """The world's name. It is also the module's."""
    python: bool = False
    """A simulator in plain Python, with macros."""
    jax: bool = False
    """A JAX environment, with macros."""
    out: Path = Path(".")
    """The folder to write to."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.envs import api
        from mavic.storage import files

        if self.python == self.jax:
            raise UserError("say which one: mavic new NAME --python, or mavic new NAME --jax")
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise UserError(
                f"{self.name!r} cannot be the name of a module; use letters, digits and underscores"
            )
        if self.name in api.names():
            raise UserError(f"a world called {self.name!r} exists already; choose another name")
        sort = "python" if self.python else "jax"
        texts = {
            f"{self.name}.py": (SKELETONS / f"{sort}.py.txt").read_text(encoding="utf-8"),
            f"{self.name}.toml": (SKELETONS / "instructions.toml.txt").read_text(encoding="utf-8"),
            f"test_{self.name}.py": (SKELETONS / "test.py.txt")
            .read_text(encoding="utf-8")
            .replace("CHECK\n", CHECKS[sort]),
        }
        there = [name for name in texts if (self.out / name).exists()]
        if there:
            raise UserError(f"{self.out / there[0]} exists already; nothing was written")
        for name, text in texts.items():
            files.write_text(self.out / name, text.replace("NAME", self.name))
            console.OUT.print(f"wrote {self.out / name}", soft_wrap=True)
        console.OUT.print(
            f"train it: mavic train {self.name} --plugins {self.name} --method mavic --seeds 2 --episodes 6000 "
            "--batch 32 --quick",
            soft_wrap=True,
        )

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
    """Write a world of your own that trains at once: a module, its instruction file and a test (docs/simulator.md). Or
    write the plan of a study with people.

    For example:
      mavic new my_world --python
      mavic new my_study --study
    """

    name: Positional[str]
    """The world's name. It is also the module's."""
    python: bool = False
    """A simulator in plain Python, with macros."""
    jax: bool = False
    """A JAX environment, with macros."""
    study: bool = False
    """The plan of a study with people, for mavic play --study."""
    out: Path = Path(".")
    """The folder to write to."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.envs import api
        from mavic.storage import files

        if self.python + self.jax + self.study != 1:
            raise UserError("say which one: mavic new NAME --python, --jax or --study")
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise UserError(
                f"{self.name!r} cannot be the name of a module; use letters, digits and underscores"
            )
        if self.name in api.names():
            raise UserError(f"a world called {self.name!r} exists already; choose another name")
        texts = {f"{self.name}.toml": _skeleton("study.toml")} if self.study else self._world()
        there = [name for name in texts if (self.out / name).exists()]
        if there:
            raise UserError(f"{self.out / there[0]} exists already; nothing was written")
        for name, text in texts.items():
            files.write_text(self.out / name, text.replace("NAME", self.name))
            console.OUT.print(f"wrote {self.out / name}", soft_wrap=True)
        begin = f"begin it: mavic play --study {self.out / self.name}.toml"
        train = (
            f"train it: mavic train {self.name} --plugins {self.name} --method mavic --seeds 2 --episodes 6000 "
            "--batch 32 --quick"
        )
        console.OUT.print(begin if self.study else train, soft_wrap=True)

    def _world(self) -> dict[str, str]:
        """Return the files of a world by name."""
        sort = "python" if self.python else "jax"
        return {
            f"{self.name}.py": _skeleton(f"{sort}.py"),
            f"{self.name}.toml": _skeleton("instructions.toml"),
            f"test_{self.name}.py": _skeleton("test.py").replace("CHECK\n", CHECKS[sort]),
        }


def _skeleton(name: str) -> str:
    return (SKELETONS / f"{name}.txt").read_text(encoding="utf-8")

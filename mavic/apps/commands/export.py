"""`mavic export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, needing


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a team or records in the format of another library (extra: mavic[interop]), or a study with people as CSV.

    For example:
      mavic export onnx box_pushing/mavic --out team.onnx
      mavic export team overcooked/mavic --out team
      mavic export marl-eval results/box_pushing --out box_pushing.json
      mavic export study my_study-records --out my_study-tables
    """

    format: Positional[Literal["onnx", "team", "marl-eval", "study"]]
    """onnx takes a policy and writes its actors. team takes a policy and writes a folder that mavic.runtime runs
    without JAX. marl-eval takes a folder of records and writes JSON. study takes the folder of a study with people and
    writes a folder of CSV files: a row for each person, task and sentence."""
    source: Positional[Path]
    """The policy file, the name of a shipped team, or the folder of records."""
    out: Path
    """The file to write, for team and study the folder. A model's name gets the ending .onnx."""
    without_reader: bool = False
    """For team: leave out the reader and its encoder (69 MB). The team then takes kinds and training phrases."""

    def run(self) -> None:
        """Carry out the command."""
        write = {
            "onnx": self._onnx,
            "team": self._team,
            "marl-eval": self._marl_eval,
            "study": self._study,
        }
        written = write[self.format]()
        console.OUT.print(f"wrote {written}")

    def _onnx(self) -> Path:
        with needing("interop", "this"):
            from mavic.bridges import onnx
        from mavic.teams import file as policy_files

        return onnx.export(policy_files.load(self.source), self.out)

    def _team(self) -> Path:
        with needing("interop", "this"):
            from mavic.bridges import team_folder
        from mavic.teams import file as policy_files

        team = policy_files.load(self.source)
        return team_folder.export(team, self.out, reader=not self.without_reader)

    def _marl_eval(self) -> Path:
        import json

        from mavic.bridges import marl_eval

        self.out.write_text(json.dumps(marl_eval.export(self.source)) + "\n", encoding="utf-8")
        return self.out

    def _study(self) -> Path:
        with needing("web", "this"):
            from mavic.apps.participants import tables

        tables.export(self.source, self.out)
        return self.out

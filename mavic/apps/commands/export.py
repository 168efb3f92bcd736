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
    """Write a team or records in the format of another library (extra: mavic[interop]).

    For example:
      mavic export onnx box_pushing/mavic --out team.onnx
      mavic export marl-eval results/box_pushing --out box_pushing.json
    """

    format: Positional[Literal["onnx", "marl-eval"]]
    """onnx takes a policy and writes its actors. marl-eval takes a folder of records and writes JSON."""
    source: Positional[Path]
    """The policy file, the name of a shipped team, or the folder of records."""
    out: Path
    """The file to write. A model's name gets the ending .onnx."""

    def run(self) -> None:
        """Carry out the command."""
        written = self._onnx() if self.format == "onnx" else self._marl_eval()
        console.OUT.print(f"wrote {written}")

    def _onnx(self) -> Path:
        with needing("interop", "this"):
            from mavic.bridges import onnx
        from mavic.teams import file as policy_files

        return onnx.export(policy_files.load(self.source), self.out)

    def _marl_eval(self) -> Path:
        import json

        from mavic.bridges import marl_eval

        self.out.write_text(json.dumps(marl_eval.export(self.source)) + "\n", encoding="utf-8")
        return self.out

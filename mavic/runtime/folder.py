"""The folder that `mavic export team` writes: `team.json`, the actors as ONNX, and what reads sentences.

`team.json` holds the hash of every other file and of itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mavic.storage import files, json_shape

FORMAT = 2
FACTS = "team.json"
ACTORS = "actors.onnx"
HEAD = "reader.npz"
ENCODER = "encoder.onnx"
VOCABULARY = "vocabulary.txt"
SHAPE = {
    "format": int,
    "world": str,
    "agents": [str],
    "macros": [[str]],
    "kinds": [str],
    "predicates": [str],  # on which kinds depend; robots report which hold
    "phrases": json_shape.Map([str]),
    "hear": str,
    "heard": [[float]],
    "observation": int,
    "needs": str,
    "memory": [int],
    "rules": {
        "allowed": [[[bool]]],
        "lists_allowed": [bool],
        "addressed": [[bool]],
        "effect": [int],
        "predicate": [int],
        "negated": [bool],
    },
    "versions": json_shape.Map(str),
    "files": json_shape.Map(str),
}


class ExportError(ValueError):
    """The folder is damaged, incomplete or of another format. The message says which file."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A folder that was read and checked."""

    path: Path
    facts: dict[str, Any]

    def file(self, name: str) -> Path | None:
        """Return the path of a file whose hash was checked, or None if the export has no such file.

        Args:
            name: such as `ACTORS`.
        """
        wanted = self.facts["files"].get(name)
        if wanted is None:
            return None
        path = self.path / name
        try:
            with open(path, "rb") as source:
                found = hashlib.file_digest(source, "sha256").hexdigest()
        except OSError as error:
            raise ExportError(f"{path}: cannot be read ({error.strerror or error})") from None
        if found != wanted:
            raise ExportError(f"{path}: damaged (its hash differs); export the team again")
        return path


def open_export(path: str | Path) -> Export:
    """Return an exported team, checked.

    Args:
        path: the folder.
    """
    facts_path = Path(path) / FACTS
    try:
        facts = json_shape.parse(files.read_bytes(facts_path))
        json_shape.check(facts, {"format": int})
        if facts["format"] != FORMAT:
            raise ExportError(
                f"{facts_path}: format {facts['format']}, this version of mavic reads format {FORMAT}"
            )
        json_shape.check(facts, SHAPE)
    except OSError as error:
        raise ExportError(
            f"{facts_path}: cannot be read ({error.strerror or error}); "
            "a team is exported by: mavic export team TEAM --out FOLDER"
        ) from None
    except files.TooLargeError as error:
        raise ExportError(str(error)) from None
    except json_shape.ShapeError as error:
        raise ExportError(f"{facts_path}: not an exported team ({error})") from None
    hashed = facts.pop("sha256", None)
    if hashed != files.digest_of(facts):
        raise ExportError(f"{facts_path}: damaged or edited; export the team again")
    return Export(path=Path(path), facts=facts)

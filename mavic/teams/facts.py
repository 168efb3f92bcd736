"""The description of a policy file: JSON beside the weights, checked when it is read.

It holds the hash of the weights and a hash of itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mavic.experiment.config import ExperimentConfig
from mavic.preset import Preset
from mavic.ranges import Range, check_value
from mavic.storage import files, json_shape
from mavic.teams import shipped

FORMAT = 2
FACTS = {  # what a description must hold
    "world": str,
    "agents": [str],
    "macros": [[str]],
    "macro_counts": [int],
    "kinds": [str],
    "examples": [str],
    "addressed": [[str]],
    "encoder": str,
    "encoder_hash": str,
    "shape": dict,
    "observation": int,
    "config": dict,
    "preset": dict,
    "seed": int,
    "versions": json_shape.Map(str),
    "weights_sha256": str,
}
OPTIONAL = {"collapsed": json_shape.Map((int, float))}
"""What a description may hold: kinds under which the team hardly does its task, with the share that is left."""
Size = Annotated[int, Range(0, 10**6)] | bool | str | None
UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError)
"""What the makers of records raise for values that have the wrong type."""


class PolicyError(ValueError):
    """The file or its use is wrong. The message says what is allowed."""


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return the description of a policy. The path may have an ending or none."""
    notes = shipped.notes_of(shipped.find(path))
    try:
        facts = json_shape.parse(files.read_bytes(notes))
        json_shape.check(facts, {"format": int})
    except OSError:
        raise PolicyError(shipped.no_such_file(notes)) from None
    except files.TooLargeError as error:
        raise PolicyError(str(error)) from None
    except json_shape.ShapeError as error:
        raise PolicyError(f"{notes}: not a policy's description ({error})") from None
    if facts["format"] != FORMAT:
        made_by = facts.get("versions")
        version = made_by.get("mavic", "unknown") if isinstance(made_by, dict) else "unknown"
        raise PolicyError(
            f"{notes}: format {facts['format']}, this version of mavic reads format {FORMAT}; "
            f"install the version that wrote it ({version})"
        )
    if missing := [name for name in FACTS if name not in facts]:
        raise PolicyError(f"{notes}: not a policy's description (without {', '.join(missing)})")
    hashed = facts.pop("sha256", None)
    try:
        json_shape.check(facts, FACTS)
        json_shape.check(facts, {name: OPTIONAL[name] for name in OPTIONAL if name in facts})
        _check_facts(facts)
    except UNREADABLE as error:
        raise PolicyError(f"{notes}: not a policy's description ({error})") from None
    if hashed != files.digest_of(facts):
        how = "its hash differs" if hashed else "it has no hash"
        raise PolicyError(
            f"{notes}: damaged or edited ({how}); take it from a backup, or train the team again"
        )
    return facts


def _check_facts(facts: dict[str, Any]) -> None:
    """Raise an error of `UNREADABLE` unless the facts agree with each other and make records."""
    agents, kinds = len(facts["agents"]), len(facts["kinds"])
    lengths = {"macros": agents, "macro_counts": agents, "examples": kinds, "addressed": kinds}
    for name, length in lengths.items():
        if len(facts[name]) != length:
            raise ValueError(f"{name} must have {length} entries, not {len(facts[name])}")
    if facts["macro_counts"] != [len(names) for names in facts["macros"]]:
        raise ValueError("macro_counts must count the macros")
    config = ExperimentConfig.of(facts["config"])
    if config.world != facts["world"]:
        raise ValueError(f"world is {facts['world']!r} but config.world is {config.world!r}")
    Preset.of(facts["preset"])
    for shape in ("shape", "critic_shape"):
        for name, size in facts.get(shape, {}).items():
            for one in size if isinstance(size, list) else [size]:
                check_value(one, Size, f"{shape}.{name}")

"""The description of a policy file: JSON beside the weights, checked when it is read.

Format 2 is written; format 1 (version 0.1) is still read. The description has the hash of the weights and that of
itself. Files of older versions have no hashes; only their shapes are checked.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

from mavic import renamed
from mavic.experiments import files, json_shape, shipped_teams
from mavic.experiments.config import ExperimentConfig
from mavic.preset import Preset
from mavic.ranges import Range, check_value

FORMAT = 2
READABLE = (1, FORMAT)
FACTS = {  # what a description must hold, and what it may hold
    "world": str,
    "agents": [str],
    "macros": [[str]],
    "macro_counts": [int],
    "kinds": [str],
    "examples": [str],
    "encoder": str,
    "encoder_hash": str,
    "shape": dict,
    "config": dict,
    "preset": dict,
}
MORE_FACTS = {
    "seed": int,
    "critic_shape": dict,
    "observation": int,
    "addressed": [[str]],
    "versions": json_shape.Map(str),
    "weights_sha256": str,
    "sha256": str,
}
ENTRIES = ("format", *renamed.FIELDS, *FACTS, *MORE_FACTS, "needs", "module")
Size = Annotated[int, Range(0, 10**6)] | bool | str | None
UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError)
"""What the makers of records raise for values that have the wrong type."""


class PolicyError(ValueError):
    """The file or its use is wrong. The message says what is allowed."""


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Write the description beside the weights, with a hash of itself."""
    content = json.loads(json.dumps({"format": FORMAT, **facts}))
    content.pop("sha256", None)
    text = json.dumps({**content, "sha256": files.digest_of(content)}, indent=1) + "\n"
    files.write_text(shipped_teams.notes_of(path), text)


def read_facts(path: str | Path) -> dict[str, Any]:
    """Return the description of a policy in the names of format 2. The path may have an ending or none."""
    notes = shipped_teams.notes_of(shipped_teams.find(path))
    try:
        facts = json_shape.parse(notes.read_bytes())
        json_shape.check(facts, {"format": int})
    except OSError:
        raise PolicyError(shipped_teams.no_such_file(notes)) from None
    except json_shape.ShapeError as error:
        raise PolicyError(f"{notes}: not a policy's description ({error})") from None
    found = facts["format"]
    if found not in READABLE:
        made_by = facts.get("versions")
        raise PolicyError(
            f"{notes}: format {found}, this version of mavic reads formats "
            f"{' and '.join(map(str, READABLE))}; install the version that wrote it "
            f"({made_by.get('mavic', 'unknown') if isinstance(made_by, dict) else 'unknown'})"
        )
    hashed = facts.pop("sha256", None)
    odd = [name for name in facts if name not in ENTRIES]
    if hashed is None and odd:  # the name of the hash itself may be damaged
        raise PolicyError(
            f"{notes}: damaged: no hash, and an entry {odd[0]!r} that mavic never writes"
        )
    if hashed is not None and hashed != files.digest_of(facts):
        edited = f'{notes}: damaged or edited (its hash differs); if you edited it, set its "sha256" to null'
    else:
        edited = ""
    facts = renamed.in_present_names(facts, renamed.FIELDS)
    if missing := [name for name in FACTS if name not in facts]:
        raise PolicyError(f"{notes}: not a policy's description (without {', '.join(missing)})")
    try:
        json_shape.check(facts, FACTS)
        json_shape.check(facts, {k: v for k, v in MORE_FACTS.items() if facts.get(k) is not None})
        facts = facts if found == FORMAT else translated(facts)
        _check_facts(facts)
    except UNREADABLE as error:
        raise PolicyError(f"{notes}: not a policy's description ({error})") from None
    if edited:
        raise PolicyError(edited)
    return facts


def _check_facts(facts: dict[str, Any]) -> None:
    """Raise an error of `UNREADABLE` unless the facts agree with each other and make records."""
    agents, kinds = len(facts["agents"]), len(facts["kinds"])
    for name, length in (("macros", agents), ("macro_counts", agents), ("examples", kinds)):
        if len(facts[name]) != length:
            raise ValueError(f"{name} must have {length} entries, not {len(facts[name])}")
    if facts["macro_counts"] != [len(names) for names in facts["macros"]]:
        raise ValueError("macro_counts must count the macros")
    if facts.get("addressed") and len(facts["addressed"]) != kinds:
        raise ValueError(f"addressed must have {kinds} entries, not {len(facts['addressed'])}")
    config = ExperimentConfig.of(facts["config"])
    if config.world != facts["world"]:
        raise ValueError(f"world is {facts['world']!r} but config.world is {config.world!r}")
    Preset.of(facts["preset"])
    for shape in ("shape", "critic_shape"):
        for name, size in facts.get(shape, {}).items():
            for one in size if isinstance(size, list) else [size]:
                check_value(one, Size, f"{shape}.{name}")


def translated(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts of format 1, whose "cell" is already called "config", in the names of format 2."""
    return {
        **facts,
        "format": FORMAT,
        "config": dataclasses.asdict(ExperimentConfig.of(facts["config"])),
        "preset": dataclasses.asdict(Preset.of(facts["preset"])),
    }

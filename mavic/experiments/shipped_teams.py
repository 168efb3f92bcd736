"""The teams that come with the package, found by names such as `box_pushing/mavic`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from mavic.hints import suggest

ENDINGS = (".safetensors", ".json")  # of the two files of a policy


def folder() -> Path:
    """Return the folder of the shipped teams: inside an installed package, or at the top of a checkout."""
    package = Path(str(resources.files("mavic")))
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "policies"


def names() -> tuple[str, ...]:
    """Return the names of the shipped teams, such as `box_pushing/mavic`."""
    found = sorted(folder().glob("*/*.safetensors"))
    return tuple(path.relative_to(folder()).with_suffix("").as_posix() for path in found)


def find(path: str | Path) -> Path:
    """Return the path of a policy without its ending. A file of the user comes before a shipped team of that name."""
    bare = Path(path).with_suffix("")
    own = any(bare.with_suffix(ending).is_file() for ending in ENDINGS)
    return folder() / bare if not own and bare.as_posix() in names() else bare


def no_such_file(path: Path) -> str:
    """Return the error message for a policy's file that is not there."""
    name = path.with_suffix("").as_posix()
    return (
        f"{path}: no such file; a policy is a .safetensors file and a .json, "
        f"or the name of a shipped team; {suggest(name, names())}"
    )

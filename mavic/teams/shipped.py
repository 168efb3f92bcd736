"""The teams that come with the package, found by names such as `box_pushing/mavic`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from mavic.hints import suggest

WEIGHTS, NOTES = ENDINGS = (".safetensors", ".json")  # of the two files of a policy


def bare(path: str | Path) -> Path:
    """Return a policy's path without its ending. Other dots belong to its name: `mavic-0.5`."""
    text = str(path)
    return Path(next((text.removesuffix(e) for e in ENDINGS if text.endswith(e)), text))


def weights_of(path: str | Path) -> Path:
    """Return the file of a policy's weights. The path may have an ending or none."""
    return Path(f"{bare(path)}{WEIGHTS}")


def notes_of(path: str | Path) -> Path:
    """Return the file of a policy's description. The path may have an ending or none."""
    return Path(f"{bare(path)}{NOTES}")


def folder() -> Path:
    """Return the folder of the shipped teams: inside an installed package, or at the top of a checkout."""
    package = Path(str(resources.files("mavic")))
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "policies"


def _names() -> tuple[str, ...]:
    """Return the names of the shipped teams, such as `box_pushing/mavic`."""
    found = sorted(folder().glob("*/*.safetensors"))
    return tuple(bare(path.relative_to(folder())).as_posix() for path in found)


def find(path: str | Path) -> Path:
    """Return the path of a policy without its ending. A file of the user comes before a shipped team of that name."""
    found = bare(path)
    own = weights_of(found).is_file() or notes_of(found).is_file()
    return folder() / found if not own and found.as_posix() in _names() else found


def no_such_file(path: Path) -> str:
    """Return the error message for a policy's file that is not there."""
    name = bare(path)
    missing = f"{name} is a folder" if name.is_dir() else f"{path}: no such file"
    return (
        f"{missing}; a policy is a .safetensors file and a .json, "
        f"or the name of a shipped team; {suggest(name.as_posix(), _names())}"
    )

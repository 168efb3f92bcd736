"""Build the wheel, install it into an empty environment, and use it from another folder: `make test-wheel`.

The package must pass `twine check` and weigh at most 16 MB. The README's Python blocks run as they stand, and so do
commands that need no checkout.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 16  # teams and readers, so that talking needs no download
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = (
    "mavic worlds",
    "mavic replay box_pushing/mavic --ticks 5 --say 1 stay 2 --out replay.html",
    "mavic words box_pushing stay --json",
)


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command; a failure ends the check."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def build(folder: Path) -> Path:
    """Return the wheel, built and checked."""
    run(sys.executable, "-m", "build", "--outdir", folder, cwd=ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir(), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    size = wheel.stat().st_size / 2**20
    print(f"{wheel.name}: {size:.1f} MB", flush=True)
    if size > MOST_MEGABYTES:
        sys.exit(f"the wheel has {size:.1f} MB; at most {MOST_MEGABYTES} are allowed")
    return wheel


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel and run the README's blocks and some commands in an empty folder."""
    place = folder / "environment"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=folder)
    work = folder / "elsewhere"
    work.mkdir()
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    if not blocks:
        sys.exit("the README has no Python block")
    for block in blocks:
        run(python, "-c", block, cwd=work)
    for command in COMMANDS:
        name, *rest = shlex.split(command)
        run(place / "bin" / name, *rest, cwd=work)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        use(build(Path(made) / "dist"), Path(made))
    print("the wheel works", flush=True)

"""`mavic cache`, and the cache on disk: compiled programs, vectors of sentences, and fitted sentence readers.

Compiling takes most of a short command's time, so every command keeps its compiled programs. `MAVIC_CACHE_MB` limits
their size; 0 turns keeping them off. `XDG_CACHE_HOME` moves the whole cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command

LIMIT_MB = 1024
PARTS = {  # the folders of the cache
    "compiled": "compiled programs",
    "vectors": "vectors of sentences",
    "heads": "sentence readers fitted to instruction files of your own",
}


@dataclass(frozen=True, kw_only=True)
class Cache(Command):
    """Show what mavic keeps on disk between commands, or remove it.

    Compiled programs are kept up to 1024 MB. MAVIC_CACHE_MB sets another limit; 0 keeps none.

    For example:
      mavic cache
      mavic cache clear
    """

    action: Positional[Literal["show", "clear"]] = "show"
    """show lists the sizes; clear removes everything."""

    def run(self) -> None:
        """Carry out the command."""
        if self.action == "clear":
            for name in PARTS:
                shutil.rmtree(_folder() / name, ignore_errors=True)
        console.OUT.print(str(_folder()), soft_wrap=True)
        for name, meaning in PARTS.items():
            sizes = [file.size for file in _files(_folder() / name)]
            line = f"  {name}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB ({meaning})"
            console.OUT.print(line, soft_wrap=True)


def _folder() -> Path:
    """Return the folder of the whole cache."""
    from mavic.language.vectors import cache_folder

    return cache_folder()


def _limit_mb() -> float:
    """Return how many megabytes of compiled programs are kept."""
    text = os.environ.get("MAVIC_CACHE_MB", "")
    try:
        return float(text or LIMIT_MB)
    except ValueError:
        raise ValueError(f"MAVIC_CACHE_MB is {text!r}; it must be a number of megabytes") from None


def keep_compiled() -> None:
    """Keep compiled programs on disk from now on, and remove the least recently used ones beyond the limit.

    If the user gave JAX a folder for compiled programs, JAX keeps using that one.
    """
    import jax

    limit = _limit_mb()
    if limit <= 0 or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    place = _folder() / "compiled"
    _prune(place, limit)
    jax.config.update("jax_compilation_cache_dir", str(place / _machine()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _prune(place: Path, limit: float) -> None:
    """Remove the least recently used files below `place` until at most `limit` megabytes are left."""
    found = sorted(_files(place), key=lambda file: file.last_use)
    size = sum(file.size for file in found)
    for file in found:
        if size <= limit * 1e6:
            return
        size -= file.size
        file.path.unlink(missing_ok=True)


class _File(NamedTuple):
    path: Path
    size: int
    last_use: float


def _files(place: Path) -> list[_File]:
    """Return the files below `place`. Those that another command removes meanwhile are left out."""
    found = []
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                about = path.stat()
                found.append(_File(path, about.st_size, max(about.st_atime, about.st_mtime)))
    return found


def _machine() -> str:
    """Return a name for this kind of processor: programs for one may not run on another."""
    facts = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        facts += sorted(
            {line for line in lines if line.startswith(("flags", "Features", "model name"))}
        )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]

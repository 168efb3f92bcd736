"""Atomic writes, hashes, folder locks.

A killed write leaves the earlier file and at most a draft. The next process that locks the folder removes drafts.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]

DRAFT = ".part"  # the ending of a file that is being written
LOCK = ".lock"
LARGEST = (
    64 << 20
)  # bytes of a description, a record or arrays, unpacked; the largest shipped one has 3.4 MB
LARGEST_WEIGHTS = 4 << 30


class _StorageError(OSError):
    """A file or folder cannot be written. The message names it and says why."""


class TooLargeError(ValueError):
    """A file holds more than is read. The message names it and the limit."""

    def __init__(self, path: object, largest: int) -> None:
        super().__init__(f"{path}: refused: it holds more than {largest >> 20} MiB")


class LockedError(ValueError):
    """Another process works in the folder. The message says which."""


def with_ending(path: str | Path, ending: str) -> Path:
    """Return a path whose name has this ending. Other dots belong to the name: `team.v1` becomes `team.v1.onnx`."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(ending) + ending)


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """Return the SHA-256 of plain JSON data. It does not depend on the order of keys."""
    return digest(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file, unpacked if its name ends in .gz.

    Args:
        path: the file.
        largest: the most bytes to unpack. A larger file is a `TooLargeError`.
    """
    parts, size = [], 0
    with open(path, "rb") as file:
        source = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        while part := source.read(1 << 20):
            parts.append(part)
            size += len(part)
            if size > largest:
                raise TooLargeError(path, largest)
    return b"".join(parts)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Its permissions are those of any new file in the folder.

    The content is on the disk before the file gets its name, so that a power failure leaves the old file or the new.
    """
    draft = _draft(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise _StorageError(
            f"{path}: cannot be written ({error.strerror or error}); what was there before is kept"
        ) from None


def _draft(path: Path) -> Path:
    """Return the name under which this thread of this process writes a file."""
    return path.with_name(f"{path.name}.{threading.get_ident()}.{os.getpid()}{DRAFT}")


def write_text(path: Path, text: str) -> None:
    """Write a text whole or not at all, in UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def _sync_folder(folder: Path) -> None:
    """Put a renamed file's new name on the disk. File systems that cannot do this are left alone."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(folder: Path) -> list[Path]:
    """Remove the drafts that killed writes left in a folder and in those below it. Return them.

    A draft's name ends in the number of the process that wrote it. Drafts of processes that still run are left.
    """
    found = [path for path in sorted(folder.rglob(f"*{DRAFT}")) if _is_left(path)]
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return found


def _is_left(draft: Path) -> bool:
    number = draft.name.removesuffix(DRAFT).rpartition(".")[2]
    if not number.isascii() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's process
        return False
    return False


def check_writable(folder: Path) -> None:
    """Raise `_StorageError` unless files can be written in the folder, which is made if it is not there."""
    probe = _draft(folder / ".probe")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"mavic")
        probe.unlink(missing_ok=True)
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink()
        raise _StorageError(
            f"{folder}: files cannot be written here ({error.strerror or error}); choose another folder"
        ) from None


@contextlib.contextmanager
def locked(folder: Path, say: Callable[[str], Any] = warnings.warn) -> Iterator[None]:
    """Lock a folder for this process, and remove the drafts of killed writes there. A killed process holds no lock.

    Args:
        folder: the folder, which is made if it does not exist.
        say: told if the file system cannot lock. The folder is then used without a lock and not swept.

    Raises:
        LockedError: another process holds the folder. The message says which.
    """
    check_writable(folder)
    if fcntl is None:
        yield
        return
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _StorageError(
            f"{folder / LOCK}: {error.strerror or error}; choose another folder, or remove this file if nothing "
            "trains there"
        ) from None
    try:
        if _lock(handle, folder, say):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(_myself()).encode(), 0)
            _sweep(folder)
        yield
    finally:
        os.close(handle)  # this also unlocks; the file stays, because removing it would race


def _lock(handle: int, folder: Path, say: Callable[[str], Any]) -> bool:
    """Return whether the folder is locked now. File systems that cannot lock are named."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(
            f"{folder} is in use by {_holder(folder / LOCK)}; wait for it, or choose another folder"
        ) from None
    except OSError as error:
        why = error.strerror or error
        say(f"{folder} cannot be locked ({why}); let only one training write there at a time")
        return False
    return True


def _myself() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200],
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _holder(lock: Path) -> str:
    """Return who holds a lock, as its file says."""
    try:
        found = json.loads(lock.read_text(encoding="utf-8"))
        return (
            f"process {found['pid']} on {found['host']} since {found['since']} ({found['command']})"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"

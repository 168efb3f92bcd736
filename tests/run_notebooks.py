"""Run both notebooks from top to bottom, each in an empty folder: `make notebooks`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from fast_compilation import fast_flags
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"

# As in the tests: programs run briefly here, so compiling them fast matters most.
FAST = {"XLA_FLAGS": fast_flags(), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}

if __name__ == "__main__":
    os.environ.update(FAST)
    books = sorted(FOLDER.glob("*.ipynb"))
    if len(books) != 2:
        sys.exit(f"{FOLDER} should hold two notebooks")
    for path in books:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            book = nbformat.read(path, as_version=4)
            resources = {"metadata": {"path": folder}}
            NotebookClient(book, timeout=1200, resources=resources).execute()
        print(f"{path.name}: {time.perf_counter() - began:.0f} s", flush=True)

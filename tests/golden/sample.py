"""The sample of the recordings in `data`: what `make test` replays where no variable names the whole set.

The whole set was recorded from the public reference environments and learners. The sample holds, of every file of
episodes, the episode with the highest return of each way in which macros were chosen. Of every backbone that the
reference has, it holds one whole update. `PYTHONPATH=tests python -m golden.sample` writes it anew from the folders
that MAVIC_GOLDEN and MAVIC_GOLDEN_UPDATES name.
"""

from __future__ import annotations

import io
import json
import lzma
import os
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
# One keeps the target critic after the update (1), the other copies it (2).
UPDATES = {"mac_iac_bp_n5": 1, "mac_cac_bp_n5": 2, "mac_naive_iacc_bp_n0": 2, "mac_iaicc_bp_n0": 1}
UNREAD = ("logp_all",)  # large arrays that no test reads

Arrays = dict[str, np.ndarray]


def episodes_folder() -> Path:
    """Return the folder of recorded episodes: the one that MAVIC_GOLDEN names, else the sample."""
    return Path(os.environ.get("MAVIC_GOLDEN") or DATA / "episodes")


def updates_folder() -> Path:
    """Return the folder of recorded updates: the one that MAVIC_GOLDEN_UPDATES names, else the sample.

    If only MAVIC_GOLDEN is set, it is `golden_updates` beside that folder, where there is one.
    """
    if named := os.environ.get("MAVIC_GOLDEN_UPDATES"):
        return Path(named)
    beside = episodes_folder().parent / "golden_updates"
    return beside if beside.is_dir() else DATA / "updates"


def files(folder: Path) -> dict[str, Path]:
    """Return the recordings in a folder by their names without endings, in their order."""
    return {path.name.split(".")[0]: path for path in sorted(folder.glob("*.npz*"))}


def load(path: Path) -> Arrays:
    """Return every array of a file, in memory. (An open file would decompress at each access.)"""
    content = path.read_bytes()
    if path.suffix == ".xz":
        content = lzma.decompress(content)
    with np.load(io.BytesIO(content)) as stored:
        return {key: stored[key] for key in stored.files}


def some_episodes(arrays: Arrays) -> Arrays:
    """Return the recording of the best episode by each sampler of macros."""
    starts, lengths, sampler = (arrays[f"ep_{key}"] for key in ("start", "len", "policy"))
    returns = np.add.reduceat(arrays["reward"], starts)
    best = [max(np.flatnonzero(sampler == own), key=returns.__getitem__) for own in set(sampler)]
    kept = np.sort(best)
    rows = np.concatenate([np.arange(starts[e], starts[e] + lengths[e]) for e in kept])
    steps = lengths.sum()
    found = {
        key: x[rows] if x.ndim and len(x) == steps else x[kept] if key.startswith("ep_") else x
        for key, x in arrays.items()
    }
    return found | {"ep_start": (np.cumsum(lengths[kept]) - lengths[kept]).astype(starts.dtype)}


def one_update(arrays: Arrays, number: int) -> Arrays:
    """Return the recording of one update. If there is only one, it is returned whatever its number."""
    meta = json.loads(str(arrays["meta"]))
    number = min(number, meta["updates_recorded"] - 1)
    found = {"meta": np.array(json.dumps(meta | {"updates_recorded": 1}))}
    for key, x in arrays.items():
        first, *rest = key.split("/")
        if first in ("actor", "critic", "critic_tgt"):
            found[key] = x[number : number + 2]
        elif first in ("adam", "grad"):
            found[key] = x[number : number + 1]
        elif first == f"u{number}" and rest[-1] not in UNREAD:
            found["/".join(["u0", *rest])] = x
    return found


def sample() -> dict[Path, Arrays]:
    """Return the arrays of every file of the sample, made from the present folders."""
    made = {
        f"episodes/{name}": some_episodes(load(path))
        for name, path in files(episodes_folder()).items()
    }
    for name, path in files(updates_folder()).items():
        if name in UPDATES:
            made[f"updates/{name}"] = one_update(load(path), UPDATES[name])
        elif name.startswith("collection"):
            made[f"updates/{name}"] = load(path)
    return {DATA / f"{name}.npz.xz": arrays for name, arrays in made.items()}


if __name__ == "__main__":
    for path, arrays in sample().items():
        content = io.BytesIO()
        np.savez(content, **arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(content.getvalue(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{path.stat().st_size / 1000:8.1f} kB  {path.relative_to(DATA)}")

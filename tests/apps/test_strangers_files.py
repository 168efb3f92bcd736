"""A stranger's file runs nothing: no code of its folder, no code that it names, and no network.

Each case is a folder with one crafted file beside a module `evil.py` that leaves a mark when it is imported. A command
reads the crafted file. It may fail with one line or succeed; the mark must not be there, and no network is asked.
"""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mavic.apps import cli
from mavic.experiment import records
from mavic.language import encoder as encoders
from mavic.storage import files
from mavic.teams import shipped
from mavic.teams.facts import read_facts
from mavic.teams.file import _write_facts

EVIL = "import pathlib\npathlib.Path(__file__).with_name('ran').write_text(__name__)\n"
TEAM, RECORD = "box_pushing/mavic", "results/box_pushing/mavic-tuned-residual-live-by-kind.jsonl.gz"
ROOT = Path(__file__).parents[2]
CONFIG = ("train", "box_pushing", "--config", "my.toml", "--print-config")


class _Bomb:
    """What unpickling would run."""

    def __reduce__(self):
        return (exec, (EVIL.replace("__file__", "'./x'"),))


def changed(value: dict, place: str, new: object) -> dict:
    """Facts with the entry at a place such as config.encoder replaced."""
    first, _, rest = place.partition(".")
    return {**value, first: changed(value[first], rest, new) if rest else new}


def policy(folder: Path, **entries: object) -> None:
    """A copy of a shipped team whose description says something else, with a valid hash."""
    facts = read_facts(TEAM)
    for place, new in entries.items():
        facts = changed(facts, place.replace("__", "."), new)
    shutil.copy(shipped.weights_of(shipped.find(TEAM)), folder / "team.safetensors")
    _write_facts(folder / "team.safetensors", facts)


def record(folder: Path, **entries: object) -> None:
    """A published record whose first line says something else, with a valid hash."""
    lines = [json.loads(line) for line in files.read_bytes(ROOT / RECORD).splitlines()]
    for place, new in entries.items():
        lines[0] = changed(lines[0], place.replace("__", "."), new)
    records.write(folder / "mine.jsonl", lines)


def model(folder: Path, modules: str) -> None:
    """The folder of a saved model whose modules.json names code."""
    (folder / "model").mkdir()
    (folder / "model" / "modules.json").write_text(modules)
    shutil.copy(folder / "evil.py", folder / "model" / "evil.py")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (folder / "model" / name).write_text("{}")


def toml(text: str):
    return lambda folder: (folder / "my.toml").write_text(text)


def raw(name: str, data: bytes):
    return lambda folder: (folder / name).write_bytes(data)


BOMB = gzip.compress(b"[" * (files.LARGEST + 1), 1)
PICKLE = pickle.dumps(_Bomb())
CASES = {  # name → (what is written, the command)
    **{
        f"policy-{place}-{new}": ((lambda p, n: lambda f: policy(f, **{p: n}))(place, new), line)
        for place, new, line in (
            ("module", "evil", "export onnx team"),
            ("world", "evil", "evaluate team"),
            ("world", "evil:Own", "evaluate team"),
            ("world", "../evil", "replay team"),
            ("config__world", "evil", "evaluate team"),
            ("encoder", "hf:evil/model", "evaluate team"),
            ("encoder", "evil", "evaluate team"),
            ("encoder", "path:.", "evaluate team"),
            ("config__encoder", "hf:evil/model", "evaluate team"),
            ("config__method", "evil", "evaluate team"),
            ("config__network", "evil:Cell", "evaluate team"),
            ("config__backbone", "evil", "export onnx team"),
            ("config__hear", "evil", "replay team"),
            ("shape__cell", "evil", "evaluate team"),
            ("shape__view", "evil.view", "evaluate team"),
            ("config__options", {"map": "evil.py"}, "evaluate team"),
        )
    },
    "policy-both": (
        lambda folder: policy(folder, world="evil", config__world="evil", module="evil"),
        "evaluate team",
    ),
    "policy-module-of-a-package": (
        lambda folder: policy(folder, world="evil", config__world="evil", module="evil.py"),
        "replay team",
    ),
    **{
        f"record-{place}": ((lambda p, n: lambda f: record(f, **{p: n}))(place, new), "report .")
        for place, new in (
            ("config__world", "evil"),
            ("config__encoder", "hf:evil/model"),
            ("config__method", "evil"),
            ("config__network", "evil"),
            ("preset", {"evil": 1}),
        )
    },
    "record-gzip-bomb": (raw("mine.jsonl.gz", BOMB), "report ."),
    "record-pickle": (raw("mine.jsonl", PICKLE), "report ."),
    "marl-eval-pickle": (raw("mine.jsonl.gz", gzip.compress(PICKLE)), "export marl-eval ."),
    "policy-pickle-weights": (
        lambda folder: (policy(folder), raw("team.safetensors", PICKLE)(folder)),
        "evaluate team",
    ),
    "policy-pickle-description": (
        lambda folder: (policy(folder), raw("team.json", PICKLE)(folder)),
        "evaluate team",
    ),
    "config-plugins": (toml('plugins = ["evil"]'), CONFIG),
    "config-plugins-in-a-list": (toml('method = ["mavic", "--plugins", "evil"]'), CONFIG),
    "config-plugins-as-a-world": (toml('world = "--plugins=evil"'), CONFIG),
    "config-plugins-as-an-option": (toml('[options]\n"--plugins" = "evil"'), CONFIG),
    "config-weights": (toml('[weights]\n"--plugins" = "evil"'), CONFIG),
    "config-logger": (toml('log = ["wandb"]'), CONFIG),
    "config-download": (toml('hear = "vectors"\nencoder = "hf:evil/x"'), CONFIG),
    "config-another-config": (toml('config = "evil.toml"\ninitial = "evil"'), CONFIG),
    "instructions-pickle": (raw("mine.toml", PICKLE), "words mine.toml stay"),
    "instructions-template": (
        raw("mine.toml", b"world = \"{__import__('evil')}\""),
        "words mine.toml a",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A stranger's folder, in which one stands. Asking a network is noted in `asked`."""
    (tmp_path / "evil.py").write_text(EVIL)
    (tmp_path / "evil.toml").write_text('plugins = ["evil"]')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # so that an import of `evil` would succeed
    monkeypatch.delenv(encoders.ALLOW_DOWNLOAD, raising=False)

    def connect(self, address):
        (tmp_path / "asked").write_text(str(address))
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: connect(None, a))
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_a_crafted_file_runs_nothing_and_asks_nobody(name, folder, capsys):
    make, line = CASES[name]
    make(folder)
    words = line.split() if isinstance(line, str) else list(line)
    try:
        cli.main(words)
    except SystemExit as ended:
        assert ended.code in (0, 1, 2)
        said = capsys.readouterr().err
        assert "Traceback" not in said and said.strip()
    assert "evil" not in sys.modules
    assert not (folder / "ran").exists() and not (folder / "asked").exists()


def test_there_are_thirty_cases():
    assert len(CASES) >= 30


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ('[{"idx": 0, "name": "0", "path": "", "type": "evil.Model"}]', "is not run"),
        ('{"type": "evil"}', "not a list of modules"),
        ("[" * 100_000, "not a list of modules"),
    ],
)
def test_a_model_in_a_folder_runs_no_code(modules, said, folder):
    """`modules.json` is refused before sentence-transformers, which may not be installed, sees the folder."""
    model(folder, modules)
    with pytest.raises(encoders.EncoderError, match=said):
        encoders.open_encoder("path:model")
    assert "evil" not in sys.modules and not list(folder.rglob("ran"))


def test_no_file_is_unpickled():
    """Weights are safetensors, arrays are read without pickles, and everything else is JSON or TOML."""
    own = {
        "processes.py",
        "worker.py",
        "cluster.py",
    }  # what a training sends its own worker processes is never a file
    for path in (ROOT / "mavic").rglob("*.py"):
        if path.parent.name == "simulators" and path.name in own:
            continue
        text = path.read_text(encoding="utf-8").replace("allow_pickle=False", "")
        assert "pickle" not in text and "torch.load" not in text, path


def test_arrays_that_would_unpack_to_too_much_are_refused_unread(folder):
    from mavic.storage.arrays import read_npz

    np.savez_compressed(folder / "big.npz", zeros=np.zeros(1 << 20))
    with pytest.raises(files.TooLargeError, match="more than 1 MiB"):
        read_npz(folder / "big.npz", 1 << 20)
    np.save(folder / "object.npy", np.array([_Bomb()], object), allow_pickle=True)
    with pytest.raises(ValueError):
        np.load(folder / "object.npy", allow_pickle=False)


def test_modules_of_the_folder_do_not_replace_installed_ones(folder):
    """The command itself, in a folder whose modules have the names of libraries that it imports."""
    for name in ("numpy", "jax", "rich", "tyro", "mavic", "json", "sitecustomize", "usercustomize"):
        shutil.copy(folder / "evil.py", folder / f"{name}.py")
    (folder / "matplotlibrc").write_text("backend: module://evil\n")
    record(folder)
    command = Path(sys.executable).with_name("mavic")
    done = subprocess.run([command, "report", "."], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "table.md").is_file() and not (folder / "ran").exists()

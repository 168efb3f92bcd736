"""Compiled programs are kept on disk, up to a limit."""

from __future__ import annotations

import os
import re
from pathlib import Path

import jax
import pytest
from jax import monitoring
from jax.experimental.compilation_cache import compilation_cache

from mavic.apps.commands import cache


def shown(capsys, action="show"):
    """How many files the command counts in each part of the cache, and their megabytes."""
    cache.Cache(action=action).run()
    found = re.findall(r"^  (\w+): (\d+) files, ([\d.]+) MB", capsys.readouterr().out, re.MULTILINE)
    return {name: (int(files), float(size)) for name, files, size in found}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache; JAX's settings are restored afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MAVIC_CACHE_MB", "10")
    names = ("compilation_cache_dir", "persistent_cache_min_compile_time_secs")
    names += ("persistent_cache_min_entry_size_bytes",)
    before = {f"jax_{name}": getattr(jax.config, f"jax_{name}") for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "mavic"
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_a_program_is_compiled_once(place, capsys):
    hits = []
    cache.keep_compiled()
    compilation_cache.reset_cache()
    monitoring.register_event_listener(lambda event, **_: hits.append(event))
    for _ in range(2):
        jax.jit(lambda x: x * 17 + 3)(2.0).block_until_ready()
    assert any("cache_hits" in event for event in hits)
    files, megabytes = shown(capsys)["compiled"]
    assert files and megabytes < 1
    assert shown(capsys, "clear") == dict.fromkeys(cache.PARTS, (0, 0.0))
    assert not list((place / "compiled").glob("*"))


def test_zero_turns_it_off(place, monkeypatch):
    monkeypatch.setenv("MAVIC_CACHE_MB", "0")
    cache.keep_compiled()
    assert not jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("MAVIC_CACHE_MB", "much")
    with pytest.raises(ValueError, match="number of megabytes"):
        cache.keep_compiled()


def test_the_least_recently_used_programs_go_first(tmp_path):
    for age, name in enumerate(["newest", "newer", "older", "oldest"]):
        path = tmp_path / "machine" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(400_000))
        os.utime(path, (1e9 - age, 1e9 - age))
    cache._prune(tmp_path, limit=1.0)
    assert sorted(path.name for path in tmp_path.rglob("new*")) == ["newer", "newest"]
    assert not list(tmp_path.rglob("old*"))


def test_a_file_that_another_command_removes_meanwhile_is_left_out(place, monkeypatch, capsys):
    (place / "compiled").mkdir(parents=True)
    for name in ("kept", "gone"):
        (place / "compiled" / name).write_bytes(bytes(10))
    whole = Path.stat

    def stat(path, **how):
        if path.name == "gone":
            path.unlink(missing_ok=True)
        return whole(path, **how)

    monkeypatch.setattr(Path, "stat", stat)
    cache._prune(place / "compiled", limit=1.0)
    assert shown(capsys)["compiled"] == (1, 0.0)

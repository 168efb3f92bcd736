"""Mutation tests: how many deliberate mistakes do the fast tests find?

    python -m tools.mutants --named                the mistakes of tools/mistakes.toml
    python -m tools.mutants --sample 400 --most 30 a fixed random sample; 30 of those that were not run yet

Each mistake is made in a copy of the tree, where the tests that cover its module run to the first failure. The results
are kept (`results/mutants.json`), so a later call goes on. `--again` runs what was alive once more, and with `--long`
the long tests too. A mistake that no test finds but that changes nothing can be listed in tools/mistakes.toml as
equivalent, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tools.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "mutants.json"
MISTAKES = ROOT / "tools" / "mistakes.toml"
SEED, LIMIT = 36, 900.0  # of the sample; seconds for the tests of one mistake
NO_TESTS = 5  # how pytest ends if it finds none, such as no long ones
MODULES = (  # where mistakes of the sample are made
    *("mavic/learn/*.py", "mavic/instruct/*.py", "mavic/rollout/*.py", "mavic/evaluation/*.py"),
    *("mavic/experiment/records.py", "mavic/reporting/stats.py"),
)
COVERED_BY = {  # the first pattern that fits a module names its tests; those behind a bar run if the others pass
    "mavic/learn/returns.py": "learn/test_returns.py theory/test_sampled_targets.py",
    "mavic/learn/transitions.py": "learn/test_transitions.py",
    "mavic/learn/act.py": "learn/test_places.py learn/test_two_at_once.py learn/test_views.py | learn/test_networks.py",
    "mavic/learn/acac.py": "learn/test_acac.py | learn/test_networks.py learn/test_views.py",
    "mavic/learn/views.py": "learn/test_views.py learn/test_acac.py | learn/test_places.py golden/test_updates.py",
    "mavic/learn/bptt.py": "learn/test_places.py learn/test_numbers.py | learn/test_update.py golden/test_updates.py",
    "mavic/learn/gru.py": "learn/test_numbers.py | learn/test_networks.py learn/test_views.py golden/test_updates.py",
    "mavic/learn/networks.py": "learn/test_networks.py learn/test_numbers.py | learn/test_places.py learn/test_views.py"
    " golden/test_updates.py",
    "mavic/learn/kind_heads.py": "learn/test_networks.py | learn/test_numbers.py learn/test_whole_updates.py",
    "mavic/learn/update.py": "learn/test_numbers.py learn/test_places.py | learn/test_views.py learn/test_acac.py "
    "learn/test_update.py golden/test_updates.py learn/test_whole_updates.py",
    "mavic/learn/cells.py": "learn/test_networks.py learn/test_acac.py | learn/test_views.py learn/test_two_at_once.py",
    "mavic/learn/": "learn/test_places.py learn/test_numbers.py | learn/test_networks.py learn/test_views.py "
    "learn/test_two_at_once.py learn/test_acac.py learn/test_update.py golden/test_updates.py "
    "learn/test_whole_updates.py",
    "mavic/instruct/": "instruct | rollout/test_pairs.py rollout/test_predicates.py rollout/test_step.py "
    "rollout/test_enforced.py rollout/test_interrupt.py",
    "mavic/rollout/plan.py": "rollout/test_plan.py",
    "mavic/rollout/trial.py": "rollout/test_trial.py | rollout/test_step.py experiment/test_check.py",
    "mavic/rollout/threefry.py": "rollout/test_threefry.py",
    "mavic/rollout/": "rollout/test_step.py rollout/test_rollout.py rollout/test_interrupt.py rollout/test_enforced.py"
    " | rollout",
    "mavic/evaluation/merit.py": "evaluation/test_whose.py training/test_population.py",
    "mavic/evaluation/judge.py": "evaluation/test_judge.py",
    "mavic/evaluation/unseen_phrases.py": "evaluation/test_unseen_phrases.py",
    "mavic/evaluation/": "evaluation/test_whose.py evaluation/test_metrics.py evaluation/test_collapse.py | evaluation "
    "session/test_runner.py",
    "mavic/experiment/records.py": "reporting/test_report_rows.py session/test_reliability.py | session/test_runner.py",
    "mavic/reporting/": "reporting/test_stats.py reporting/test_report_rows.py | reporting/test_report.py",
    "mavic/training/": "evaluation/test_whose.py training/test_population.py | session/test_runner.py",
    "mavic/session/": "training/test_population.py session/test_reliability.py | session/test_runner.py",
    "mavic/bridges/": "bridges",
    "mavic/simulators/": "simulators/test_macro_layer.py | simulators",
    "mavic/runtime/": "runtime/test_team.py runtime/test_endpoint.py",
}
BECAME = ("killed", "killed by a long test", "equivalent", "slow", "alive")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def sample(size: int) -> list[Mutant]:
    """Return a fixed random sample of all mutants of the modules: most of it survives changes of the code."""
    paths = sorted(path for pattern in MODULES for path in ROOT.glob(pattern))
    every = {
        mutant.name: mutant
        for path in paths
        for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    }
    return sorted(
        every.values(), key=lambda one: hashlib.sha256(f"{SEED}{one.name}".encode()).digest()
    )[:size]


def named() -> Iterator[Mutant]:
    """Yield the mistakes that are listed by hand."""
    for entry in tomllib.loads(MISTAKES.read_text(encoding="utf-8"))["mistake"]:
        text = (ROOT / entry["file"]).read_text(encoding="utf-8")
        if text.count(entry["old"]) != 1:
            raise ValueError(
                f"{entry['what']}: its old text is {text.count(entry['old'])} times in {entry['file']}"
            )
        start = text.index(entry["old"])
        line = text[:start].count("\n") + 1
        yield Mutant(
            file=entry["file"], line=line, what=entry["what"], start=start, end=start + len(entry["old"]),
            old=entry["old"], new=entry["new"], inside=entry["what"],
        )  # fmt: skip


def copy_of(root: Path, to: Path) -> None:
    """Copy the package's code. Everything else is a link to what is in `root`."""
    for path in root.iterdir():
        if path.name not in ("mavic", ".git"):
            (to / path.name).symlink_to(path)
    for path in sorted((root / "mavic").rglob("*")):
        own = to / path.relative_to(root)
        if path.is_dir():
            own.mkdir(parents=True, exist_ok=True)
        elif path.suffix == ".py":
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, own)
        elif path.suffix != ".pyc":
            own.parent.mkdir(parents=True, exist_ok=True)
            own.symlink_to(path)


def tests_of(file: str) -> list[list[str]]:
    """Return the test files and folders that cover a module, in the stages in which they run."""
    found = next(tests for pattern, tests in COVERED_BY.items() if file.startswith(pattern))
    return [[f"tests/{name}" for name in stage.split()] for stage in found.split("|")]


def run(mutant: Mutant, copy: Path, long: bool) -> dict[str, Any]:
    """Return what became of a mistake: `killed`, `killed by a long test`, `slow` (the tests hung), or `alive`."""
    path, began = copy / mutant.file, time.time()
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    told = {
        "name": mutant.name, "file": mutant.file, "line": mutant.line, "what": mutant.what,
        "old": mutant.old, "new": mutant.new,
    }  # fmt: skip
    path.write_text(mutant.apply(text), encoding="utf-8")
    try:
        stages = tests_of(mutant.file)
        found = next(filter(None, (_first_failure(stage, copy) for stage in stages)), "")
        became = {"became": "killed", "by": found} if found else {"became": "alive"}
        every = [test for stage in stages for test in stage]
        if long and not found and (found := _first_failure(every, copy, "-m", "long")):
            became = {"became": "killed by a long test", "by": found}
    except subprocess.TimeoutExpired:
        became = {"became": "slow"}
    finally:
        path.write_text(text, encoding="utf-8")
    return {**told, **became, "seconds": round(time.time() - began)}


def _first_failure(tests: list[str], copy: Path, *options: str) -> str:
    """Return the first test that fails in a copy of the tree; empty if none does."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    found = FAILED.search(done.stdout)
    if done.returncode not in (0, NO_TESTS) and not found:
        raise RuntimeError(f"pytest itself failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[1] if found else ""


def markdown(results: Path, _: str = "") -> str:
    """Return what became of the mistakes of each room, and of all, in Markdown.

    Args:
        results: The folder of results.
    """
    kept = json.loads((results / OUT.name).read_text(encoding="utf-8"))
    rooms: dict[str, Counter[str]] = {}
    for one in kept["sample"]["mistakes"]:
        room = "/".join(one["file"].split("/")[:2])
        rooms.setdefault(room, Counter())[one["became"]] += 1
    parts = {f"`{room}`": rooms[room] for room in sorted(rooms)}
    parts["all of the sample"] = sum(rooms.values(), Counter())
    parts["chosen by hand"] = Counter(one["became"] for one in kept["named"]["mistakes"])
    lines = [
        f"| {part} | {counts.total()} | " + " | ".join(str(counts[name]) for name in BECAME) + " |"
        for part, counts in parts.items()
    ]
    header = f"| where | mistakes | {' | '.join(BECAME)} |\n|{'---|' * (2 + len(BECAME))}\n"
    return header + "\n".join(lines) + "\n"


def main() -> None:
    """Run the mistakes that are asked for and were not run yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--named", action="store_true", help="the mistakes of tools/mistakes.toml")
    parser.add_argument(
        "--sample", type=int, default=400, help="the size of the random sample (default 400)"
    )
    parser.add_argument("--most", type=int, default=10**6, help="run at most so many now")
    parser.add_argument(
        "--only", default="", help="only mistakes whose file or description contains this text"
    )
    parser.add_argument("--again", action="store_true", help="run those that were alive once more")
    parser.add_argument("--long", action="store_true", help="run long tests if the fast ones pass")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at once (default 1)")
    asked = parser.parse_args()
    kept = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    every = list(named()) if asked.named else sample(asked.sample)
    group = "named" if asked.named else "sample"
    done = {one["name"]: one for one in kept.get(group, {}).get("mistakes", [])}
    todo = [
        one
        for one in every
        if asked.only in f"{one.file} {one.what}"
        and (one.name not in done or (asked.again and done[one.name]["became"] == "alive"))
    ][: asked.most]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(asked.jobs):
            copy = Path(folder, str(number))
            copy.mkdir()
            copy_of(ROOT, copy)
            copies.put(copy)
        runs = {pool.submit(_run_in_one_of, copies, mutant, asked.long): mutant for mutant in todo}
        for number, ended in enumerate(as_completed(runs), 1):
            mutant = runs[ended]
            try:
                done[mutant.name] = found = ended.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            told = f"{mutant.file}:{mutant.line} {mutant.what}: {found['became']} {found.get('by', '')}"
            print(f"{number}/{len(todo)} {found['seconds']} s {told}", flush=True)
            kept[group] = _summary(every, done)
            OUT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(_summary(every, done)["counts"]))


def _run_in_one_of(copies: queue.SimpleQueue[Path], mutant: Mutant, long: bool) -> dict[str, Any]:
    """Return what became of a mistake in a copy that is free."""
    copy = copies.get()
    try:
        return run(mutant, copy, long)
    finally:
        copies.put(copy)


def _summary(every: list[Mutant], done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the results of mistakes that still exist, with their counts and the reasons of equivalent ones."""
    reasons = tomllib.loads(MISTAKES.read_text(encoding="utf-8")).get("equivalent", {})
    rows = [dict(done[one.name]) for one in every if one.name in done]
    for row in rows:
        if row["name"] in reasons and row["became"] == "alive":
            row |= {"became": "equivalent", "reason": reasons[row["name"]]}
    counts = Counter(row["became"] for row in rows)
    return {"counts": {"chosen": len(every), "run": len(rows), **counts}, "mistakes": rows}


if __name__ == "__main__":
    main()

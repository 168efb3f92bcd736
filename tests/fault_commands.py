"""Command lines with wrong values."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from fault_counts import Count, repeat
from hypothesis import strategies as st

from mavic.apps import cli
from mavic.experiment.task import task_of
from mavic.session import runner
from mavic.training.groups import Group

SEEDS_ALLOWED, GAMMA_ALLOWED = range(1, 1001), (0.0, 1.0)
NUMBERS = st.sampled_from(
    [
        *("0", "-1", "1", "3", "nan", "inf", "-inf", "1e400", "9" * 400, "9" * 5000),
        *("1e-400", "x", "", "1.5", "0x10", "１", "--"),
    ]
)
TEXTS = st.sampled_from(
    [
        *("mavic", "naive", "all", "", "nobody", "live/by-kind", "off/by-kind", "live", "/"),
        *("a/b/c/d", "\udc80", "protected", "x" * 5000),
    ]
)
NUMERIC = ("seeds", "first-seed", "episodes", "batch", "actor-lr", "critic-lr", "gamma")
LISTS = ("methods", "networks", "conditions")
OPTIONS = st.tuples(
    st.sampled_from(
        ["size", "name", "world", "map", "dynamics", "third_cook", "big", "seed", "", "hear"]
    ),
    TEXTS | NUMBERS,
)
TRAIN = st.tuples(
    st.sampled_from(["box_pushing", "overcooked", "warehouse", "", "../x"]),
    st.lists(st.tuples(st.sampled_from(NUMERIC), NUMBERS), max_size=2),
    st.lists(st.tuples(st.sampled_from(LISTS), st.lists(TEXTS, max_size=3)), max_size=1),
    st.lists(OPTIONS, max_size=2),
)
OTHERS = st.one_of(
    st.tuples(
        st.just("replay"), st.just("nobody"), st.sampled_from(["--seed", "--ticks"]), NUMBERS
    ),
    st.tuples(st.just("replay"), st.just("nobody"), st.just("--say"), NUMBERS, TEXTS, NUMBERS),
    st.tuples(st.just("play"), st.just("--port"), NUMBERS),
    st.tuples(st.just("bench"), st.sampled_from(["--seeds", "--repeats"]), NUMBERS),
    st.tuples(st.sampled_from(["evaluate", "report"]), TEXTS),
    st.tuples(st.just("evaluate"), TEXTS, st.just("--condition"), TEXTS),
    st.tuples(st.just("worlds"), st.just("--plugins"), TEXTS),
    st.lists(TEXTS | NUMBERS, max_size=3).map(tuple),
)


def command_lines(count: Count, times: int, seed: int, folder: Path) -> None:
    """Command lines with wrong values. Nothing trains: a line that is accepted stops before the first point."""

    def line_of(parts: tuple) -> list[str]:
        if len(parts) == 4 and isinstance(parts[1], list):
            world, numbers, lists, options = parts
            line = ["train", world, "--out", str(folder / "runs")]
            for name, value in numbers:
                line += [f"--{name}", value]
            for name, values in lists:
                line += [f"--{name}", *values]
            return line + (["--options", *(x for pair in options for x in pair)] if options else [])
        return list(parts)

    def out_of_range(line: list[str]) -> bool:
        """Whether a number is outside what its option allows, as this test knows it."""
        for option, value in itertools.pairwise(line):
            with contextlib.suppress(ValueError):
                if option == "--seeds" and int(value) not in SEEDS_ALLOWED:
                    return True
                if option in ("--episodes", "--batch") and int(value) < 1:
                    return True
                if option == "--gamma" and not GAMMA_ALLOWED[0] <= float(value) <= GAMMA_ALLOWED[1]:
                    return True
                if option in ("--actor-lr", "--critic-lr") and not 0 < float(value) < 1e9:
                    return True
        return False

    def stop(*given: Any, **_: Any) -> None:
        for group in given[:1]:
            if isinstance(group, Group):
                task_of(group.configs[0])
        raise KeyboardInterrupt

    def act(parts: tuple) -> None:
        line = line_of(parts)
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                cli.main(line)
            status = 0
        except SystemExit as ended:
            status = ended.code
        except BaseException as error:
            count.add("tracebacks", f"{type(error).__name__}: {error} | {line}")
            return
        told = err.getvalue()
        if "Traceback" in told or (status == 1 and not told.startswith("mavic: ")):
            count.add("tracebacks", f"{line}: {told}")
        elif status in (1, 2):
            count.add("refused")
        else:
            count.add("silent" if out_of_range(line) else "survived", str(line))

    with (
        contextlib.ExitStack() as patches,
        mock.patch.object(runner, "train_group", stop),
        mock.patch("mavic.studies.benchmark.measure", stop),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""))),
    ):
        if importlib.util.find_spec("fastapi"):  # without it, `mavic play` says what to install
            patches.enter_context(mock.patch("mavic.apps.playground.server.play", stop))
        repeat(times, seed, TRAIN | OTHERS, act)

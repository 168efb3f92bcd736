"""What people and programs hand in: configuration files, commands with files, Python calls, bridges, raw HTTP."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import json
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jaxtyping
import numpy as np
from fault_counts import Count, repeat
from hypothesis import strategies as st
from sample_records import config_of, lines_of

import mavic
from mavic import correction
from mavic.apps import cli
from mavic.experiment import records
from mavic.session import session

REFUSALS = (ValueError, OSError, ImportError)  # what a person can correct; its message is one line
TEXTS = st.sampled_from(
    [
        "",
        "x",
        "all",
        "mavic",
        "box_pushing",
        "live/by-kind",
        "false",
        "--overwrite",
        "-1",
        "/",
        "\x00",
        "é" * 500,
    ]
)
NUMBERS = st.sampled_from(
    [
        0,
        1,
        -1,
        3,
        10**30,
        0.5,
        -0.0,
        math.nan,
        math.inf,
        True,
        np.int64(3),
        np.float32(0.5),
        np.int64(-1),
    ]
)
PLAIN = st.one_of(TEXTS, NUMBERS, st.none())
ANY = st.one_of(PLAIN, st.lists(PLAIN, max_size=2), st.dictionaries(TEXTS, PLAIN, max_size=1))


def outcome(count: Count, what: Any, call: Callable[[], bool | None]) -> None:
    """Count how a call ended. It returns True if it took something that it should not take."""
    try:
        wrong = call()
    except REFUSALS as error:
        one_line = str(error).strip() and "\n" not in str(error).strip()
        count.add("refused" if one_line else "tracebacks", f"{what}: {error!r}")
    except BaseException as error:
        count.add("tracebacks", f"{what}: {type(error).__name__}: {error}")
    else:
        count.add("silent" if wrong else "survived", str(what))


def _toml(value: Any) -> str:
    """A value as TOML, of any kind that TOML has."""
    if isinstance(value, bool) or value is None:
        return str(bool(value)).lower()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return {"nan": "nan", "inf": "inf", "-inf": "-inf"}.get(str(value), repr(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {_toml(v)}' for k, v in value.items())}}}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return json.dumps(value) if isinstance(value, str) else str(value)


ENTRIES = (
    *(
        "method",
        "network",
        "condition",
        "kinds",
        "hold",
        "rate",
        "penalty",
        "options",
        "weights",
        "out",
        "seeds",
    ),
    *(
        "overwrite",
        "quick",
        "words",
        "log",
        "preset",
        "hear",
        "population",
        "first_seed",
        "numbers",
        "extras",
        "world",
    ),
)
FILES = st.dictionaries(
    st.sampled_from(ENTRIES), ANY | st.just(datetime.date(2026, 1, 1)), max_size=3
)


def configurations(count: Count, times: int, seed: int, folder: Path) -> None:
    """Configuration files with any values. What is accepted and printed must be read and printed alike."""
    path, again = folder / "my.toml", folder / "again.toml"

    def act(entries: dict[str, Any]) -> None:
        lines = [f"{name} = {_toml(value)}" for name, value in entries.items()]
        path.write_text("\n".join(lines).replace("\x00", "\\u0000"), encoding="utf-8")

        def call() -> bool:
            printed = _said(["train", "--config", str(path), "--print-config"])
            again.write_text(printed, encoding="utf-8")
            flags = ("overwrite", "quick", "words", "extras")
            loose = any(not isinstance(entries.get(name, False), bool | None) for name in flags)
            return loose or _said(["train", "--config", str(again), "--print-config"]) != printed

        outcome(count, lines, call)

    repeat(times, seed, FILES.map(lambda entries: {"world": "box_pushing", **entries}), act)


def _said(line: list[str]) -> str:
    """What a command prints. If it refuses, a `ValueError`."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(line)
    except SystemExit as ended:
        told = err.getvalue() + out.getvalue()
        if ended.code in (1, 2) and "Traceback" not in told:
            raise ValueError("refused") from None
        if ended.code:
            raise RuntimeError(told) from None
    return out.getvalue()


ARGUMENTS = st.sampled_from(
    [
        *(
            "heatmap",
            "table1",
            "nobody",
            "",
            "--quick",
            "--draw",
            "--only",
            "--engine",
            "--engine-options",
            "jobs",
        ),
        *(
            "local",
            "slurm",
            "cluster",
            "-1",
            "abc",
            "--commands",
            "onnx",
            "team",
            "marl-eval",
            "--out",
            "show",
        ),
        *(
            "FOLDER",
            "FILE",
            "RECORD",
            "EMPTY",
            "box_pushing/mavic",
            "box_pushing/nobody",
            "\udc80",
            "--brief",
        ),
    ]
)


def commands(count: Count, times: int, seed: int, folder: Path) -> None:
    """Lines of reproduce, report, export and cache, with files that are there, damaged or not records at all."""
    record, empty = folder / "records" / "mavic.jsonl", folder / "empty"
    empty.mkdir()
    records.write(record, lines_of(config_of(), [1, 2], [1, 1], [0, 0]))
    broken = folder / "file"
    broken.write_bytes(record.read_bytes()[:-30])
    places = {"FOLDER": record.parent, "FILE": broken, "RECORD": record, "EMPTY": empty}

    def act(parts: tuple[str, list[str]]) -> None:
        name, words = parts
        line = [name, *(str(places.get(word, word)) for word in words)]
        outcome(count, line, lambda: _said(line) is None)

    lines = st.tuples(
        st.sampled_from(["reproduce", "report", "export", "cache"]), st.lists(ARGUMENTS, max_size=4)
    )
    nothing = SimpleNamespace(missing=[], text="", written=[])
    with (
        contextlib.chdir(empty),
        mock.patch("mavic.studies.jobs.Job.run", lambda *_, **__: 1),
        mock.patch("mavic.studies.engines._slurm", lambda *_: None),
        mock.patch("mavic.reporting.studies.draw", lambda *_: nothing),
        mock.patch("mavic.bridges.onnx.export", lambda *_: Path("x")),
        mock.patch("mavic.bridges.team_folder.export", lambda *_, **__: Path("x")),
        mock.patch("mavic.apps.commands.cache._folder", lambda: empty),
    ):
        repeat(times, seed, lines, act)


def calls(count: Count, times: int, seed: int, folder: Path) -> None:
    """Public functions with any arguments. Nothing is trained or played."""
    numbers = st.dictionaries(
        st.sampled_from(
            [
                *(
                    "seeds",
                    "episodes",
                    "method",
                    "penalty",
                    "hold",
                    "kinds",
                    "options",
                    "condition",
                    "gamma",
                ),
                *(
                    "overwrite",
                    "network",
                    "population",
                    "batch",
                    "n_steps",
                    "rate",
                    "weights",
                    "extras",
                    "nobody",
                ),
            ]
        ),
        ANY,
        max_size=2,
    )
    rows = st.lists(
        st.lists(st.sampled_from([0.0, 1.0, math.nan]), max_size=3), min_size=2, max_size=3
    )
    how = st.dictionaries(
        st.sampled_from(["correction", "n_steps", "td_lambda"]), PLAIN, max_size=2
    )

    def targets(given: tuple[list[list[float]], dict[str, Any]]) -> None:
        rows, more = given
        arrays = [np.array(row) for row in [*rows, *rows, *rows][:6]]
        correction.targets(*arrays, **more)

    functions: dict[str, tuple[Callable, st.SearchStrategy]] = {
        "make": (lambda given: mavic.make("box_pushing", **given), st.dictionaries(
            st.sampled_from(["size", "big", "dynamics", "horizon", "name", "key"]), ANY, max_size=2)),
        "load_policy": (mavic.load_policy, TEXTS | st.just(str(folder))),
        "report": (mavic.report, TEXTS.map(lambda name: folder / name) | st.just(folder)),
        "train": (lambda given: mavic.train("box_pushing", precheck=False, **given), numbers),
        "targets": (targets, st.tuples(rows, how)),
    }  # fmt: skip

    def act(drawn: tuple[str, Any]) -> None:
        name, given = drawn
        outcome(count, f"{name}({given!r})", lambda: functions[name][0](given) is Ellipsis)

    every = st.one_of(*(st.tuples(st.just(name), one) for name, (_, one) in functions.items()))
    with mock.patch.object(session, "run", lambda *_, **__: []), _unchecked():
        repeat(times, seed, every, act)


@contextlib.contextmanager
def _unchecked() -> Iterator[None]:
    """Functions as users have them: tests check their annotations."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@functools.cache
def _world() -> Any:
    from mavic.bridges.pettingzoo import parallel_env

    return parallel_env("box_pushing", size=4)


def bridges(count: Count, times: int, seed: int, folder: Path) -> None:
    """Wrong choices in the bridges to other libraries, and wrong arguments of them."""
    del folder
    from mavic.bridges.gymnasium import TeamEnv

    env = _world()
    macro = st.sampled_from(
        [0, 1, 2, 5, -1, 99, 1.5, True, "0", None, math.nan, np.int64(1), np.int64(-2), 10**30]
    )
    choices = st.dictionaries(st.sampled_from(["robot_0", "robot_1", "nobody"]), macro, max_size=3)
    opened = st.dictionaries(
        st.sampled_from(["world", "agent", "teammates", "condition", "hear", "size"]),
        PLAIN,
        max_size=2,
    )

    def act(drawn: tuple[str, Any]) -> None:
        name, given = drawn

        def call() -> bool:
            if name == "open":
                TeamEnv(**given)
                return False
            env.reset(seed=0)
            env.step(given)
            whole = all(
                isinstance(given.get(agent), int | np.integer) for agent in env.possible_agents
            )
            return not whole or any(not 0 <= given[agent] < 99 for agent in env.possible_agents)

        outcome(count, f"{name} {given!r}", call)

    with _unchecked():
        repeat(
            times,
            seed,
            st.tuples(st.just("step"), choices) | st.tuples(st.just("open"), opened),
            act,
        )


PIECES = st.sampled_from(
    [
        *(
            b"GET / HTTP/1.1\r\n",
            b"POST /say HTTP/1.1\r\n",
            b"GET /live HTTP/1.1\r\n",
            b"GET /../x HTTP/1.0\r\n",
        ),
        *(
            b"GET /recording/x.html HTTP/1.1\r\n",
            b"BREW * HTTP/9\r\n",
            b"GET /play.js?a=%ff HTTP/1.1\r\n",
        ),
        *(
            b"Host: localhost\r\n",
            b"Host: [\r\n",
            b"Host: \xff\r\n",
            b"Host: a b\r\n",
            b"Host: localhost:99999\r\n",
        ),
        *(
            b"Origin: http://[\r\n",
            b"Cookie: mavic_token=\xe9\r\n",
            b"Content-Length: -1\r\n",
            b"Content-Length: 2\r\n",
        ),
        *(
            b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
            b"Sec-WebSocket-Version: 13\r\n",
            b"x" * 9000,
        ),
        *(
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b": x\r\n",
        ),
        *(b"\r\n", b"{}", b"\x00\x81\x7f", b"zz\r\n"),
    ]
)


def requests(count: Count, times: int, seed: int, folder: Path) -> None:
    """Raw bytes for the playground's port: an answer below 500 or the end of the connection, and nothing in the log."""
    del folder
    import uvicorn

    from mavic.apps.playground import server
    from mavic.runtime.sockets import http_protocol, open_socket

    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: (
        told.append(record.getMessage()) if record.levelno >= logging.ERROR else None
    )  # type: ignore[method-assign]
    logger = logging.getLogger("uvicorn.error")
    with _unchecked():  # without a catalog of teams
        app = server._make_app(SimpleNamespace(teams={}, opening=""), loopback=True)
    options = dict(http=http_protocol(0.2), lifespan="off", log_config=None, log_level="error")
    serving = uvicorn.Server(uvicorn.Config(app, **options))
    logger.addHandler(handler)
    with open_socket("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()

        def act(pieces: list[bytes]) -> None:
            told.clear()
            answer = _answer(listener.getsockname(), b"".join(pieces))
            status = answer[9:12]
            if told or answer.startswith(b"HTTP/1.1 5"):
                count.add("tracebacks", f"{pieces}: {answer[:60]!r} {told[:1]}")
            elif answer == b"open":
                count.add("silent", f"{pieces}: the connection is never closed")
            else:
                count.add("refused" if not status or status >= b"400" else "survived")

        begins = st.sampled_from([[], [b"GET / HTTP/1.1\r\n", b"Host: localhost\r\n"]])
        ends = st.sampled_from([[], [b"\r\n"]])
        mixed = st.tuples(begins, st.lists(PIECES, max_size=4), ends)
        repeat(times, seed, mixed.map(lambda parts: sum(parts, [b""])), act)
        serving.should_exit = True
        thread.join(20)
    logger.removeHandler(handler)


def _answer(address: Any, data: bytes) -> bytes:
    """The answer; b"" if the connection is closed without one, b"open" if it stays open without one."""
    with socket.create_connection(address, timeout=10) as line:
        until = time.monotonic() + 5
        try:
            line.sendall(data)
            line.settimeout(5)
            found = line.recv(4096)
        except TimeoutError:
            return b"open" if time.monotonic() > until else b""
        except OSError:
            return b""
    return found

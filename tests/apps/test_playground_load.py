"""Many pages at once: each page gets each frame in time, and memory does not grow."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import connect

ROOT = Path(__file__).parents[2]
FRAMES_A_SECOND = 10
WORDS = ("don't push", "go to the small boxes", "please stay where you are")


@pytest.fixture
def address():
    """`mavic play` as a user starts it."""
    command = [sys.executable, "-m", "mavic", "play", "--no-browser", "--port", "0"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://(\S+)/", line)
        assert found, line
        yield found[1], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(20) in (0, 130, -signal.SIGINT)


def memory(pid: int) -> float:
    """Resident, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


async def watch(address: str, seconds: float, page: int, ready, began: asyncio.Event) -> dict:
    """A page that watches, says something now and then, and counts what it gets."""
    async with connect(f"ws://{address}/live", max_size=None, open_timeout=60) as line:
        await line.recv()
        wish = dict(do="open", world="box_pushing", teams=["mavic"], seed=page, seat=None)
        await line.send(json.dumps(wish))
        while json.loads(await line.recv())["type"] != "clock":
            pass
        await line.send(json.dumps({"do": "speed", "value": FRAMES_A_SECOND}))
        await line.send(json.dumps({"do": "say", "text": WORDS[0]}))
        ready()
        await began.wait()
        numbers, times, ends, lags = [], [], [], []
        until = time.monotonic() + seconds
        next_word, said = time.monotonic() + 2 + page % 7, None
        while (now := time.monotonic()) < until:
            if now >= next_word:
                word = WORDS[int(now) % len(WORDS)]
                await line.send(json.dumps({"do": "say", "text": word}))
                next_word, said = now + 7, now
            text = await asyncio.wait_for(line.recv(), 20)
            if text.startswith('{"type":"frame"'):
                times.append(time.monotonic())
                numbers.append(int(re.search(r'"number":(\d+),"seed"', text)[1]))
                ends.append('"over":true,"still"' in text)
                if said is not None and '"decided":true' in text:
                    lags.append(times[-1] - said)
                    said = None
        gaps = np.diff(times)[~np.array(ends[:-1])]  # an episode's end stays in sight for a while
        return {"numbers": numbers, "gaps": gaps, "lags": lags}


async def crowd(
    address: str, pid: int, pages: int, seconds: float
) -> tuple[list[dict], list[float]]:
    waiting = [pages]
    began = asyncio.Event()

    def ready() -> None:
        waiting[0] -= 1
        if not waiting[0]:
            began.set()

    tasks = [
        asyncio.create_task(watch(address, seconds, page, ready, began)) for page in range(pages)
    ]
    await began.wait()
    sizes = []
    while not all(task.done() for task in tasks):
        sizes.append(memory(pid))
        await asyncio.sleep(1)
    return [task.result() for task in tasks], sizes


@pytest.mark.slow
def test_an_hour_of_pages(address):
    """As long as `make test-faults FAULTS="--pages 50 --minutes 60"` asks for; a minute of ten pages by itself."""
    pages, seconds = map(int, os.environ.get("MAVIC_CROWD", "10 60").split())
    where, pid = address
    results, sizes = asyncio.run(crowd(where, pid, pages, seconds))
    dropped = 0
    for result in results:
        numbers = result["numbers"]
        dropped += int(np.sum(np.diff(numbers) != 1))
    every = max(1, len(sizes) // 12)
    print(
        f"{pages} pages for {seconds} s: {sum(len(r['numbers']) for r in results):,} frames, "
        f"{dropped} dropped, memory {' '.join(f'{size:.0f}' for size in sizes[::every])} MB, "
        f"at most {max(sizes):.0f}"
    )
    half = len(sizes) // 2
    assert dropped == 0
    assert np.mean(sizes[-half // 4 :]) < 1.1 * np.mean(sizes[half : half + half // 4 + 1])


@pytest.mark.parametrize(
    "pages, seconds",
    [  # the short one stands with the browser's tests, which run alone: others would take its cores
        pytest.param(8, 4, marks=pytest.mark.browser),
        pytest.param(50, 60, marks=pytest.mark.slow),
    ],
)
def test_a_crowd_gets_every_frame(address, pages, seconds):
    where, pid = address
    results, sizes = asyncio.run(crowd(where, pid, pages, seconds))
    rates = []
    for result in results:
        numbers = result["numbers"]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))  # none dropped
        # loading the encoder takes much of a few seconds, so the mean is used only for a whole minute
        middle = np.mean if seconds >= 60 else np.median
        rates.append(1 / middle(result["gaps"]))
    lags = [lag for result in results for lag in result["lags"]]
    third = len(sizes) // 3
    grown = np.mean(sizes[-third:]) / np.mean(sizes[third : 2 * third]) if third else 1.0
    gaps = np.concatenate([result["gaps"] for result in results])
    print(
        f"{pages} pages, {seconds} s: {min(rates):.2f} to {max(rates):.2f} frames a second, "
        f"99 % of gaps under {1000 * np.quantile(gaps, 0.99):.0f} ms, words to frame "
        f"{1000 * np.median(lags) if lags else 0:.0f} ms median, memory {sizes[0]:.0f} to {sizes[-1]:.0f} MB"
    )
    assert min(rates) > (0.95 if seconds >= 60 else 0.8) * FRAMES_A_SECOND
    if seconds >= 30:  # before that the encoder may still be waking up
        assert grown < 1.05

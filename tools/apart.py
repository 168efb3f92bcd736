"""Scores once more, by a plain loop over the environment and `act` that shares no code with the evaluation.

    python -m tools.apart runs/one/* runs/two/* --json results/apart.json

compares the score of every policy in these folders with the record beside it. The clock of instructions, who complies,
what counts and what is earned are written here a second time, from docs/definitions.md and the instruction files as
they stand. Only the environment, the team and the record are the package's own. A record holds other episodes, so
numbers may differ by what so few episodes scatter.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import math
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mavic
from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.reporting import styles
from mavic.storage import files

RATE, SHORTEST, LONGEST, COUNTS_AFTER = 0.05, 5, 20, 40
FREE, HELD, SEVERAL = (
    48,
    24,
    3,
)  # episodes without and with a held instruction; pairs that are tried
ERRORS = 4.5  # standard errors: of a thousand comparisons, hardly one goes beyond


class Found(NamedTuple):
    """A number of the loop beside the recorded one."""

    what: str
    mine: float
    episodes: int
    theirs: float
    errors: float
    """How many standard errors lie between the two."""


@dataclass
class Said:
    """An instruction and what became of it."""

    name: str
    kind: dict
    agents: list[bool]
    phrase: str
    left: float
    held: int = 0
    obeyed: bool = True
    decided: bool = False


@dataclass
class Told:
    """What one episode showed."""

    earned: float = 0.0
    solved: bool = False
    ticks: int = 0
    counted: list[tuple[str, bool]] = field(
        default_factory=list
    )  # instructions, and whether they were followed


class Loop:
    """A team in its world, one episode after another."""

    def __init__(self, policy: str | Path) -> None:
        self.team = mavic.load_policy(policy)
        world = self.team.facts["world"]
        self.env = mavic.make(world)
        path = api.world(world).instructions
        assert path is not None
        text = path.read_text(encoding="utf-8")
        self.kinds = {n: k for n, k in tomllib.loads(text)["kinds"].items() if not k.get("extra")}
        self.gamma = self.team.facts["preset"]["gamma"]
        env = self.env
        self.reset, self.tick = jax.jit(env.reset), jax.jit(env.tick)
        self.look = jax.jit(lambda s: (env.observe(s), env.available(s), env.check(s)))

    def says(self, name: str, left: float, draw: random.Random) -> Said:
        kind = self.kinds[name]
        agents = [one in kind.get("agents", self.env.agents) for one in self.env.agents]
        left = math.inf if kind.get("resolved_by") else left
        return Said(name, kind, agents, draw.choice(kind["train"]), left)

    def can_be_given(self, name: str, holds: np.ndarray) -> bool:
        needs = self.kinds[name].get("given_if")
        return needs is None or bool(holds[self.env.preconditions.index(needs)])

    def complies(self, said: Said, agent: int, macros: tuple[int, int]) -> bool:
        """A macro counts by its name and by the work that it does."""
        named = [self.env.macros[agent](number).name for number in macros]
        lists: Any = said.kind.get("allow") or said.kind.get("forbid")
        if isinstance(lists, dict):
            lists = lists.get(self.env.agents[agent])
            if lists is None:  # agents that are not named may do anything
                return True
        if "*" in lists:
            lists = self.env.macros[agent].__members__
        if "allow" in said.kind:
            return any(name in lists for name in named)
        return not any(name in lists for name in named)

    def effect(self, said: list[Said]) -> list[int]:
        found = [0] * len(self.env.agents)
        for one in said:
            if one.kind.get("effect"):
                number = 1 + self.env.effects.index(one.kind["effect"])
                found = [max(f, number * a) for f, a in zip(found, one.agents, strict=True)]
        return found

    def sentences(self, said: list[Said], place: int) -> list[str | None] | None:
        if len(said) <= place:
            return None
        return [said[place].phrase if meant else None for meant in said[place].agents]

    def episode(self, seed: int, held: tuple[str, ...] = (), live: bool = False) -> Told:
        draw, told, carry = random.Random(seed), Told(), self.team.start()
        state = self.reset(jax.random.key(draw.getrandbits(31)))
        seen, offered, holds = map(np.asarray, self.look(state))
        said = [self.says(n, math.inf, draw) for n in held if self.can_be_given(n, holds)]
        agents = range(len(self.env.agents))
        idle, macro = np.ones(len(agents), bool), np.zeros(len(agents), np.int32)
        decided_from = seen.copy()
        while True:
            decided_from[idle] = seen[idle]
            more: dict[str, Any] = {"also": self.sentences(said, 1)} if len(said) > 1 else {}
            key = jax.random.key(draw.getrandbits(31))
            text = self.sentences(said, 0)
            chosen, carry = self.team.act(
                key, carry, decided_from, text, idle, available=offered, **more
            )
            macro = np.where(idle, np.asarray(chosen), macro).astype(np.int32)
            effect = jnp.asarray(self.effect(said), jnp.int32)
            key = jax.random.key(draw.getrandbits(31))
            after = self.tick(key, state, macro, idle, effect)
            works, events = np.asarray(after.effective_macro), np.asarray(after.events)
            told.earned += self.gamma**told.ticks * float(np.mean(after.reward))
            told.solved |= bool(events[0] > 0)
            told.ticks += 1
            cut = after.truncated is not None and bool(after.truncated)
            over = bool(after.terminal) or cut or told.ticks >= self.env.horizon
            was_told, still = bool(said), []
            for one in said:
                for i in agents:
                    if one.agents[i] and idle[i]:
                        one.decided = True
                        one.obeyed &= self.complies(one, i, (int(macro[i]), int(works[i])))
                one.held, one.left = one.held + 1, one.left - 1
                sign, waits = self.verdict(one, events), bool(one.kind.get("resolved_by"))
                ends = sign != 0 or one.left <= 0
                if ends or over:
                    if one.decided and (not waits or sign or one.held >= COUNTS_AFTER):
                        told.counted.append((one.name, one.obeyed and (not waits or sign > 0)))
                else:
                    still.append(one)
            if over:
                return told
            changed, said = len(still) < len(said), still
            state = after.state
            seen, offered, holds = map(np.asarray, self.look(state))
            if live and not was_told and draw.random() < RATE:
                possible = [name for name in self.kinds if self.can_be_given(name, holds)]
                if possible:
                    length = draw.randint(SHORTEST, LONGEST)
                    said, changed = [self.says(draw.choice(possible), length, draw)], True
            idle = np.asarray(after.ended) | changed

    def verdict(self, said: Said, events: np.ndarray) -> int:
        signs = [
            sign
            for event, sign in said.kind.get("resolved_by", {}).items()
            if events[self.env.events.index(event)] > 0
        ]
        return 1 if 1 in signs else -1 if -1 in signs else 0


def compared(
    mine: list[float], theirs: float | None, episodes: float, what: str
) -> Iterator[Found]:
    """Yield a mean of mine beside a recorded one. Shares get the scatter of one more of each sort."""
    if theirs is None or not mine:
        return
    numbers = np.array(mine, float)
    share = set(mine) <= {0.0, 1.0}
    likely = (numbers.sum() + 1) / (len(numbers) + 2)
    spread = math.sqrt(likely * (1 - likely)) if share else numbers.std(ddof=1)
    error = spread * math.sqrt(1 / len(numbers) + 1 / episodes) + 1e-3 * abs(theirs) + 1e-6
    gap = abs(numbers.mean() - theirs)
    yield Found(what, float(numbers.mean()), len(numbers), theirs, float(gap / error))


def recorded(path: Path, seed: int) -> tuple[dict[str, Any], int]:
    """Return the score line of a record, and the place of a seed in it."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[-1], lines[0]["seeds"].index(seed)


def score_again(policy: str | Path, folder: Path) -> Iterator[Found]:
    """Yield what a loop finds of a policy beside the record of its training in `folder`."""
    loop = Loop(policy)
    facts = loop.team.facts
    name = f"{ExperimentConfig(**facts['config']).name()}.jsonl"
    path = folder / name if (folder / name).is_file() else folder / f"{name}.gz"
    score, place = recorded(path, facts["seed"])

    def theirs(*path: str) -> float | None:
        value: Any = functools.reduce(lambda part, name: part[name], path, score)
        return value[place]

    base = [loop.episode(seed) for seed in range(FREE)]
    count = score["base"]["episodes"]
    earned = [one.earned for one in base]
    yield from compared(earned, theirs("base", "discounted"), count, "base return")
    ticks = [float(one.ticks) for one in base]
    yield from compared(ticks, theirs("base", "length"), count, "length")
    solved = [float(one.solved) for one in base]
    yield from compared(solved, theirs("base", "solved"), count, "solved")

    live = [loop.episode(1000 + seed, live=True) for seed in range(FREE)]
    given = sum(kind[place] for kind in score["compliance"]["given"].values())
    followed = [float(one) for episode in live for _, one in episode.counted]
    yield from compared(followed, theirs("compliance", "per_instruction"), given, "followed")
    count = score["compliance"]["episodes"]
    earned = [one.earned for one in live]
    yield from compared(earned, theirs("compliance", "discounted"), count, "live return")

    for kind, entry in score["under"].items():
        if entry["task"][place] is None:
            continue
        held = [loop.episode(2000 + seed, held=(kind,)) for seed in range(HELD)]
        count = entry.get("episodes", 512)
        earned = [one.earned for one in held]
        yield from compared(earned, theirs("under", kind, "task"), count, f"under {kind}")
        obeyed = [float(one) for episode in held for _, one in episode.counted]
        yield from compared(obeyed, theirs("under", kind, "obeyed"), count, f"{kind} obeyed")

    for pair in list(score.get("pairs", {}))[:SEVERAL]:
        held = [loop.episode(3000 + s, held=tuple(pair.split("+"))) for s in range(HELD)]
        earned = [one.earned for one in held]
        yield from compared(earned, theirs("pairs", pair, "task"), 512, f"under {pair}")
        both = [float(len(e.counted) == 2 and all(f for _, f in e.counted)) for e in held]
        yield from compared(both, theirs("pairs", pair, "obeyed"), 512, f"{pair} obeyed")


def markdown(results: Path, of: str = "") -> str:
    """Return the table of what `main` wrote, in Markdown."""
    entries = json.loads((results / "apart.json").read_text(encoding="utf-8"))
    lines = [
        "| world | method | seeds | numbers compared | largest gap, standard errors |",
        "|---|---|---|---|---|",
    ]
    for world, method in sorted({(one["world"], one["method"]) for one in entries}):
        own = [one for one in entries if (one["world"], one["method"]) == (world, method)]
        gaps = [found["errors"] for one in own for found in one["found"]]
        seeds = ", ".join(str(one["seed"]) for one in own)
        cells = (
            api.world(world).title,
            styles.look(method).label,
            seeds,
            len(gaps),
            f"{max(gaps):.1f}",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare all policies of the folders with their records, and keep what is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, help="folders of `mavic train`, one per world"
    )
    parser.add_argument("--json", type=Path, required=True, help="the file that gets the numbers")
    given = parser.parse_args()
    entries = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else []
    for folder in given.folders:
        for policy in sorted(folder.glob("*.safetensors")):
            facts = mavic.load_policy(policy).facts
            config = facts["config"]
            found = list(score_again(policy, folder))
            worst = max(found, key=lambda one: one.errors)
            entry = dict(world=facts["world"], method=config["method"], seed=facts["seed"])
            print(
                f"{policy}: {len(found)} numbers, at most {worst.errors:.1f} standard errors ({worst.what})"
            )
            entries = [one for one in entries if {**one, **entry} != one]
            entries.append({**entry, "found": [one._asdict() for one in found]})
            files.write_text(given.json, json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()

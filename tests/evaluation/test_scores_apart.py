"""Published scores once more, by a plain loop over the environment and `act` that shares no code with the evaluation.

The clock of instructions, who complies, what counts and what is earned are written here a second time, from
docs/definitions.md and the instruction files as they stand. Only the environment, the team and the record are the
package's own. A shipped team's record holds other episodes, so numbers may differ by what so few episodes scatter.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
import random
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mavic
from mavic.experiment.config import ExperimentConfig

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
RATE, SHORTEST, LONGEST, COUNTS_AFTER = 0.05, 5, 20, 40
FREE, HELD, SEVERAL = (
    48,
    24,
    3,
)  # episodes without and with a held instruction; pairs that are tried
ERRORS = 4.5  # standard errors: of some two hundred comparisons, hardly one goes beyond
TEAMS = [(w, m) for w in ("box_pushing", "warehouse", "overcooked") for m in ("mavic", "naive")]


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

    def __init__(self, world: str, method: str) -> None:
        self.team = mavic.load_policy(f"{world}/{method}")
        self.env = mavic.make(world)
        text = (ROOT / f"mavic/envs/{world}/instructions.toml").read_text()
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
        lists = said.kind.get("allow") or said.kind.get("forbid")
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
            more = {"also": self.sentences(said, 1)} if len(said) > 1 else {}
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


def agrees(mine: list[float], theirs: float | None, episodes: float, what: str) -> None:
    """Compare a mean of mine with a recorded one; shares get the scatter of one more of each sort."""
    if theirs is None or not mine:
        return
    numbers = np.array(mine, float)
    share = set(mine) <= {0.0, 1.0}
    likely = (numbers.sum() + 1) / (len(numbers) + 2)
    spread = math.sqrt(likely * (1 - likely)) if share else numbers.std(ddof=1)
    error = spread * math.sqrt(1 / len(numbers) + 1 / episodes) + 1e-3 * abs(theirs) + 1e-6
    gap = abs(numbers.mean() - theirs)
    assert gap <= ERRORS * error, (
        f"{what}: {numbers.mean():.4g} of {len(numbers)}, published {theirs:.4g}, "
        f"{gap / error:.1f} standard errors"
    )


@functools.cache
def published(world: str, name: str, seed: int) -> dict:
    """The score line of a shipped team's record, and the place of its seed."""
    path = ROOT / f"results/{world}/{name}.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {"score": lines[-1], "place": lines[0]["seeds"].index(seed)}


@pytest.mark.parametrize(("world", "method"), TEAMS)
def test_a_plain_loop_finds_the_published_scores(world, method):
    loop = Loop(world, method)
    facts = loop.team.facts
    found = published(world, ExperimentConfig(**facts["config"]).name(), facts["seed"])
    score, place = found["score"], found["place"]

    def theirs(*path: str) -> float | None:
        value = functools.reduce(lambda part, name: part[name], path, score)
        return value[place]

    base = [loop.episode(seed) for seed in range(FREE)]
    count = score["base"]["episodes"]
    agrees([one.earned for one in base], theirs("base", "discounted"), count, "base return")
    agrees([one.ticks for one in base], theirs("base", "length"), count, "length")
    agrees([float(one.solved) for one in base], theirs("base", "solved"), count, "solved")

    live = [loop.episode(1000 + seed, live=True) for seed in range(FREE)]
    counted = [one for episode in live for one in episode.counted]
    given = sum(kind[place] for kind in score["compliance"]["given"].values())
    followed = [float(one) for _, one in counted]
    agrees(followed, theirs("compliance", "per_instruction"), given, "followed")
    count = score["compliance"]["episodes"]
    agrees([one.earned for one in live], theirs("compliance", "discounted"), count, "live return")

    for kind, entry in score["under"].items():
        if entry["task"][place] is None:
            continue
        held = [loop.episode(2000 + seed, held=(kind,)) for seed in range(HELD)]
        count = entry.get("episodes", 512)
        agrees([one.earned for one in held], theirs("under", kind, "task"), count, f"under {kind}")
        obeyed = [float(one) for episode in held for _, one in episode.counted]
        agrees(obeyed, theirs("under", kind, "obeyed"), count, f"{kind} obeyed")

    for pair in list(score.get("pairs", {}))[:SEVERAL]:
        held = [loop.episode(3000 + s, held=tuple(pair.split("+"))) for s in range(HELD)]
        agrees([one.earned for one in held], theirs("pairs", pair, "task"), 512, f"under {pair}")
        both = [float(len(e.counted) == 2 and all(f for _, f in e.counted)) for e in held]
        agrees(both, theirs("pairs", pair, "obeyed"), 512, f"{pair} obeyed")

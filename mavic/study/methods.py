"""What can be compared: methods, networks, schedules and presets, as rows of tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mavic.instructions import suggest
from mavic.learn import nets
from mavic.learn.learner import Fixed, Hyper
from mavic.learn.nets import Shape

Pair = tuple[float, float]  # uninstructed, instructed


@dataclass(frozen=True, kw_only=True)
class Method:
    """What is optimised: which data, and what happens to values at an instruction boundary."""

    instructions: str  # none | interrupt | per_episode
    correction: str  # none | shift | cut
    random: bool = False  # judged with random macros: a yardstick, nothing of it is learnt


METHODS = {
    "vanilla": Method(instructions="none", correction="none"),
    "naive": Method(instructions="interrupt", correction="none"),
    "switch": Method(instructions="per_episode", correction="none"),
    "mavic": Method(instructions="interrupt", correction="cut"),
    "mavic-shift": Method(instructions="interrupt", correction="shift"),
    "random": Method(instructions="none", correction="none", random=True),
}
NETWORKS = tuple(nets.NETWORKS)
RULES = ("by-kind", "add")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The learner's numbers; pairs are for uninstructed and for instructed decisions."""

    episodes: int = 50_000
    """Training episodes."""
    batch: int = 32
    """Complete episodes an update."""
    gamma: float = 0.995
    """Discount a tick."""
    actor_rate: float = 5e-4
    """Adam step size of the actors."""
    critic_rate: float = 3e-3
    """Adam step size of the critics."""
    rate_end: float = 1.0
    """Share of the actors' step size left at the end (linear)."""
    critic_rate_end: float | None = None
    """Share of the critics' step size left at the end; None: as the actors'."""
    n_steps: int | None = 1
    """Macro rows a target looks ahead; 1 is one-step TD, None looks to the episode's end (Monte Carlo)."""
    trace: float = 1.0
    """How far a target trusts the return beyond the next row rather than the critic there (lambda)."""
    epsilon_start: float = 1.0
    """Exploration at the start."""
    epsilon_end: Pair = (0.01, 0.01)
    """Exploration from `epsilon_episodes` on."""
    epsilon_episodes: int = 4_000
    """Episodes until then."""
    entropy_start: Pair = (0.0, 0.0)
    """Entropy bonus at the start."""
    entropy_end: Pair = (0.0, 0.0)
    """Entropy bonus from `entropy_episodes` on."""
    entropy_episodes: int = 1
    """Episodes until then."""
    mild_advantage: Pair = (1.0, 1.0)
    """Weight of negative advantages (hysteresis; 1 is none)."""
    mild_error: Pair = (1.0, 1.0)
    """Weight of critic errors that call for a lower value."""
    mild_end: Pair | None = None
    """What both weights reach at the end of training (linear); None leaves them."""
    mild_advantage_end: Pair | None = None
    """What the first reaches instead; None: as `mild_end`."""
    balance: bool = False
    """Every kind weighs the same in the losses."""
    centre: Pair = (0.0, 0.0)
    """1: advantages of each kind less their mean."""
    normalise: Pair = (0.0, 0.0)
    """1: advantages of each kind divided by their root mean square."""
    through_mixture: bool = True
    """Policy gradient of the ε-mixture (the reference's) or of the softmax under it, which does not vanish where the
    softmax has given a macro up."""
    time_weight: bool = True
    """Weight actor terms by gamma^t, as the reference does."""
    value_size: float = 1.0
    """What a critic's output of 1 means; near the size of returns, critics need no large weights."""
    fresh_size: float | None = None
    """What a fresh critic's output of 1 means; None: as much. Small, first values are near 0 and not noise of that
    unit, which in some seeds talks a team out of its task before it has found it."""
    popart: float = 0.0
    """Step of the running value statistics; 0 is off."""
    alarm: float = 0.0
    """Chance a tick of a false alarm, in training with interruptions: all macros end, nothing is said. A critic asked
    what an interrupted history is worth under the old instruction has then seen such histories under it. None in quiet
    episodes."""
    quiet: float = 0.0
    """Share of episodes, in training with interruptions, that see none: where instructions are many or long, few
    decisions would be left to learn the task from."""
    lasting: float = 0.0
    """Share of the instructions, in training with interruptions, that hold to the episode's end if they leave the task
    on (rule add): short ones never show what the whole task is worth under them."""
    target_episodes: int = 32
    """Episodes between copies of the target critic."""
    word_rate: float = 1.0
    """Step size of the layer that takes in phrases, as a part of the others'. Adam steps all weights alike, and it has
    as many inputs as the embedding: at full size one step under "left" moves what "right" means as well."""
    adam_memory: float = 0.999
    """Adam's second-moment decay."""
    clip: float = 1e9
    """Largest gradient norm."""
    hidden: int = 32
    """Width of every layer."""
    last_macro: bool = False
    """Agents see which macro they ran last."""
    drop_unfinished: bool = False
    """Forget macros that run when the episode ends, as the reference does."""

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Preset:
        """From a file's; what was not yet a number when it was written is as it was."""
        whole: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in numbers.items()
        }
        return cls(**whole)


_PAPER_BOX = Preset()  # the paper's table for Box Pushing: n-step 0 is one-step TD
_TUNED = Preset(  # what all tuned ones share
    batch=128,
    critic_rate=3e-3,
    rate_end=0.3,
    mild_end=(1.0, 1.0),
    balance=True,
    adam_memory=0.99,
    value_size=100.0,
    last_macro=True,
    target_episodes=128,
)
_TUNED_BOX = dataclasses.replace(
    _TUNED,
    episodes=256_000,
    actor_rate=2e-3,
    critic_rate_end=0.1,
    n_steps=5,
    # where nothing is asked, hardly any: a history cut short by a person is taken for one cut short by the other
    # robot's whim, and valued too low
    epsilon_end=(0.005, 0.05),
    epsilon_episodes=32_000,
    # where nothing is asked, in units of the return: advantages are raw there
    entropy_start=(1.0, 0.2),
    entropy_episodes=160_000,
    mild_advantage=(0.1, 1.0),
    mild_error=(0.3, 1.0),
    mild_advantage_end=(0.1, 1.0),  # without, a robot that waits for the other gives up pushing
    centre=(0.0, 1.0),
    normalise=(0.0, 1.0),
    fresh_size=1.0,
    alarm=0.05,
    quiet=0.4,
)

_PAPER_WAREHOUSE = Preset(
    episodes=40_000,
    batch=4,
    gamma=1.0,
    actor_rate=3e-4,
    n_steps=5,
    epsilon_episodes=10_000,
)
# What both long worlds take: returns to the end (critics that bootstrap each other collapse now and then), advantages
# on one footing everywhere, entropy everywhere, mild hysteresis
_LONG = dataclasses.replace(
    _TUNED,
    episodes=128_000,
    actor_rate=4e-3,
    n_steps=None,
    epsilon_end=(0.01, 0.05),
    epsilon_episodes=16_000,
    mild_advantage=(0.3, 1.0),
    mild_error=(0.5, 1.0),
    centre=(1.0, 1.0),
    normalise=(1.0, 1.0),
)
_TUNED_WAREHOUSE = dataclasses.replace(
    _LONG,
    gamma=1.0,
    episodes=179_200,
    batch=256,
    target_episodes=256,
    trace=0.95,
    epsilon_episodes=100_000,  # long: the order 0, 0, 1, 1 is found by chance or not at all
    entropy_start=(0.05, 0.05),
    entropy_episodes=150_000,
    quiet=0.5,
)
_PAPER_OVERCOOKED = Preset(
    episodes=400_000,
    batch=16,
    gamma=0.992,
    actor_rate=4e-4,
    critic_rate=5e-3,
    n_steps=5,
    epsilon_end=(0.1, 0.1),
    epsilon_episodes=100_000,
)
_TUNED_OVERCOOKED = dataclasses.replace(
    _LONG,
    gamma=0.992,
    episodes=160_000,
    trace=0.97,
    epsilon_episodes=10_000,
    entropy_start=(0.05, 0.05),
    entropy_episodes=125_000,
    fresh_size=1.0,
    quiet=0.3,
)

PRESETS: dict[str, dict[str, Preset]] = {
    "paper": {
        "box_pushing": _PAPER_BOX,
        "warehouse": _PAPER_WAREHOUSE,
        "overcooked": _PAPER_OVERCOOKED,
    },
    "tuned": {
        "box_pushing": _TUNED_BOX,
        "warehouse": _TUNED_WAREHOUSE,
        "overcooked": _TUNED_OVERCOOKED,
    },
}

_PAPER_ANY = Preset(gamma=0.99, n_steps=5)
_TUNED_ANY = dataclasses.replace(
    _LONG, gamma=0.99, entropy_start=(0.05, 0.05), entropy_episodes=100_000, value_size=1.0
)
ANY = {"paper": _PAPER_ANY, "tuned": _TUNED_ANY}  # a start for worlds of one's own

# D12: solved Box Pushing episodes last 6 ticks, so the paper's schedule needs a higher rate there
SCHEDULE_OVERRIDES: dict[tuple[str, str], dict] = {("box_pushing", "paper"): dict(rate=0.05)}


def look_up(table: dict, name: str, what: str):
    """A row of a table, or an error that lists the rows."""
    if name not in table:
        raise ValueError(f"{what} {name!r} is unknown; {suggest(name, tuple(table))}")
    return table[name]


def preset_of(name: str, world: str, **changes) -> Preset:
    """A preset's numbers for a world, some of them changed. With another number of `episodes`, what is counted in
    episodes (exploration, entropy) stretches or shrinks along. A world without a row gets a row for any."""
    preset = look_up(PRESETS, name, "preset").get(world, ANY[name])
    changes = {k: v for k, v in changes.items() if v is not None}
    share = changes.get("episodes", preset.episodes) / preset.episodes
    along = {
        k: max(1, round(getattr(preset, k) * share))
        for k in ("epsilon_episodes", "entropy_episodes")
    }
    return dataclasses.replace(preset, **{**along, **changes})


def fixed_of(
    preset: Preset,
    network: str,
    *,
    observation: int,
    macros: int,
    agents: int,
    embedding: int,
    kinds: int,
) -> Fixed:
    """What shapes the compiled program."""
    return Fixed(
        shape=Shape(
            observation=observation,
            macros=macros,
            agents=agents,
            embedding=embedding,
            hidden=preset.hidden,
            projected=preset.hidden,
            last_macro=preset.last_macro,
            **look_up(nets.NETWORKS, network, "network"),
        ),
        n_steps=math.inf if preset.n_steps is None else preset.n_steps,
        batch=preset.batch,
        kinds=kinds,
        drop_unfinished=preset.drop_unfinished,
        fresh_target=preset.target_episodes <= preset.batch,
    )


def hyper_of(preset: Preset) -> Hyper:
    """The numbers that can be vmapped over: a preset's own, by name."""
    own = dataclasses.asdict(preset)
    own |= {
        "popart_beta": preset.popart,
        "fresh_size": preset.value_size if preset.fresh_size is None else preset.fresh_size,
        "mild_end": preset.mild_end or preset.mild_error,
        "mild_advantage_end": preset.mild_advantage_end or preset.mild_end or preset.mild_advantage,
        "critic_rate_end": preset.rate_end
        if preset.critic_rate_end is None
        else preset.critic_rate_end,
    }
    leaves: dict[str, Any] = {
        f.name: np.asarray(own[f.name], np.float32) for f in dataclasses.fields(Hyper)
    }
    leaves["target_episodes"] = np.int32(preset.target_episodes)
    return Hyper(**{name: jnp.asarray(leaf) for name, leaf in leaves.items()})

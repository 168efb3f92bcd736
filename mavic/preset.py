"""The learner's numbers: one frozen record with a help line for each number.

`DEFAULT` serves every world. The built-in worlds also bring the paper's numbers, the reference's, and those that were
tuned by hand for each world in version 0.2 (`mavic/envs/<world>/presets.py`). The command line and Python callers
change single numbers by name. Numbers that appear in the paper keep the paper's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from mavic import ranges
from mavic.hints import suggest
from mavic.ranges import Count, NotNegative, Positive, Range, Share

# By context: uninstructed; instructed while the task goes on; instructed instead of the task. (a, b) means (a, b, b).
ByContext = tuple[float, float] | tuple[float, float, float]
Shares = Annotated[ByContext, Range(0, 1)]
Weights = Annotated[ByContext, Range(0, 1e6)]
StepSize = Annotated[float, Range(0, 1e38, above=True)]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The numbers of one training. Some are by context: two numbers (not asked, asked) or three (`ByContext`)."""

    episodes: Count = 50_000
    """Training episodes."""
    batch: Annotated[int, Range(1, 10**6)] = 32
    """Complete episodes per update."""
    gamma: Share = 0.995
    """Discount per tick."""
    actor_lr: StepSize = 5e-4
    """Adam step size of the actors."""
    critic_lr: StepSize = 3e-3
    """Adam step size of the critics."""
    final_lr_fraction: Share = 1.0
    """The actors' step size falls linearly to this fraction at the end of training."""
    critic_final_lr_fraction: Share | None = None
    """The same for the critics; None: the actors' fraction."""
    n_steps: Annotated[int, Range(1, 10**6)] | None = 1
    """Macro transitions in an n-step target; 1 is one-step TD, None is Monte Carlo (to the end of the episode)."""
    td_lambda: Share = 1.0
    """Lambda of the returns: 0 trusts the critic at the next decision, 1 trusts the n-step return."""
    epsilon_start: Share = 1.0
    """Exploration at the start: the share of uniformly random macros."""
    epsilon_end: Shares = (0.01, 0.01)
    """Exploration from `epsilon_episodes` on."""
    epsilon_episodes: Count = 4_000
    """Episodes over which exploration falls linearly."""
    entropy_start: Weights = (0.0, 0.0)
    """Entropy bonus at the start."""
    entropy_episodes: Count = 1
    """Episodes over which the entropy bonus falls linearly to 0."""
    actor_hysteresis: Weights = (1.0, 1.0)
    """Weight of negative advantages; 1 is none, smaller is more optimistic."""
    critic_hysteresis: Weights = (1.0, 1.0)
    """Weight of critic errors that call for a lower value."""
    hysteresis_end: Weights | None = None
    """Both weights move linearly to this at the end of training; None keeps them."""
    actor_hysteresis_end: Weights | None = None
    """The actors' weight moves to this instead; None: `hysteresis_end`."""
    balance_kinds: bool = False
    """Every kind of instruction has the same total weight in the losses."""
    center_advantages: Shares = (0.0, 0.0)
    """1: subtract each kind's mean advantage."""
    normalize_advantages: Shares = (0.0, 0.0)
    """1: divide each kind's advantages by their root mean square; 0.5: by its square root."""
    advantage_scale: Weights = (1.0, 1.0)
    """Factor on advantages after that. It brings advantages in units of the return to the size of normalized ones."""
    allowed_loss: Weights = (0.0, 0.0)
    """Weight of a loss: minus the log of the total probability of the allowed macros, for agents that are addressed."""
    discount_actor_loss: bool = True
    """Weight actor terms by gamma^t, as the reference does. Only the backbone acac turns it off."""
    value_scale: Positive | None = 1.0
    """The value that a critic output of 1 stands for. Near the size of returns, critics need no large weights. None: it
    grows with the targets, and advantages are in units of it. Training is then free of the units of rewards."""
    critic_init_scale: NotNegative | None = None
    """The value that an output of 1 of an untrained critic stands for; None: `value_scale`. If it is small, the first
    values are near 0. With large random first values some seeds never
    learn the task."""
    popart_step: Share = 0.0
    """Step size of the running value statistics (PopArt); 0 is off. Only the backbone acac sets it."""
    spurious_interrupt_prob: Share = 0.0
    """Chance per tick, in training with interruptions, that all macros end without a new instruction. Critics then
    learn from interrupted histories under an unchanged instruction. Uninstructed episodes have no such interrupts."""
    uninstructed_episode_prob: Share = 0.0
    """Share of training episodes without instructions. Where instructions are frequent or long, few uninstructed
    decisions would otherwise be left to learn the task from."""
    hold_to_end_prob: Share = 0.0
    """Share of the instructions with rule add that hold to the end of the episode. Short instructions never show what
    the whole task is worth under them."""
    drill_prob: Share = 0.0
    """Prohibitions with rule add may hold for a whole episode. This share of them is enforced in training: what they
    forbid is unavailable to the agents addressed. The team then visits states in which it must use an alternative. It
    learns to refuse from the other prohibitions."""
    from_start_prob: Share = 0.0
    """Share of the episodes with instructions, in training with interruptions, that begin under one with rule add."""
    one_agent_prob: Share = 0.0
    """Share of the instructions in training that address one random agent instead of all that they are meant for. The
    team then also knows how to work with an agent that alone is asked."""
    single_instruction: bool = False
    """An episode that begins under an instruction gets no second one. Otherwise states after
    its fulfilment are undersampled."""
    target_network: bool = False
    """Keep a target critic and copy it every `target_update_episodes`; otherwise targets come from the critic."""
    target_update_episodes: Count = 32
    """Episodes between two copies of the target critic."""
    adam_b2: Annotated[float, Range(0, 0.999999)] = 0.999
    """Adam's decay of second moments."""
    kind_heads: bool = False
    """The instructed part has an output layer of its own for each kind. Only with hearing kinds."""
    hidden: Annotated[int, Range(1, 4096)] = 32
    """Width of every layer."""
    last_macro: bool = False
    """Agents observe which macro they ran last."""
    drop_unfinished: bool = False
    """Drop macros that still run when the episode ends, as the reference does."""
    first_to_finish: Annotated[int, Range(0, 10**6)] = 0
    """The number of parallel environments, each restarting when its episode ends. Play stops when `batch` episodes have
    ended; those that still run are thrown away, as the reference does. 0: complete episodes, so short ones are not
    favoured."""
    baseline: Literal["before", "after", "target"] = "before"
    """The V in the advantage G - V: that of the critic before its step, after it (the reference), or of the target
    critic (ACAC)."""
    passes: Annotated[int, Range(1, 1_000)] = 1
    """Steps on one batch. From the second on the actors' loss is PPO's."""
    ppo_clip: Share = 0.05
    """How far PPO lets the ratio of probabilities move from 1."""

    def __post_init__(self) -> None:
        ranges.check(self)

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Preset:
        """Return a preset read from a file. Missing fields take their defaults."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in numbers.items()
        }
        names = tuple(field.name for field in fields(cls))
        for name in values:
            if name not in names:
                raise ValueError(f"no number is called {name!r}; {suggest(name, names)}")
        return cls(**values)


FOLLOW_EPISODES = ("epsilon_episodes", "entropy_episodes")
"""Numbers of a preset that change in proportion if `episodes` changes."""


def changed(preset: Preset, changes: Mapping[str, Any]) -> Preset:
    """Return a preset with some numbers changed.

    Args:
        preset: The preset.
        changes: Numbers by name. If `episodes` is among them, those of FOLLOW_EPISODES change in proportion.
    """
    share = replace(preset, **changes).episodes / preset.episodes
    along = {name: max(1, round(getattr(preset, name) * share)) for name in FOLLOW_EPISODES}
    return replace(preset, **{**along, **changes})


def unaided(preset: Preset, episodes: int) -> Preset:
    """Return a preset without anything that helps a team to obey, such as drills. Only the learner is left.

    Args:
        preset: The preset.
        episodes: Its new number of training episodes.
    """
    off: dict[str, Any] = {
        "kind_heads": False,
        "drill_prob": 0.0,
        "allowed_loss": (0.0, 0.0),
        "from_start_prob": 0.0,
        "one_agent_prob": 0.0,
        "hold_to_end_prob": 0.0,
        "spurious_interrupt_prob": 0.0,
        "uninstructed_episode_prob": 0.0,
        "single_instruction": False,
    }
    return changed(preset, {**off, "episodes": episodes})


TUNED = Preset(  # what the tuned presets of all worlds share
    batch=128,
    critic_lr=3e-3,
    final_lr_fraction=0.3,
    hysteresis_end=(1.0, 1.0),
    balance_kinds=True,
    adam_b2=0.99,
    value_scale=100.0,
    last_macro=True,
)
# Long tasks have Monte Carlo returns, because bootstrapped critics collapse now and then. Advantages are normalized
# in all contexts, and hysteresis is weaker.
TUNED_LONG_TASK = replace(
    TUNED,
    episodes=128_000,
    actor_lr=4e-3,
    n_steps=None,
    epsilon_end=(0.01, 0.05),
    epsilon_episodes=16_000,
    actor_hysteresis=(0.3, 1.0),
    critic_hysteresis=(0.5, 1.0),
    center_advantages=(1.0, 1.0),
    normalize_advantages=(1.0, 1.0),
)
REFERENCE = Preset(  # what the reference does, whatever the world
    drop_unfinished=True,
    baseline="after",
    target_network=True,
)
ACAC: dict[str, Any] = {  # what belongs to ACAC as an algorithm
    "n_steps": None,
    "td_lambda": 0.95,
    "baseline": "target",
    "discount_actor_loss": False,
    "passes": 2,
    "ppo_clip": 0.05,
    "popart_step": 1e-5,
    "target_network": True,
}
# One set of numbers for every world. Rewards have no units in it (`value_scale`), and what is counted in episodes is a
# share of the training, so a world sets only gamma and the number of episodes. Without an instruction and under
# prohibitions, advantages keep the size of the return: where agents must act together and a lonely try is punished,
# normalized ones lead to the safe small reward. Optimism finds such rewards too (lab 112 to 115).
DEFAULT = replace(
    TUNED_LONG_TASK,
    episodes=160_000,
    gamma=0.99,
    td_lambda=0.95,
    epsilon_end=(0.01, 0.02),
    epsilon_episodes=32_000,
    entropy_start=(0.003, 0.015, 0.05),
    entropy_episodes=128_000,
    actor_hysteresis=(0.1, 0.1, 1.0),
    critic_hysteresis=(0.3, 0.3, 1.0),
    actor_hysteresis_end=(0.1, 1.0, 1.0),
    center_advantages=(0.0, 1.0, 1.0),
    normalize_advantages=(0.0, 0.5, 1.0),
    value_scale=None,
    allowed_loss=(0.0, 0.1),
    uninstructed_episode_prob=0.4,
    hold_to_end_prob=0.5,
    from_start_prob=0.3,
    single_instruction=True,
    drill_prob=1.0,
    one_agent_prob=0.25,
    kind_heads=True,
)
GENERAL = {  # for worlds without presets of their own
    "default": DEFAULT,
    "paper": replace(REFERENCE, gamma=0.99, n_steps=5, first_to_finish=32),
    "reference": replace(
        REFERENCE,
        episodes=100_000,
        batch=4,
        first_to_finish=4,
        gamma=0.99,
        actor_lr=3e-4,
        n_steps=5,
        epsilon_end=(0.05, 0.05),
        epsilon_episodes=20_000,
        target_update_episodes=8,
    ),
}

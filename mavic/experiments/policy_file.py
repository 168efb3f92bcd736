"""A trained team as a file anybody can load and step: weights as safetensors, the rest as JSON beside it.

policy = mavic.load_policy("results/box_pushing/mavic")
carry = policy.start()
macro, carry = policy.act(key, carry, observation, "don't push the boxes", idle)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mavic.envs import api
from mavic.experiments.config import ExperimentConfig, Task, make_task
from mavic.language import lexicon as lexicons
from mavic.learn import act as deciding
from mavic.learn import networks
from mavic.learn.networks import Scale, Shape
from mavic.learn.update import TrainState
from mavic.preset import Preset
from mavic.types import Array, record

FORMAT = 1
NEEDED = (
    *("world", "agents", "macros", "macro_counts", "kinds"),
    *("examples", "encoder", "encoder_hash", "shape"),
)
Text = str | Sequence[str | None] | None  # to all, to each agent, or silence


class PolicyError(ValueError):
    """The file or its use is wrong; the message says what would do."""


@record
class Carry:
    """What the team remembers: actors' and critics' memory, and each agent's last macro."""

    actor: Array  # [N, parts, 1, H]
    critic: Array
    macro: Array  # [N], -1 before the first


@record
class Weights:
    """All agents' networks and value statistics."""

    actor: Any
    critic: Any
    scale: Scale


class TeamPolicy:
    """A team of trained agents; immutable, its memory lives in the `Carry` you hold."""

    def __init__(self, weights: Weights, facts: dict[str, Any]) -> None:
        self.weights = weights
        self.facts = facts
        self.shape = Shape(**facts["shape"])
        self.kinds: tuple[str, ...] = tuple(facts["kinds"])  # without "none"
        self.agents: tuple[str, ...] = tuple(facts["agents"])
        # [1 + kinds, N] who hears each kind, none first; files of before it was told are of teams in which all do
        said_to = facts.get("addressed") or [list(self.agents)] * len(self.kinds)
        self.addressed = np.array([[name in to for name in self.agents] for to in [[], *said_to]])

    @property
    def world(self) -> str:
        """The world the team was trained in."""
        return self.facts["world"]

    def start(self) -> Carry:
        """No memory: the start of an episode."""
        shape = self.shape
        empty = deciding.empty(shape, 1)
        return Carry(actor=empty, critic=empty, macro=jnp.full(shape.agents, -1, jnp.int32))

    def act(
        self,
        key: Array,
        carry: Carry,
        observation: Array,
        text: Text = None,
        idle: Array | None = None,
        *,
        available: Array | None = None,
        greedy: bool = False,
    ) -> tuple[Array, Carry]:
        """Macros [N] and the memory after the decision. Agents that are not `idle` keep their macro and memory;
        `text` is what is being said to all agents that are ever addressed, or a list with one entry (or None) each.
        When it changes everybody is idle, as in training."""
        shape = self.shape
        observation = jnp.asarray(observation, jnp.float32)
        if observation.shape != (shape.agents, shape.observation):
            raise PolicyError(
                f"observation has shape {observation.shape}; this team of world {self.world!r} "
                f"wants {(shape.agents, shape.observation)}"
            )
        idle = jnp.ones(shape.agents, bool) if idle is None else jnp.asarray(idle, bool)
        if available is None:
            available = jnp.asarray(self.facts["macro_counts"])[:, None] > jnp.arange(shape.macros)
        vectors, phrase = self._hear(text)
        return _act(
            shape, self.weights, vectors, phrase, key, carry, observation, idle, available, greedy
        )

    def values(self, carry: Carry, observation: Array, text: Text = None) -> dict[str, np.ndarray]:
        """V(h, c) [N] for "none" and every kind, on the memory *before* the coming decision; with `text` also
        "text": under what is being said."""
        names = ("none", *self.kinds)
        examples = zip((None, *self.facts["examples"]), self.addressed, strict=True)
        heard = [self._hear(example, to) for example, to in examples]
        if text is not None:
            names, heard = (*names, "text"), [*heard, self._hear(text)]
        vectors = jnp.stack([h[0] for h in heard])
        phrases = jnp.stack([h[1] for h in heard])
        found = _values(
            self.shape, self.weights, vectors, phrases, carry, jnp.asarray(observation, jnp.float32)
        )
        return dict(zip(names, np.asarray(found), strict=True))

    def fits(self, env: api.Env) -> None:
        """Raise `PolicyError` unless the team can act in this world."""
        macros = [[m.name for m in enum] for enum in env.macros]
        observation = jax.eval_shape(lambda k: env.observe(env.reset(k)), jax.random.key(0))
        for what, mine, its in (
            ("world", self.world, env.name),
            ("agents", list(self.agents), list(env.agents)),
            ("macros", self.facts["macros"], macros),
            ("observation size", self.shape.observation, observation.shape[-1]),
        ):
            _same(what, mine, its)

    def _hear(self, text: Text, to: np.ndarray | None = None) -> tuple[Array, Array]:
        """Vectors [1 + N, D] and each agent's row in them, 0 for silence. One text is said `to` [N] these, or to all
        that are ever addressed."""
        agents = self.shape.agents
        if text is None or isinstance(text, str):
            hears = np.any(self.addressed, axis=0, keepdims=True)[0] if to is None else to
            texts: list[str | None] = [text if its else None for its in hears]
        else:
            texts = list(text)
        if len(texts) != agents:
            raise PolicyError(f"{len(texts)} texts for {agents} agents")
        said = sorted({t for t in texts if t})
        rows = np.zeros((1 + agents, self.shape.embedding), np.float32)
        if said:
            rows[1 : 1 + len(said)] = lexicons.vectors(said, self.facts["encoder"])
        phrase = [1 + said.index(t) if t else 0 for t in texts]
        return jnp.asarray(rows), jnp.asarray(phrase, jnp.int32)


def _same(what: str, mine: Any, its: Any) -> None:
    if mine != its:
        raise PolicyError(f"the policy's {what} is {mine}, the world's is {its}")


def origin(team: TeamPolicy) -> tuple[ExperimentConfig, Task, Preset]:
    """What the team was trained as, and the world it fits."""
    fields = dict(team.facts["cell"])
    fields["kinds"] = tuple(fields["kinds"]) if fields["kinds"] else None
    cell = ExperimentConfig(**fields)
    bench = make_task(cell.world, **cell.options)
    team.fits(bench.env)
    _same("list of kinds", list(team.kinds), list(bench.file.names()))
    return cell, bench, Preset.of(team.facts["preset"])


@partial(jax.jit, static_argnames="shape")
def _act(
    shape: Shape,
    weights: Weights,
    vectors: Array,
    phrase: Array,
    key: Array,
    carry: Carry,
    observation: Array,
    idle: Array,
    available: Array,
    greedy: Array,
) -> tuple[Array, Carry]:
    seen = deciding.Seen(observation[None], carry.macro[None], phrase[None])
    actors, critics = (
        deciding.with_phrases(params, vectors) for params in (weights.actor, weights.critic)
    )
    logits, actor = deciding.logits(shape, actors, carry.actor, seen, idle[None])
    _, critic = deciding.heads(shape, critics, carry.critic, seen, idle[None])
    draws = jax.random.uniform(key, (shape.agents,))
    chosen = deciding.choose(
        logits[:, 0], available, jnp.zeros(shape.agents), draws, jnp.asarray(greedy)
    )
    macro = jnp.where(idle, chosen, carry.macro)
    return macro, Carry(actor=actor, critic=critic, macro=macro)


@partial(jax.jit, static_argnames="shape")
def _values(
    shape: Shape,
    weights: Weights,
    vectors: Array,
    phrases: Array,
    carry: Carry,
    observation: Array,
) -> Array:
    def one(vectors: Array, phrase: Array) -> Array:
        net = deciding.with_phrases(weights.critic, vectors)
        everyone = jnp.ones((1, shape.agents), bool)
        seen = deciding.Seen(observation[None], carry.macro[None], phrase[None])
        heads, _ = deciding.heads(shape, net, carry.critic, seen, everyone)
        instructed = (phrase > 0).any()
        return jax.vmap(lambda h, s: networks.value(h[None], instructed, s))(
            heads[:, 0], weights.scale
        )

    return jax.vmap(one)(vectors, phrases)


def save(path: str | Path, learner: TrainState, facts: dict[str, Any]) -> Path:
    """Write one run's team; `facts` from `facts_of`."""
    path = Path(path).with_suffix(".safetensors")
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = Weights(actor=learner.actor, critic=learner.critic, scale=learner.scale)
    save_file(flatten(weights), path)
    path.with_suffix(".json").write_text(json.dumps({"format": FORMAT, **facts}, indent=1) + "\n")
    return path


def load(path: str | Path) -> TeamPolicy:
    """A team from its file (with or without the ending)."""
    path = Path(path).with_suffix(".safetensors")
    notes = path.with_suffix(".json")
    for needed in (path, notes):
        if not needed.is_file():
            raise PolicyError(
                f"{needed}: no such file; a policy is a .safetensors file and a .json"
            )
    try:
        facts = json.loads(notes.read_text(encoding="utf-8"))
        found = facts["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{notes}: not a policy's description ({error})") from None
    if found != FORMAT:
        raise PolicyError(
            f"{notes}: format {found}, this version of mavic reads format {FORMAT}; "
            f"install the version that wrote it ({facts.get('versions', {}).get('mavic', 'unknown')})"
        )
    if missing := [name for name in NEEDED if name not in facts]:
        raise PolicyError(f"{notes}: not a policy's description (without {', '.join(missing)})")
    expected = lexicons.encoder_hash(facts["encoder"])
    if facts["encoder_hash"] != expected:
        raise PolicyError(
            f"{notes}: trained with encoder {facts['encoder']} of hash {facts['encoder_hash'][:12]}, "
            f"here it has hash {expected[:12]}: its vectors mean something else"
        )
    shape = Shape(**facts["shape"])
    blank = jax.eval_shape(lambda: _blank(shape))
    try:
        weights = unflatten(load_file(path), blank)
    except (KeyError, ValueError, SafetensorError) as error:
        raise PolicyError(f"{path}: does not hold this network's weights ({error})") from None
    return TeamPolicy(weights, facts)


def _blank(shape: Shape) -> Weights:
    key = jax.random.key(0)

    def stack(tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.stack([x] * shape.agents), tree)

    return Weights(
        actor=stack(networks.init_actor(key, shape)),
        critic=stack(networks.init_critic(key, shape)),
        scale=stack(networks.scale_of(1.0)),
    )


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """A pytree of arrays as named arrays; keys become their data."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}


def unflatten(named: dict[str, np.ndarray], like: Any) -> Any:
    """The pytree back, checked against one of the same shape."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path)
        if name not in named:
            raise KeyError(f"{name} is missing")
        if named[name].shape != leaf.shape:
            raise ValueError(f"{name} has shape {named[name].shape}, not {leaf.shape}")
        leaves.append(jnp.asarray(named[name], leaf.dtype))
    return jax.tree.unflatten(structure, leaves)

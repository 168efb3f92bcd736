"""One update of every agent's critic and actor from one batch of complete episodes.

Agents are a leading axis of all parameters. The steps are `update_critic` for one critic and `update_actor` for one
actor; `mavic.learn.backbones` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from mavic.learn import bptt, losses, networks
from mavic.learn.losses import ActorOutputs, ActorRows, CriticRows
from mavic.learn.networks import Network, Scale
from mavic.learn.returns import Correction
from mavic.learn.values import (
    Loop,
    Spans,
    agent_values,
    seen_before,
    spanned,
    targets_of,
    values_before,
)
from mavic.types import Array, MacroTransitions, record, replace, static


@record
class HyperParams:
    """The learner's numbers as arrays, so a grid of them is one `vmap`. Some are by context [CONTEXTS].

    `mavic.preset.Preset` explains each number.
    """

    gamma: Array
    actor_lr: Array
    critic_lr: Array
    final_lr_fraction: Array
    critic_final_lr_fraction: Array
    td_lambda: Array
    epsilon_start: Array
    epsilon_end: Array  # [CONTEXTS]
    epsilon_episodes: Array
    entropy_start: Array  # [CONTEXTS]
    entropy_end: Array  # [CONTEXTS]
    entropy_episodes: Array
    actor_hysteresis: Array  # [CONTEXTS]
    actor_hysteresis_end: Array  # [CONTEXTS]
    critic_hysteresis: Array  # [CONTEXTS]
    critic_hysteresis_end: Array  # [CONTEXTS]
    balance_kinds: Array
    center_advantages: Array  # [CONTEXTS]
    normalize_advantages: Array  # [CONTEXTS]
    advantage_scale: Array  # [CONTEXTS]
    allowed_loss: Array  # [CONTEXTS]
    discount_actor_loss: Array
    value_scale: Array
    critic_init_scale: Array
    popart_step: Array
    ppo_clip: Array
    target_update_episodes: Array
    adam_b2: Array
    max_grad_norm: Array
    episodes: Array  # of the whole training


@record
class StaticConfig:
    """The static part of a training: what determines the compiled program.

    `mavic.preset.Preset` explains the fields that have the same names there.
    """

    network: Network = static()  # of the actors
    critic_network: Network | None = static(default=None)  # None: the actors' network
    backbone: str = static(default="mac-iac")
    n_steps: float = static(default=5)
    batch: int = static(default=64)
    kinds: int = static(default=2)
    drop_unfinished: bool = static(default=False)
    target_network: bool = static(default=False)  # otherwise the target is the critic itself
    allowed_loss: bool = static(default=False)  # some context has a loss on the allowed probability
    baseline: str = static(default="before")  # the V of the advantages: before, after, target
    passes: int = static(default=1)  # steps on one batch; from the second on PPO's clipped loss
    first_to_finish: int = static(default=0)  # environments that restart at once; 0: all complete

    @property
    def critic(self) -> Network:
        """Return the critics' network."""
        return self.critic_network or self.network


@record
class TrainState:
    """Everything that training changes. All fields but `episodes` have a leading axis of actors or of critics."""

    actor: Any
    critic: Any
    target: Any
    actor_optimizer: Any
    critic_optimizer: Any
    scale: Scale
    episodes: Array  # [] finished so far


# The axis of actors and of critics in each field of a `TrainState`, for `vmap`.
BY_ACTOR, BY_CRITIC = (
    TrainState(**{f: 0 if f in own else None for f in TrainState.__dataclass_fields__})  # type: ignore
    for own in (
        ("actor", "actor_optimizer"),
        ("critic", "target", "critic_optimizer", "scale"),
    )
)


@record
class Annealed:
    """The present values of the numbers that change during training. All but the step sizes are by context."""

    epsilon: Array
    entropy: Array
    actor_lr: Array
    critic_lr: Array
    actor_hysteresis: Array
    critic_hysteresis: Array


@record
class CriticOutputs:
    """What the critic's update computed, [K, L]."""

    target: Array
    valid: Array  # rows that have a target
    value: Array  # before the step
    advantage: Array  # the target minus the value that `StaticConfig.baseline` names
    loss: Array  # []


def init(
    key: Array,
    config: StaticConfig,
    value_scale: Array | float = 1.0,
    critic_init_scale: Array | float = 1.0,
) -> TrainState:
    """Return an untrained state.

    A critic's output of 1 stands for the value `value_scale`. The head is scaled so that an untrained critic's outputs
    stand for values of about ±`critic_init_scale`. In full units they would be noise in the first advantages.
    """
    network, other = config.network, config.critic
    actor_key, critic_key = jax.random.split(key)
    actor_keys = jax.random.split(actor_key, network.shape.count)
    critic_keys = jax.random.split(critic_key, other.shape.count)
    actor = jax.vmap(lambda k: network.init_actor(k, network.shape))(actor_keys)
    critic = jax.vmap(lambda k: other.init_critic(k, other.shape))(critic_keys)
    critic["head"] = jax.tree.map(lambda x: x * (critic_init_scale / value_scale), critic["head"])
    scale = jax.tree.map(
        lambda x: jnp.stack([x] * other.shape.count), networks.scale_of(value_scale)
    )
    moments = jax.vmap(_optimizer(1.0, 0.999, 1.0).init)
    return TrainState(
        actor=actor,
        critic=critic,
        target=jax.tree.map(jnp.copy, critic),  # a buffer of its own: training donates them
        actor_optimizer=moments(actor),
        critic_optimizer=moments(critic),
        scale=scale,
        episodes=jnp.int32(0),
    )


def anneal(hyper: HyperParams, episodes: Array) -> Annealed:
    """Return the annealed numbers after `episodes` training episodes."""
    progress = jnp.minimum(episodes / hyper.episodes, 1.0)

    def linear(start: Array, end: Array, over: Array) -> Array:
        return start + jnp.minimum(episodes / over, 1.0) * (end - start)

    return Annealed(
        epsilon=linear(hyper.epsilon_start, hyper.epsilon_end, hyper.epsilon_episodes),
        entropy=linear(hyper.entropy_start, hyper.entropy_end, hyper.entropy_episodes),
        actor_lr=hyper.actor_lr * (1.0 + progress * (hyper.final_lr_fraction - 1.0)),
        critic_lr=hyper.critic_lr * (1.0 + progress * (hyper.critic_final_lr_fraction - 1.0)),
        actor_hysteresis=linear(hyper.actor_hysteresis, hyper.actor_hysteresis_end, hyper.episodes),
        critic_hysteresis=linear(
            hyper.critic_hysteresis, hyper.critic_hysteresis_end, hyper.episodes
        ),
    )


def update_critic(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    now: Annealed,
    loop: Loop,
    state: TrainState,
    rows: MacroTransitions,
    spans: Spans | None = None,
) -> tuple[TrainState, CriticOutputs]:
    """Take one critic's step: targets from the target critic, squared error, Adam. Return the state and outputs.

    With `spans` the targets are those of an agent's own macros. Each stands at the team's row in which its macro began,
    and other rows of the team have none.
    """
    instructed = (rows.kind > 0).astype(jnp.int32)
    found = agent_values(config.critic, vectors, state.target, state.scale, rows, loop)
    back_up = partial(targets_of, config.n_steps, hyper.td_lambda, correction)
    if spans is None:
        target, valid = back_up(rows, found), rows.valid
    else:
        target, valid = _at_team_rows(back_up(spans.rows, spanned(found, spans)), spans, rows)
    valid = valid.astype(jnp.float32)
    scale = _track(state.scale, target, instructed, valid, hyper.popart_step)
    critic, target_critic = (
        networks.rescale(params, state.scale, scale) for params in (state.critic, state.target)
    )
    data = CriticRows(
        seen=seen_before(rows),
        first=rows.first,
        instructed=rows.kind > 0,
        target=target,
        hysteresis=now.critic_hysteresis[rows.context],
        weight=_weigh(rows.kind, valid, config.kinds, hyper.balance_kinds),
    )

    def step(critic: Any, optimizer: Any, memory: Array | None) -> tuple:
        grads, loss, value = _gradient(
            config.critic,
            lambda *block: losses.critic_loss(config.critic, scale, *block),
            critic,
            vectors,
            data,
            loop.blocks,
            memory,
        )
        return *_descend(grads, critic, optimizer, now.critic_lr, hyper), loss, value

    known = None if config.target_network else found.memory
    critic, optimizer, loss, value = step(critic, state.critic_optimizer, known)
    for _ in range(1, config.passes):
        critic, optimizer, _, _ = step(critic, optimizer, None)
    state = replace(
        state, critic=critic, target=target_critic, critic_optimizer=optimizer, scale=scale
    )
    if config.baseline == "after":
        net = config.critic.project(critic, vectors)
        baseline = values_before(config.critic, net, scale, rows, loop)[0]
    else:
        baseline = found.value if config.baseline == "target" else value
    return state, CriticOutputs(
        target=target, valid=valid, value=value, advantage=target - baseline, loss=loss
    )


def update_actor(
    config: StaticConfig,
    hyper: HyperParams,
    vectors: Array,
    now: Annealed,
    loop: Loop,
    state: TrainState,
    rows: MacroTransitions,
    advantage: Array,
) -> tuple[TrainState, ActorOutputs]:
    """Take one actor's step: policy gradient of `advantage` [K, L], entropy, Adam. Return the state and outputs."""
    context = rows.context
    valid = rows.valid.astype(jnp.float32)
    weight = _weigh(rows.kind, valid, config.kinds, hyper.balance_kinds)
    advantage = _normalize(
        advantage,
        rows.kind,
        valid,
        config.kinds,
        hyper.center_advantages[context],
        hyper.normalize_advantages[context],
    )
    advantage *= jnp.where(advantage < 0, now.actor_hysteresis[context], 1.0)
    advantage *= hyper.advantage_scale[context]
    heard = rows.phrases if config.network.shape.joint else rows.phrases[..., :1]
    addressed = (heard > 0).any(-1)
    timed = jnp.where(hyper.discount_actor_loss > 0, hyper.gamma**rows.time, 1.0)
    data = ActorRows(
        seen=seen_before(rows),
        first=rows.first,
        instructed=rows.kind > 0,
        available=rows.available,
        macro=rows.macro,
        epsilon=now.epsilon[context],
        entropy=now.entropy[context],
        advantage=advantage,
        weight=weight * timed,
        forbidden=rows.forbidden,
        allowed_weight=weight * hyper.allowed_loss[context] * addressed
        if config.allowed_loss
        else None,
    )

    def step(state: TrainState, loss: Callable, data: Any) -> tuple[TrainState, ActorOutputs]:
        grads, _, acted = _gradient(
            config.network,
            lambda *block: loss(config.network, *block),
            state.actor,
            vectors,
            data,
            loop.blocks,
        )
        actor, optimizer = _descend(grads, state.actor, state.actor_optimizer, now.actor_lr, hyper)
        return replace(state, actor=actor, actor_optimizer=optimizer), acted

    state, acted = step(state, losses.actor_loss, data)
    if config.passes > 1:
        # Before its first step the ratio is 1, where the clipped loss has the gradient of the plain one.
        clip = jnp.broadcast_to(hyper.ppo_clip, acted.log_prob.shape)
        clipped = losses.ClippedRows(rows=data, log_prob=acted.log_prob, clip=clip)
        for _ in range(1, config.passes):
            state, _ = step(state, losses.clipped_actor_loss, clipped)
    return state, acted


def _at_team_rows(target: Array, spans: Spans, rows: MacroTransitions) -> tuple[Array, Array]:
    """Return an agent's targets at the team's rows [J, L] in which its macros began, and where there are any."""
    place = jnp.where(spans.rows.valid, spans.begun, rows.valid.size)
    found, valid = (
        jnp.zeros(rows.valid.size, x.dtype).at[place].set(x, mode="drop").reshape(rows.valid.shape)
        for x in (target, spans.rows.valid)
    )
    return found, valid


def copy_target(
    config: StaticConfig, hyper: HyperParams, state: TrainState, episodes: Array
) -> TrainState:
    """Return the state after `episodes` episodes, with the target critic copied if that is due."""
    period = hyper.target_update_episodes
    due = (episodes // period > state.episodes // period) | (not config.target_network)
    target = jax.tree.map(lambda new, old: jnp.where(due, new, old), state.critic, state.target)
    return replace(state, target=target, episodes=episodes)


def _gradient(
    network: Network,
    loss: Callable,
    params: Any,
    vectors: Array,
    rows: Any,
    blocks: Array,
    memory: Array | None = None,
) -> tuple[Any, Array, Any]:
    """Return the gradient, the loss and the loss's outputs.

    The gradient goes through time and through the projection of the phrases, which all blocks share. `memory` [K, ...]
    is the memory after each row under these parameters, if it is already known.
    """
    net, pull = jax.vjp(lambda p: network.project(p, vectors), params)
    read_in = rows.rows if isinstance(rows, losses.ClippedRows) else rows
    start = network.empty(read_in.first.shape[1])
    if memory is None:
        memory = bptt.forward(
            lambda carry, block: network.unroll(network.shape, net, carry, *block)[:2],
            start,
            (read_in.seen, read_in.first),
            blocks,
        )
    grads, total, outputs = bptt.gradient(loss, net, start, rows, memory, blocks)
    return pull(grads)[0], total, outputs


def _optimizer(
    lr: Array | float, b2: Array | float, max_norm: Array | float
) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(max_norm),
        optax.scale_by_adam(b2=b2),
        optax.scale(-lr),
    )


def _descend(grads: Any, params: Any, state: Any, lr: Array, hyper: HyperParams) -> tuple[Any, Any]:
    """Return the parameters and the optimizer's state after one clipped Adam step."""
    step = _optimizer(lr, hyper.adam_b2, hyper.max_grad_norm)
    updates, state = step.update(grads, state)
    return optax.apply_updates(params, updates), state


def _weigh(kind: Array, valid: Array, kinds: int, balance: Array) -> Array:
    """Return the weights [K, L] of the rows in a loss, which sum to one.

    Rows weigh the same, or with `balance` kinds do. A kind whose episodes end soon has few rows and would otherwise be
    learnt last.
    """
    hot = jax.nn.one_hot(kind, kinds) * valid[..., None]
    count = hot.sum((0, 1))
    shared = hot @ (1.0 / jnp.maximum(count, 1.0)) / jnp.maximum((count > 0).sum(), 1)
    return jnp.where(balance > 0, shared, valid / jnp.maximum(valid.sum(), 1.0))


def _normalize(
    advantage: Array, kind: Array, valid: Array, kinds: int, center: Array, divide: Array
) -> Array:
    """Return the advantages centred and divided by their root mean square, kind by kind.

    `center` and `divide` [K, L] switch this on. Kinds pay on different scales, and a critic that lags behind
    shifts all advantages of a kind by the same amount.
    """
    hot = jax.nn.one_hot(kind, kinds) * valid[..., None]
    count = jnp.maximum(hot.sum((0, 1)), 1.0)
    mean = (hot * advantage[..., None]).sum((0, 1)) / count
    advantage = advantage - (hot @ mean) * center
    square = (hot * advantage[..., None] ** 2).sum((0, 1)) / count
    unit = hot @ (1.0 / (jnp.sqrt(square) + 1e-6))
    return advantage * jnp.where(divide > 0, unit, valid)


def _track(scale: Scale, target: Array, instructed: Array, valid: Array, beta: Array) -> Scale:
    """Return the running statistics of values after this batch's targets, for each value head (PopArt)."""
    hot = jax.nn.one_hot(instructed, networks.VALUE_HEADS) * valid[..., None]
    count = hot.sum((0, 1))
    mean = (hot * target[..., None]).sum((0, 1)) / jnp.maximum(count, 1.0)
    square = (hot * target[..., None] ** 2).sum((0, 1)) / jnp.maximum(count, 1.0)
    step = jnp.where((beta > 0) & (count > 0), beta, 0.0)
    return Scale(
        mean=scale.mean + step * (mean - scale.mean),
        square=scale.square + step * (square - scale.square),
        weight=scale.weight + step * (1.0 - scale.weight),
    )

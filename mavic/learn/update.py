"""One update from one batch of complete episodes: `update_critic` for one critic, `update_actor` for one actor.

All parameters have a leading axis of agents. `mavic.learn.backbones.learn` maps the two functions over it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from mavic.learn import bptt, losses, returns
from mavic.learn.batches import Batch
from mavic.learn.losses import ActorOutputs, ActorRows, CriticRows
from mavic.learn.networks import Network, Seen, value_head
from mavic.learn.popart import Scale
from mavic.learn.returns import Correction
from mavic.learn.values import agent_values, values_before
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
    episodes: Array  # of the whole training

    def anneal(self, episodes: Array) -> _Annealed:
        """Return the annealed numbers after `episodes` training episodes."""
        progress = jnp.minimum(episodes / self.episodes, 1.0)

        def linear(start: Array, end: Array | float, over: Array) -> Array:
            return start + jnp.minimum(episodes / over, 1.0) * (end - start)

        return _Annealed(
            epsilon=linear(self.epsilon_start, self.epsilon_end, self.epsilon_episodes),
            entropy=linear(self.entropy_start, 0.0, self.entropy_episodes),
            actor_lr=self.actor_lr * (1.0 + progress * (self.final_lr_fraction - 1.0)),
            critic_lr=self.critic_lr * (1.0 + progress * (self.critic_final_lr_fraction - 1.0)),
            actor_hysteresis=linear(
                self.actor_hysteresis, self.actor_hysteresis_end, self.episodes
            ),
            critic_hysteresis=linear(
                self.critic_hysteresis, self.critic_hysteresis_end, self.episodes
            ),
        )


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
class _Annealed:
    """The present values of the numbers that change during training. All but the step sizes are by context."""

    epsilon: Array
    entropy: Array
    actor_lr: Array
    critic_lr: Array
    actor_hysteresis: Array
    critic_hysteresis: Array


@record
class CriticOutputs:
    """The results of a critic's update, [K, L]."""

    target: Array
    valid: Array  # rows that have a target
    value: Array  # before the step
    advantage: Array  # the target minus the value that `StaticConfig.baseline` names; in units of a scale that grows
    loss: Array  # []


def init(
    key: Array,
    config: StaticConfig,
    value_scale: Array | float = 1.0,
    critic_init_scale: Array | float = 1.0,
) -> TrainState:
    """Return an untrained state.

    Args:
        key: A random key.
        config: The static part of the training.
        value_scale: The value that a critic's output of 1 stands for; 0: it grows with the targets.
        critic_init_scale: The size of an untrained critic's values. Its head is scaled to it, because values in full
            units would be noise in the first advantages. Where the scale grows, the first values are 0.
    """
    network, other = config.network, config.critic
    actor_key, critic_key = jax.random.split(key)
    actor_keys = jax.random.split(actor_key, network.shape.count)
    critic_keys = jax.random.split(critic_key, other.shape.count)
    actor = jax.vmap(lambda k: network.init(k, network.shape, "actor"))(actor_keys)
    critic = jax.vmap(lambda k: other.init(k, other.shape, "critic"))(critic_keys)
    share = jnp.where(jnp.asarray(value_scale) > 0, critic_init_scale / value_scale, 0.0)
    critic["head"] = jax.tree.map(lambda x: x * share, critic["head"])
    scale = jax.tree.map(lambda x: jnp.stack([x] * other.shape.count), Scale.of(value_scale))
    moments = jax.vmap(_optimizer(1.0, 0.999).init)
    return TrainState(
        actor=actor,
        critic=critic,
        target=jax.tree.map(jnp.copy, critic),  # a buffer of its own: training donates them
        actor_optimizer=moments(actor),
        critic_optimizer=moments(critic),
        scale=scale,
        episodes=jnp.int32(0),
    )


def update_critic(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    blocks: Array,
    chunks: Array,
    state: TrainState,
    batch: Batch,
) -> tuple[TrainState, CriticOutputs]:
    """Take one critic's step: targets from the target critic, squared error, Adam.

    Args:
        config: The static part of the training.
        hyper: The learner's numbers.
        correction: How targets treat a change of instruction.
        vectors: The vectors of all phrases.
        blocks: The length of the loop over rows, from `bptt.lengths`.
        chunks: The length of the loop over rows that read V(h', c), from `bptt.lengths`.
        state: With the parameters of this critic alone.
        batch: The rows of this critic [K, L]. With rows of a team, targets are those of an agent's own macros. Each
            stands at the team's row in which its macro began, and other rows of the team have none.

    Returns:
        The state after the step, and what it computed.
    """
    own, rows = batch.rows, batch.critic
    now = hyper.anneal(state.episodes)
    found = agent_values(config.critic, vectors, state.target, state.scale, rows, blocks, chunks)
    values = found.of_macros(batch)
    target = returns.targets(
        reward=own.reward,
        discount=own.discount,
        v_same_instruction=values.v_same_instruction,
        v_next_instruction=values.v_next_instruction,
        switched=own.switched,
        last=own.last,
        correction=correction,
        n_steps=config.n_steps,
        td_lambda=hyper.td_lambda,
    )
    target, valid = _at_team_rows(target, batch)
    valid = valid.astype(jnp.float32)
    head = value_head(rows.context)
    scale = state.scale.track(target, head, valid, hyper.popart_step)
    critic, target_critic = (state.scale.rescale(x, scale) for x in (state.critic, state.target))
    data = CriticRows(
        seen=Seen.before(rows),
        first=rows.first,
        context=rows.context,
        target=target,
        hysteresis=now.critic_hysteresis[rows.context],
        weight=_weigh(rows.kind, valid, config.kinds, hyper.balance_kinds),
    )

    loss = partial(losses.critic_loss, config.critic, scale)

    def step(critic: Any, optimizer: Any, memory: Array | None) -> tuple:
        grads, total, value = _gradient(config.critic, loss, critic, vectors, data, blocks, memory)
        return *_descend(grads, critic, optimizer, now.critic_lr, hyper), total, value

    known = None if config.target_network else found.memory
    critic, optimizer, total, value = step(critic, state.critic_optimizer, known)
    for _ in range(1, config.passes):
        critic, optimizer, _, _ = step(critic, optimizer, None)
    state = replace(
        state, critic=critic, target=target_critic, critic_optimizer=optimizer, scale=scale
    )
    if config.baseline == "after":
        net = config.critic.project(critic, vectors)
        baseline = values_before(config.critic, net, scale, rows, blocks)[0]
    else:
        baseline = found.value if config.baseline == "target" else value
    unit = jnp.where(hyper.value_scale > 0, 1.0, scale.spread()[head])
    return state, CriticOutputs(
        target=target, valid=valid, value=value, advantage=(target - baseline) / unit, loss=total
    )


def update_actor(
    config: StaticConfig,
    hyper: HyperParams,
    vectors: Array,
    blocks: Array,
    state: TrainState,
    rows: MacroTransitions,
    advantage: Array,
) -> tuple[TrainState, ActorOutputs]:
    """Take one actor's step: policy gradient, entropy, Adam.

    Args:
        config: The static part of the training.
        hyper: The learner's numbers.
        vectors: The vectors of all phrases.
        blocks: The length of the loop over rows, from `bptt.lengths`.
        state: With the parameters of this actor alone.
        rows: Its transitions [K, L].
        advantage: Their advantages [K, L].

    Returns:
        The state after the step, and the outputs of the loss.
    """
    context, now = rows.context, hyper.anneal(state.episodes)
    valid = rows.valid.astype(jnp.float32)
    addressed = _addressed(config, rows)
    # A teammate of those who are addressed goes on with the task: its rows are a kind of their own.
    kind = jnp.where((rows.kind > 0) & ~addressed, config.kinds, rows.kind)
    weight = _weigh(kind, valid, config.kinds + 1, hyper.balance_kinds)
    advantage = _normalize(
        advantage,
        kind,
        valid,
        config.kinds + 1,
        hyper.center_advantages[context],
        hyper.normalize_advantages[context],
    )
    advantage *= jnp.where(advantage < 0, now.actor_hysteresis[context], 1.0)
    advantage *= hyper.advantage_scale[context]
    timed = jnp.where(hyper.discount_actor_loss > 0, hyper.gamma**rows.time, 1.0)
    data = ActorRows(
        seen=Seen.before(rows),
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
        on_block = partial(loss, config.network)
        grads, _, acted = _gradient(config.network, on_block, state.actor, vectors, data, blocks)
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


def _addressed(config: StaticConfig, rows: MacroTransitions) -> Array:
    """Return bool [K, L], whether an actor's own agent is addressed, or any agent of the whole team's actor."""
    heard = rows.phrases if config.network.shape.joint else rows.phrases[..., :1]
    return (heard > 0).any(-1)


def _at_team_rows(target: Array, batch: Batch) -> tuple[Array, Array]:
    """Return targets [K, L] at the critic's rows, where the macros began, and bool: which of these rows have one."""
    if batch.team is None or batch.begun is None:
        return target, batch.rows.valid
    valid, shape = batch.rows.valid, batch.team.valid.shape
    place = jnp.where(valid, batch.begun, batch.team.valid.size)
    found, valid = (
        jnp.zeros(batch.team.valid.size, x.dtype).at[place].set(x, mode="drop").reshape(shape)
        for x in (target, valid)
    )
    return found, valid


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
    is the memory after each row under these parameters. None: it is computed here.
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


def _optimizer(lr: Array | float, b2: Array | float) -> optax.GradientTransformation:
    return optax.chain(optax.scale_by_adam(b2=b2), optax.scale(-lr))


def _descend(grads: Any, params: Any, state: Any, lr: Array, hyper: HyperParams) -> tuple[Any, Any]:
    """Return the parameters and the optimizer's state after one Adam step."""
    step = _optimizer(lr, hyper.adam_b2)
    updates, state = step.update(grads, state)
    return optax.apply_updates(params, updates), state


def _weigh(kind: Array, valid: Array, kinds: int, balance: Array) -> Array:
    """Return the weights [K, L] of the rows in a loss, which sum to one.

    All rows weigh the same. With `balance` all kinds do: a kind whose episodes end soon has few rows and would
    otherwise be learnt last.
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
    return advantage * jnp.where(divide > 0, unit**divide, valid)

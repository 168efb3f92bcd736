"""Mac-IAC: each agent its own actor, critic and target critic; one update from one batch of complete episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from mavic.learn import bptt, losses, networks
from mavic.learn.networks import Scale, Shape
from mavic.learn.returns import Correction, targets
from mavic.types import RUNS, Array, MacroTransitions, record, replace, static


@record
class HyperParams:
    """The learner's numbers: leaves, so a grid of them is one vmap. Pairs are [uninstructed, instructed]."""

    gamma: Array
    actor_lr: Array
    critic_lr: Array
    final_lr_fraction: Array  # the actors' rate falls linearly to this share at the end of training
    critic_final_lr_fraction: Array
    td_lambda: Array  # lambda of the returns
    epsilon_start: Array
    epsilon_end: Array  # [2]
    epsilon_episodes: Array  # linear until then
    entropy_start: Array  # [2]
    entropy_end: Array  # [2]
    entropy_episodes: Array
    actor_hysteresis: Array  # [2] weight of negative advantages
    critic_hysteresis: Array  # [2] weight of critic errors that call for a lower value
    critic_hysteresis_end: (
        Array  # [2] what the critics' weights reach at the end of training (linear)
    )
    actor_hysteresis_end: Array  # [2] what the actors' reach
    balance_kinds: Array  # 1: every kind weighs the same in the losses, however many rows it has
    center_advantages: Array  # [2] 1: advantages of each kind less their mean
    normalize_advantages: Array  # [2] 1: advantages of each kind divided by their root mean square
    discount_actor_loss: Array  # 1: actor terms weighted by gamma^t
    value_scale: Array  # a critic's output of 1 means this much
    critic_init_scale: Array  # and that of a fresh one this much
    popart_beta: Array  # 0: off
    target_update_episodes: Array  # target critic copied whenever this many more episodes are done
    adam_b2: Array  # Adam's second-moment decay
    max_grad_norm: Array  # gradient norm, per agent and network
    episodes: Array  # of the whole training


@record
class StaticConfig:
    """What shapes the compiled program."""

    shape: Shape = static()
    n_steps: float = static(5)
    batch: int = static(64)
    kinds: int = static(2)
    drop_unfinished: bool = static(False)
    target_network: bool = static(False)  # else the target is the critic itself


@record
class TrainState:
    """Everything that training changes; leading axis of all but `episodes` is the agent."""

    actor: Any
    critic: Any
    target: Any
    actor_optimiser: Any
    critic_optimiser: Any
    scale: Scale
    episodes: Array  # [] finished so far


ADAM = optax.scale_by_adam  # moments only: step sizes are leaves of `HyperParams`


def init(
    key: Array,
    fixed: StaticConfig,
    value_scale: Array | float = 1.0,
    critic_init_scale: Array | float = 1.0,
) -> TrainState:
    """A fresh state. An output of 1 stands for `value_scale`; an untrained critic's outputs of about ±1 stand for
    `critic_init_scale`, for in full units they would be noise in the first advantages."""
    actor_key, critic_key = jax.random.split(key)
    agents = fixed.shape.agents
    actor = jax.vmap(lambda k: networks.init_actor(k, fixed.shape))(
        jax.random.split(actor_key, agents)
    )
    critic = jax.vmap(lambda k: networks.init_critic(k, fixed.shape))(
        jax.random.split(critic_key, agents)
    )
    critic["head"] = jax.tree.map(lambda x: x * (critic_init_scale / value_scale), critic["head"])
    scale = jax.tree.map(lambda x: jnp.stack([x] * agents), networks.scale_of(value_scale))
    return TrainState(
        actor=actor,
        critic=critic,
        target=jax.tree.map(jnp.copy, critic),  # a buffer of its own: training donates them
        actor_optimiser=jax.vmap(ADAM().init)(actor),
        critic_optimiser=jax.vmap(ADAM().init)(critic),
        scale=scale,
        episodes=jnp.int32(0),
    )


def epsilon(hyper: HyperParams, episodes: Array) -> Array:
    """[2] exploration by context after so many episodes."""
    done = jnp.minimum(episodes / hyper.epsilon_episodes, 1.0)
    return hyper.epsilon_start + done * (hyper.epsilon_end - hyper.epsilon_start)


def entropy_weight(hyper: HyperParams, episodes: Array) -> Array:
    """[2] entropy bonus by context after so many episodes."""
    done = jnp.minimum(episodes / hyper.entropy_episodes, 1.0)
    return hyper.entropy_start + done * (hyper.entropy_end - hyper.entropy_start)


def update(
    fixed: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    learner: TrainState,
    rows: MacroTransitions,
) -> tuple[TrainState, dict[str, Array]]:
    """One critic and one actor step for every agent. Must run under a `vmap` with axis name RUNS."""
    fields = bptt.pad({k: v for k, v in vars(rows).items() if k != "longest"})
    blocks = bptt.blocks_for(jax.lax.pmax(rows.longest, RUNS))
    rounds = jax.lax.pmax(bptt.rounds_for(bootstraps(fields)), RUNS)
    share = jnp.minimum(learner.episodes / hyper.episodes, 1.0)
    now = {
        "epsilon": epsilon(hyper, learner.episodes),
        "entropy": entropy_weight(hyper, learner.episodes),
        "actor_lr": hyper.actor_lr * (1.0 + share * (hyper.final_lr_fraction - 1.0)),
        "critic_lr": hyper.critic_lr * (1.0 + share * (hyper.critic_final_lr_fraction - 1.0)),
        "actor_hysteresis": hyper.actor_hysteresis
        + share * (hyper.actor_hysteresis_end - hyper.actor_hysteresis),
        "critic_hysteresis": hyper.critic_hysteresis
        + share * (hyper.critic_hysteresis_end - hyper.critic_hysteresis),
    }
    by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), fields)
    state = {k: v for k, v in vars(learner).items() if k != "episodes"}
    state, metrics = jax.vmap(
        lambda s, r: _update_agent(fixed, hyper, correction, vectors, now, blocks, rounds, s, r)
    )(state, by_agent)

    episodes = learner.episodes + fixed.batch
    period = hyper.target_update_episodes
    copies = (episodes // period > learner.episodes // period) | (not fixed.target_network)
    state["target"] = jax.tree.map(
        lambda new, old: jnp.where(copies, new, old), state["critic"], state["target"]
    )
    metrics = jax.tree.map(lambda x: x.mean(0), metrics)
    return replace(learner, **state, episodes=episodes), metrics


def seen_before(rows: dict) -> dict:
    """What the networks see when the row's macro is chosen."""
    return {k: rows[k] for k in ("observation", "previous", "phrases")}


def seen_after(rows: dict) -> dict:
    """What they would see when it has ended, were the instruction still the row's own."""
    return {
        "observation": rows["next_observation"],
        "previous": rows["macro"],
        "phrases": rows["phrases"],
    }


def bootstraps(rows: dict) -> Array:
    """Where a target can read V(h', c): the instruction changed or the episode was cut. Elsewhere the next row's value
    is V(h', c), or nothing follows."""
    return (
        (rows["switched"] | rows["last"]) & (rows["discount"] > 0) & ~rows["bootstraps_from_self"]
    )


def values(
    fixed: StaticConfig,
    vectors: Array,
    critic: Any,
    scale: Scale,
    rows: dict,
    blocks: Array,
    wanted: Array,
    rounds: Array,
) -> dict:
    """One agent's V(h, c) and V(h', c') for all rows [K, W], V(h', c) where it is `wanted` (elsewhere it is V(h', c'),
    if nothing changed), and the critic's memory after each."""
    net = networks.with_phrases(critic, vectors)
    instructed = rows["kind"] > 0
    found = bptt.forward(
        lambda carry, block: losses.value_segment(fixed.shape, scale, net, carry, block),
        networks.empty(fixed.shape, rows["macro"].shape[1]),
        {
            "seen": seen_before(rows),
            "first": rows["first"],
            "instructed": instructed,
        },
        blocks,
    )

    def after(k: Array, w: Array) -> Array:
        here = {"seen": seen_after(rows), "instructed": instructed}
        here = jax.tree.map(lambda x: x[k, w], here)
        return losses.value_after(fixed.shape, scale, net, found["memory"][k, :, w], here)

    following = jnp.roll(found["value"], -1, axis=0)
    v_same_instruction = jnp.where(wanted, bptt.where(wanted, after, rounds), following)
    # where the task ended but what is asked goes on, it goes on from where the row began: an end is no escape from an
    # instruction, and no prize
    v_same_instruction = jnp.where(rows["bootstraps_from_self"], found["value"], v_same_instruction)
    # the next row starts where this one ended; a row that is the episode's last has no next, nor a new instruction
    v_next_instruction = jnp.where(rows["last"], v_same_instruction, following)
    return {
        "value": found["value"],
        "v_same_instruction": v_same_instruction,
        "v_next_instruction": v_next_instruction,
        "memory": found["memory"],
    }


def _update_agent(
    fixed: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    now: dict,
    blocks: Array,
    rounds: Array,
    state: dict,
    rows: dict,
) -> tuple[dict, dict]:
    shape = fixed.shape
    instructed = rows["kind"] > 0
    context = instructed.astype(jnp.int32)
    valid = rows["valid"].astype(jnp.float32)
    weight = _weigh(rows["kind"], valid, fixed.kinds, hyper.balance_kinds)

    found = values(
        fixed, vectors, state["target"], state["scale"], rows, blocks, bootstraps(rows), rounds
    )
    target = targets(
        reward=rows["reward"],
        discount=rows["discount"],
        v_same_instruction=found["v_same_instruction"],
        v_next_instruction=found["v_next_instruction"],
        switched=rows["switched"],
        last=rows["last"],
        correction=correction,
        n_steps=fixed.n_steps,
        td_lambda=hyper.td_lambda,
    )
    scale = _track(state["scale"], target, context, valid, hyper.popart_beta)
    critic = networks.rescale(state["critic"], state["scale"], scale)
    copied = networks.rescale(state["target"], state["scale"], scale)

    grads, critic_loss, judged = phrase_gradient(
        shape,
        lambda n, c, b: losses.critic_segment(shape, scale, n, c, b),
        critic,
        vectors,
        {
            "seen": seen_before(rows),
            "first": rows["first"],
            "instructed": instructed,
            "target": target,
            "mild": now["critic_hysteresis"][context],
            "weight": weight,
        },
        blocks,
        None if fixed.target_network else found["memory"],
    )
    critic, critic_optimiser = _descend(
        grads, critic, state["critic_optimiser"], now["critic_lr"], hyper
    )

    advantage = _normalise(
        target - judged["value"],
        rows["kind"],
        valid,
        fixed.kinds,
        hyper.center_advantages,
        hyper.normalize_advantages,
    )
    advantage *= jnp.where(advantage < 0, now["actor_hysteresis"][context], 1.0)
    timed = jnp.where(hyper.discount_actor_loss > 0, hyper.gamma ** rows["time"], 1.0)

    grads, _, acted = phrase_gradient(
        shape,
        lambda n, c, b: losses.actor_segment(shape, n, c, b),
        state["actor"],
        vectors,
        {
            "seen": seen_before(rows),
            "first": rows["first"],
            "instructed": instructed,
            "available": rows["available"],
            "macro": rows["macro"],
            "epsilon": now["epsilon"][context],
            "entropy": now["entropy"][context],
            "advantage": advantage,
            "weight": weight * timed,
        },
        blocks,
    )
    actor, actor_optimiser = _descend(
        grads, state["actor"], state["actor_optimiser"], now["actor_lr"], hyper
    )

    per_context = jax.nn.one_hot(context, networks.CONTEXTS) * valid[..., None]
    count = jnp.maximum(per_context.sum((0, 1)), 1.0)

    def mean(x: Array) -> Array:
        return (per_context * x[..., None]).sum((0, 1)) / count

    metrics = {
        "value": mean(judged["value"]),
        "target": mean(target),
        "entropy": mean(acted["entropy"]),
        "critic_loss": critic_loss,
        "rows": per_context.sum((0, 1)),
    }
    made = {
        "actor": actor,
        "critic": critic,
        "target": copied,
        "actor_optimiser": actor_optimiser,
        "critic_optimiser": critic_optimiser,
        "scale": scale,
    }
    return made, metrics


def phrase_gradient(
    shape: Shape,
    segment: Callable,
    params: Any,
    vectors: Array,
    rows: dict,
    blocks: Array,
    memory: Array | None = None,
) -> tuple[Any, Array, dict]:
    """Through time, then through the projection of the phrases, which all blocks share. `memory` [K, ...]: what these
    parameters remember after each row, if that is known."""
    net, pull = jax.vjp(lambda p: networks.with_phrases(p, vectors), params)
    carry = networks.empty(shape, rows["first"].shape[1])
    if memory is None:
        memory = bptt.forward(
            lambda c, b: networks.unroll(shape, net, c, b["seen"], b["first"])[:2],
            carry,
            rows,
            blocks,
        )
    grads, total, outputs = bptt.gradient(segment, net, carry, {**rows, "memory": memory}, blocks)
    return pull(grads)[0], total, outputs


def _descend(
    grads: Any, params: Any, state: Any, rate: Array, hyper: HyperParams
) -> tuple[Any, Any]:
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, hyper.max_grad_norm / (norm + 1e-9)), grads)
    steps, state = ADAM(b2=hyper.adam_b2).update(grads, state)
    return jax.tree.map(lambda p, s: p - rate * s, params, steps), state


def _weigh(kind: Array, valid: Array, kinds: int, balance: Array) -> Array:
    """Weights of the rows in a loss, summing to one: all alike, or each kind's rows sharing an equal part (a kind whose
    episodes end soon has few rows, and would be learnt last)."""
    hot = jax.nn.one_hot(kind, kinds) * valid[..., None]
    count = hot.sum((0, 1))
    shared = hot @ (1.0 / jnp.maximum(count, 1.0)) / jnp.maximum((count > 0).sum(), 1)
    return jnp.where(balance > 0, shared, valid / jnp.maximum(valid.sum(), 1.0))


def _normalise(
    advantage: Array, kind: Array, valid: Array, kinds: int, centre: Array, divide: Array
) -> Array:
    """Advantages on one footing: kinds pay on different scales, and a critic that lags behind one of them would lift
    or sink all its advantages alike. The switches are by context, the statistics by kind."""
    hot = jax.nn.one_hot(kind, kinds) * valid[..., None]
    count = jnp.maximum(hot.sum((0, 1)), 1.0)
    context = (jnp.arange(kinds) > 0).astype(jnp.int32)
    mean = (hot * advantage[..., None]).sum((0, 1)) / count * centre[context]
    advantage = advantage - hot @ mean
    square = (hot * advantage[..., None] ** 2).sum((0, 1)) / count
    divisor = jnp.where(divide[context] > 0, jnp.sqrt(square) + 1e-6, 1.0)
    return advantage * (hot @ (1.0 / divisor))


def _track(scale: Scale, target: Array, context: Array, valid: Array, beta: Array) -> Scale:
    """Move the running statistics of the values towards this batch's targets, context by context."""
    hot = jax.nn.one_hot(context, networks.CONTEXTS) * valid[..., None]
    count = hot.sum((0, 1))
    mean = (hot * target[..., None]).sum((0, 1)) / jnp.maximum(count, 1.0)
    square = (hot * target[..., None] ** 2).sum((0, 1)) / jnp.maximum(count, 1.0)
    step = jnp.where((beta > 0) & (count > 0), beta, 0.0)
    return Scale(
        mean=scale.mean + step * (mean - scale.mean),
        square=scale.square + step * (square - scale.square),
        weight=scale.weight + step * (1.0 - scale.weight),
    )

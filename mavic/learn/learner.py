"""Mac-IAC: each agent its own actor, critic and target critic; one update from one batch of complete episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from mavic.learn import loss, nets, through_time
from mavic.learn.nets import Scale, Shape
from mavic.learn.returns import Correction, targets
from mavic.types import RUNS, Array, MacroRows, record, replace, static


@record
class Hyper:
    """The learner's numbers: leaves, so a grid of them is one vmap. Pairs are [uninstructed, instructed]."""

    gamma: Array
    actor_rate: Array
    critic_rate: Array
    rate_end: Array  # the actors' rate falls linearly to this share at the end of training
    critic_rate_end: Array
    trace: Array  # lambda of the returns
    epsilon_start: Array
    epsilon_end: Array  # [2]
    epsilon_episodes: Array  # linear until then
    entropy_start: Array  # [2]
    entropy_end: Array  # [2]
    entropy_episodes: Array
    mild_advantage: Array  # [2] weight of negative advantages
    mild_error: Array  # [2] weight of critic errors that call for a lower value
    mild_end: Array  # [2] what the critics' weights reach at the end of training (linear)
    mild_advantage_end: Array  # [2] what the actors' reach
    balance: Array  # 1: every kind weighs the same in the losses, however many rows it has
    centre: Array  # [2] 1: advantages of each kind less their mean
    normalise: Array  # [2] 1: advantages of each kind divided by their root mean square
    through_mixture: Array  # 1: policy gradient of the ε-mixture; 0: of the softmax under it
    time_weight: Array  # 1: actor terms weighted by gamma^t
    value_size: Array  # a critic's output of 1 means this much
    fresh_size: Array  # and that of a fresh one this much
    popart_beta: Array  # 0: off
    target_episodes: Array  # target critic copied whenever this many more episodes are done
    word_rate: Array  # step size of the projections of phrases, as a part of the others'
    adam_memory: Array  # Adam's second-moment decay
    clip: Array  # gradient norm, per agent and network
    episodes: Array  # of the whole training


@record
class Fixed:
    """What shapes the compiled program."""

    shape: Shape = static()
    n_steps: float = static(5)
    batch: int = static(64)
    kinds: int = static(2)
    drop_unfinished: bool = static(False)
    fresh_target: bool = static(False)  # the target is copied after every update: it is the critic


@record
class Learner:
    """Everything that training changes; leading axis of all but `episodes` is the agent."""

    actor: Any
    critic: Any
    target: Any
    actor_optimiser: Any
    critic_optimiser: Any
    scale: Scale
    episodes: Array  # [] finished so far


ADAM = optax.scale_by_adam  # moments only: step sizes are leaves of `Hyper`


def init(
    key: Array,
    fixed: Fixed,
    value_size: Array | float = 1.0,
    fresh_size: Array | float = 1.0,
) -> Learner:
    """A learner that has seen nothing. `value_size`: the unit in which critics think. `fresh_size`: how much its first
    outputs of about ±1 are worth; as a whole unit, they are noise in the first advantages."""
    actor_key, critic_key = jax.random.split(key)
    agents = fixed.shape.agents
    actor = jax.vmap(lambda k: nets.init_actor(k, fixed.shape))(jax.random.split(actor_key, agents))
    critic = jax.vmap(lambda k: nets.init_critic(k, fixed.shape))(
        jax.random.split(critic_key, agents)
    )
    critic["head"] = jax.tree.map(lambda x: x * (fresh_size / value_size), critic["head"])
    scale = jax.tree.map(lambda x: jnp.stack([x] * agents), nets.scale_of(value_size))
    return Learner(
        actor=actor,
        critic=critic,
        target=jax.tree.map(jnp.copy, critic),  # a buffer of its own: training donates them
        actor_optimiser=jax.vmap(ADAM().init)(actor),
        critic_optimiser=jax.vmap(ADAM().init)(critic),
        scale=scale,
        episodes=jnp.int32(0),
    )


def epsilon(hyper: Hyper, episodes: Array) -> Array:
    """[2] exploration by context after so many episodes."""
    done = jnp.minimum(episodes / hyper.epsilon_episodes, 1.0)
    return hyper.epsilon_start + done * (hyper.epsilon_end - hyper.epsilon_start)


def entropy_weight(hyper: Hyper, episodes: Array) -> Array:
    """[2] entropy bonus by context after so many episodes."""
    done = jnp.minimum(episodes / hyper.entropy_episodes, 1.0)
    return hyper.entropy_start + done * (hyper.entropy_end - hyper.entropy_start)


def update(
    fixed: Fixed,
    hyper: Hyper,
    correction: Correction,
    vectors: Array,
    learner: Learner,
    rows: MacroRows,
) -> tuple[Learner, dict[str, Array]]:
    """One critic and one actor step for every agent. Must run under a `vmap` with axis name RUNS."""
    fields = through_time.pad({k: v for k, v in vars(rows).items() if k != "longest"})
    blocks = through_time.blocks_for(jax.lax.pmax(rows.longest, RUNS))
    rounds = jax.lax.pmax(through_time.rounds_for(bootstraps(fields)), RUNS)
    share = jnp.minimum(learner.episodes / hyper.episodes, 1.0)
    now = {
        "epsilon": epsilon(hyper, learner.episodes),
        "entropy": entropy_weight(hyper, learner.episodes),
        "actor_rate": hyper.actor_rate * (1.0 + share * (hyper.rate_end - 1.0)),
        "critic_rate": hyper.critic_rate * (1.0 + share * (hyper.critic_rate_end - 1.0)),
        "mild_advantage": hyper.mild_advantage
        + share * (hyper.mild_advantage_end - hyper.mild_advantage),
        "mild_error": hyper.mild_error + share * (hyper.mild_end - hyper.mild_error),
    }
    by_agent = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), fields)
    state = {k: v for k, v in vars(learner).items() if k != "episodes"}
    state, metrics = jax.vmap(
        lambda s, r: _update_agent(fixed, hyper, correction, vectors, now, blocks, rounds, s, r)
    )(state, by_agent)

    episodes = learner.episodes + fixed.batch
    copies = episodes // hyper.target_episodes > learner.episodes // hyper.target_episodes
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
    return (rows["switched"] | rows["last"]) & (rows["discount"] > 0) & ~rows["loops"]


def values(
    fixed: Fixed,
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
    net = nets.with_phrases(critic, vectors)
    instructed = rows["kind"] > 0
    found = through_time.forward(
        lambda carry, block: loss.value_segment(fixed.shape, scale, net, carry, block),
        nets.empty(fixed.shape, rows["macro"].shape[1]),
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
        return loss.value_after(fixed.shape, scale, net, found["memory"][k, :, w], here)

    following = jnp.roll(found["value"], -1, axis=0)
    kept = jnp.where(wanted, through_time.where(wanted, after, rounds), following)
    # where the task ended but what is asked goes on, it goes on from where the row began: an end is no escape from an
    # instruction, and no prize
    kept = jnp.where(rows["loops"], found["value"], kept)
    # the next row starts where this one ended; a row that is the episode's last has no next, nor a new instruction
    arrived = jnp.where(rows["last"], kept, following)
    return {"value": found["value"], "kept": kept, "arrived": arrived, "memory": found["memory"]}


def _update_agent(
    fixed: Fixed,
    hyper: Hyper,
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
    weight = _weigh(rows["kind"], valid, fixed.kinds, hyper.balance)

    found = values(
        fixed, vectors, state["target"], state["scale"], rows, blocks, bootstraps(rows), rounds
    )
    target = targets(
        reward=rows["reward"],
        discount=rows["discount"],
        kept=found["kept"],
        arrived=found["arrived"],
        switched=rows["switched"],
        last=rows["last"],
        correction=correction,
        n_steps=fixed.n_steps,
        trace=hyper.trace,
    )
    scale = _track(state["scale"], target, context, valid, hyper.popart_beta)
    critic = nets.rescale(state["critic"], state["scale"], scale)
    copied = nets.rescale(state["target"], state["scale"], scale)

    grads, critic_loss, judged = phrase_gradient(
        shape,
        lambda n, c, b: loss.critic_segment(shape, scale, n, c, b),
        critic,
        vectors,
        {
            "seen": seen_before(rows),
            "first": rows["first"],
            "instructed": instructed,
            "target": target,
            "mild": now["mild_error"][context],
            "weight": weight,
        },
        blocks,
        found["memory"] if fixed.fresh_target else None,
    )
    critic, critic_optimiser = _descend(
        grads, critic, state["critic_optimiser"], now["critic_rate"], hyper
    )

    advantage = _normalise(
        target - judged["value"], rows["kind"], valid, fixed.kinds, hyper.centre, hyper.normalise
    )
    advantage *= jnp.where(advantage < 0, now["mild_advantage"][context], 1.0)
    timed = jnp.where(hyper.time_weight > 0, hyper.gamma ** rows["time"], 1.0)

    grads, _, acted = phrase_gradient(
        shape,
        lambda n, c, b: loss.actor_segment(shape, n, c, b),
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
            "through_mixture": jnp.broadcast_to(hyper.through_mixture, advantage.shape),
            "weight": weight * timed,
        },
        blocks,
    )
    actor, actor_optimiser = _descend(
        grads, state["actor"], state["actor_optimiser"], now["actor_rate"], hyper
    )

    per_context = jax.nn.one_hot(context, nets.CONTEXTS) * valid[..., None]
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
    net, pull = jax.vjp(lambda p: nets.with_phrases(p, vectors), params)
    carry = nets.empty(shape, rows["first"].shape[1])
    if memory is None:
        memory = through_time.forward(
            lambda c, b: nets.unroll(shape, net, c, b["seen"], b["first"])[:2], carry, rows, blocks
        )
    grads, total, outputs = through_time.gradient(
        segment, net, carry, {**rows, "memory": memory}, blocks
    )
    return pull(grads)[0], total, outputs


def _descend(grads: Any, params: Any, state: Any, rate: Array, hyper: Hyper) -> tuple[Any, Any]:
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, hyper.clip / (norm + 1e-9)), grads)
    steps, state = ADAM(b2=hyper.adam_memory).update(grads, state)
    steps["project"] = jax.tree.map(lambda s: hyper.word_rate * s, steps["project"])
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
    hot = jax.nn.one_hot(context, nets.CONTEXTS) * valid[..., None]
    count = hot.sum((0, 1))
    mean = (hot * target[..., None]).sum((0, 1)) / jnp.maximum(count, 1.0)
    square = (hot * target[..., None] ** 2).sum((0, 1)) / jnp.maximum(count, 1.0)
    step = jnp.where((beta > 0) & (count > 0), beta, 0.0)
    return Scale(
        mean=scale.mean + step * (mean - scale.mean),
        square=scale.square + step * (square - scale.square),
        weight=scale.weight + step * (1.0 - scale.weight),
    )

"""A small team and its episodes, for the tests of networks and updates."""

from functools import partial

import jax
import jax.numpy as jnp
from tasks import make_task

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.instruct.schedule import make_schedule
from mavic.learn import bptt, update
from mavic.learn.transitions import macro_transitions
from mavic.rollout.rollout import rollout
from mavic.training.runs import make_run, rollout_policy
from mavic.types import replace

TASK = make_task("box_pushing", size=4)
PRESET = preset_of("tuned", "box_pushing", batch=12, episodes=1000, last_macro=True)
VECTORS = TASK.lexicon.vectors
NUM_ENVS = 3
CELL = (  # the plainest recurrent cell
    lambda key, inputs, hidden: jax.random.normal(key, (inputs + hidden, hidden)) / 10,
    lambda weight, memory, inputs: (
        (found := jnp.tanh(jnp.concatenate([inputs, memory], -1) @ weight)),
        found,
    ),
)


def static_config(network: str):
    return TASK.static_config(PRESET, network)


@partial(jax.jit, static_argnames="network")
def team(network: str, seed: int):
    """A random team with large logits."""
    state = update.init(jax.random.key(seed), static_config(network))
    return replace(state, actor=jax.tree.map(lambda x: x * 3.0, state.actor))


@partial(jax.jit, static_argnames="network")
def played(network: str, seed: int):
    """A team, and the macro transitions of its greedy episodes under frequent instructions to one agent."""
    static, state = static_config(network), team(network, seed)
    run = make_run(ExperimentConfig(network=network), PRESET, TASK, 0)
    busy = make_schedule(rate=0.2, hold_min=2, hold_max=6, one_agent=1.0)
    policy = rollout_policy(static, state.actor, VECTORS, jnp.zeros(3), greedy=True)
    env = replace(run.train_env, schedule=busy)
    rows = rollout(env, policy, jax.random.key(seed), episodes=12, num_envs=NUM_ENVS).rows
    return state, macro_transitions(rows, PRESET.gamma)


def someones(seed: int):
    """Macro transitions for tests in which it does not matter who made them: one program serves all networks."""
    return played("residual", seed)[1]


def by_agent(transitions):
    """[K, L, N] → [N, K', L], padded to whole blocks."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), bptt.pad(transitions))


def first_agent(tree):
    return jax.tree.map(lambda x: x[0], tree)

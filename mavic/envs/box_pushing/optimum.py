"""The best plan of Box Pushing, and its return for any size and discount."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.box_pushing.env import BoxPushing
from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.state import State
from mavic.types import Tick

Joint = tuple[Macro, Macro]

# Each robot goes to the nearer spot, then both push. `tools/search_box_pushing.py` proves it best at the default
# rewards.
BEST_PLAN: tuple[Joint, ...] = (
    (Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1),
    (Macro.PUSH, Macro.PUSH),
)

# What the kinds forbid that leave the task on, as in instructions.toml. The best plan does none of it, so it is also
# the best plan that obeys.
FORBIDDEN: dict[str, tuple[Macro, ...]] = {
    "avoid-small-box-0": (Macro.GO_SMALL_BOX_0,),
    "avoid-small-box-1": (Macro.GO_SMALL_BOX_1,),
    "avoid-small-boxes": (Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1),
}


def best_return(env: BoxPushing, gamma: float, kind: str | None = None) -> float | None:
    """Return the discounted return of the best plan, for any size.

    Args:
        env: The environment.
        gamma: The discount.
        kind: The kind that the plan obeys; None: no instruction; "KIND+KIND": both.

    Returns:
        The return, or None for a kind that replaces the task.
    """
    if kind is not None and not set(kind.split("+")) <= set(FORBIDDEN):
        return None
    state, value, time = env.reset(jax.random.key(0)), 0.0, 0
    for joint in BEST_PLAN:
        ended = np.ones(2, bool)
        while True:
            out = _tick(env, state, np.array(joint), ended)
            state, ended = out.state, np.asarray(out.ended)
            value += gamma**time * float(out.reward[0])
            time += 1
            if ended.all() or bool(out.terminal):
                break
    return round(value, 4)


@jax.jit
def _tick(env: BoxPushing, state: State, macro: jax.Array, fresh: jax.Array) -> Tick:
    """Return one tick without an instruction."""
    return env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(2, jnp.int32))

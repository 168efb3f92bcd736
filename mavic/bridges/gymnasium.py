"""Gymnasium: a world for one learner, who decides for the whole team or for one agent of it.

    import gymnasium, mavic.bridges.gymnasium                                # importing it registers the worlds
    env = gymnasium.make("mavic/BoxPushing-v1")                              # the whole team
    env = gymnasium.make("mavic/BoxPushing-v1", agent="robot_0", teammates="box_pushing/mavic")

One step is one tick. The reward is the mean over the agents that the learner decides for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from mavic import ranges
from mavic.bridges import ids
from mavic.bridges.pettingzoo import parallel_env
from mavic.hints import suggest
from mavic.teams.file import load
from mavic.types import replace


class TeamEnv(gymnasium.Env):
    """A world as a Gymnasium environment. Other agents follow the policy `teammates`, or random macros."""

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012

    def __init__(
        self,
        world: str = "box_pushing",
        *,
        agent: str | None = None,
        teammates: str | Path | None = None,
        render_mode: str | None = None,
        **how: Any,
    ) -> None:
        """Open a world.

        Args:
            world: the name of a world, with its version or without it.
            agent: the agent that the learner decides for. None: the whole team.
            teammates: the policy file or shipped team that decides for the others. None: random macros.
            render_mode: "ansi" renders states as text.
            how: further arguments of `mavic.bridges.pettingzoo.parallel_env`.
        """
        self.team = parallel_env(world, render_mode=render_mode, **how)
        self.render_mode = render_mode
        names = tuple(self.team.possible_agents)
        if agent is not None and agent not in names:
            raise ValueError(f"no agent is called {agent!r}; {suggest(agent, names)}")
        self.agent, self.names = agent, names
        self.policy = None if teammates is None else load(teammates)
        if self.policy is not None:
            self.policy.fits(self.team.world)
        if agent is None:
            self.observation_space = spaces.Dict(
                {name: self.team.observation_space(name) for name in names}
            )
            counts = [int(self.team.action_space(name).n) for name in names]
            self.action_space: spaces.Space = spaces.MultiDiscrete(counts)
        else:
            self.observation_space = self.team.observation_space(agent)
            self.action_space = self.team.action_space(agent)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._seen, infos = self.team.reset(seed=int(self.np_random.integers(2**31)))
        self._texts = [infos[name]["instruction"] or None for name in self.names]
        self._carry: Any = None if self.policy is None else self.policy.start()
        return self._own(self._seen), self._own(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """Run one tick."""
        actions = self._actions(action)
        self._seen, rewards, ended, cut, infos = self.team.step(actions)
        self._texts = [infos[name]["instruction"] or None for name in self.names]
        first = self.names[0]
        paid = [rewards[name] for name in self.names if self.agent in (None, name)]
        return (
            self._own(self._seen),
            float(np.mean(paid)),
            ended[first],
            cut[first],
            self._own(infos),
        )

    def render(self) -> Any:
        """Return the state as text (render mode ansi)."""
        return self.team.render()

    def _own(self, by_agent: dict[str, Any]) -> Any:
        return by_agent if self.agent is None else by_agent[self.agent]

    def _actions(self, action: Any) -> dict[str, int]:
        if self.agent is None:
            return dict(zip(self.names, ranges.plain(action), strict=True))
        actions = {**self._others(), self.agent: ranges.plain(action)}
        if self.policy is not None:  # the team remembers what its member really runs
            idle = [bool(self._seen[name]["idle"][0]) for name in self.names]
            ran = np.where(idle, list(actions.values()), np.asarray(self._carry.macro))
            self._carry = replace(self._carry, macro=jnp.asarray(ran, jnp.int32))
        return actions

    def _others(self) -> dict[str, int]:
        masks = [self._seen[name]["action_mask"] for name in self.names]
        if self.policy is None:
            chosen = [int(self.np_random.choice(np.flatnonzero(mask))) for mask in masks]
            return dict(zip(self.names, chosen, strict=True))
        wide = max(map(len, masks))
        available = np.stack([np.pad(mask, (0, wide - len(mask))) for mask in masks]).astype(bool)
        macro, self._carry = self.policy.act(
            jax.random.key(int(self.np_random.integers(2**31))),
            self._carry,
            np.stack([self._seen[name]["observation"] for name in self.names]),
            self._texts,
            np.array([self._seen[name]["idle"][0] for name in self.names], bool),
            available=available,
        )
        return dict(zip(self.names, np.asarray(macro).tolist(), strict=True))


ids.register_plugin()

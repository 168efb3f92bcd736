"""The networks of a trained team, and how a policy file describes them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from mavic.hints import look_up
from mavic.learn.backbones import network_of
from mavic.learn.networks import Network, Shape
from mavic.learn.views import VIEWS

FIRST_FIELDS = (  # of a shape, in every file
    *("observation", "macros", "agents", "embedding", "hidden", "projected", "parts"),
    *("last_macro", "residual"),
)


class Networks(NamedTuple):
    """The networks of a team. They are static: a part of the compiled program."""

    actor: Network
    critic: Network

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Networks:
        """Return the networks that a policy file describes."""
        backbone = facts["config"]["backbone"]
        actor = _shape_of(facts["shape"])
        critic = _shape_of(facts["critic_shape"]) if "critic_shape" in facts else actor
        roles = {"actor": actor, "critic": critic}
        return cls(**{role: network_of(backbone, role, shape) for role, shape in roles.items()})

    def facts(self) -> dict[str, Any]:
        """Return how a policy file describes them. The critics' shape is left out where it is the actors'."""
        shapes = {"shape": self.actor.shape, "critic_shape": self.critic.shape}
        if self.critic is self.actor:
            del shapes["critic_shape"]
        return {name: _fact(shape) for name, shape in shapes.items()}


def _shape_of(fields: dict[str, Any]) -> Shape:
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    shape = Shape(**plain)
    look_up(VIEWS, shape.view, "view")
    return shape


def _fact(shape: Shape) -> dict[str, Any]:
    """Return a shape as a policy file holds it. Later fields are left out where they have their defaults."""
    defaults = {field.name: field.default for field in dataclasses.fields(shape)}
    own = dataclasses.asdict(shape)
    return {k: v for k, v in own.items() if k in FIRST_FIELDS or v != defaults[k]}

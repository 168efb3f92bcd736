"""The networks of a trained team, and how a policy file describes them."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from mavic.experiments.config import DEFAULT_BACKBONE
from mavic.learn.backbones import network_of
from mavic.learn.gru import Net
from mavic.learn.networks import Network, Shape

FIRST_FIELDS = (  # of a shape, in every file
    *("observation", "macros", "agents", "embedding", "hidden", "projected", "parts"),
    *("last_macro", "residual"),
)


class Networks(NamedTuple):
    """The networks of a team. They are static: a part of the compiled program."""

    actor: Network
    critic: Network


def with_phrases_of(known: Any, new: Any) -> Any:
    """Return the weights of `known` with the phrases of `new`."""
    if isinstance(known, Net):
        return known._replace(table=new.table, kinds=new.kinds)
    parts = {**known["parts"], "table": new["parts"]["table"]}
    return {"parts": parts, "kinds": new["kinds"]}


def networks_of(facts: dict[str, Any]) -> Networks:
    """Return the networks that a policy file describes. Files that name no backbone are of Mac-IAC."""
    backbone = facts.get("config", {}).get("backbone", DEFAULT_BACKBONE)
    actor = _shape_of(facts["shape"])
    critic = _shape_of(facts["critic_shape"]) if "critic_shape" in facts else actor
    return Networks(
        actor=network_of(backbone, "actor", actor), critic=network_of(backbone, "critic", critic)
    )


def _shape_of(fields: dict[str, Any]) -> Shape:
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return Shape(**plain)


def shape_fact(shape: Shape) -> dict[str, Any]:
    """Return a shape as a policy file holds it. Later fields are left out where they have their defaults."""
    defaults = {field.name: field.default for field in dataclasses.fields(shape)}
    own = dataclasses.asdict(shape)
    return {k: v for k, v in own.items() if k in FIRST_FIELDS or v != defaults[k]}

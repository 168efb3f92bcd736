"""Versioned names of the worlds, such as `mavic/BoxPushing-v1`. A change of a world's dynamics raises its version."""

from __future__ import annotations

from mavic.envs.api import BUILT_IN, names
from mavic.hints import suggest

NAMESPACE = "mavic"
VERSION = {"box_pushing": 1, "warehouse": 1, "overcooked": 1}
ENTRY_POINT = "mavic.bridges.gymnasium:TeamEnv"


def id_of(world: str) -> str:
    """Return the versioned name of a world. Worlds of one's own have version 0."""
    camel = "".join(part.capitalize() for part in world.split("_"))
    return f"{NAMESPACE}/{camel}-v{VERSION.get(world, 0)}"


def world_of(name: str) -> str:
    """Return the world that a versioned name or a plain name means."""
    known = {id_of(world): world for world in names()} | {world: world for world in names()}
    if name not in known:
        raise ValueError(f"no world is called {name!r}; {suggest(name, tuple(known))}")
    return known[name]


def register() -> None:
    """Make all built-in worlds known to Gymnasium. An installed package does this by itself (an entry point)."""
    import gymnasium

    for world in BUILT_IN:
        if id_of(world) not in gymnasium.registry:
            gymnasium.register(id_of(world), entry_point=ENTRY_POINT, kwargs={"world": world})


def register_plugin() -> None:
    """Do the same inside the namespace that Gymnasium opens for the entry point."""
    import gymnasium

    for world in BUILT_IN:
        name = id_of(world).removeprefix(f"{NAMESPACE}/")
        gymnasium.register(name, entry_point=ENTRY_POINT, kwargs={"world": world})

"""Versioned names of the worlds, such as `mavic/BoxPushing-v1`. A change of a world's dynamics raises its version."""

from __future__ import annotations

from mavic.envs.api import BUILT_IN, known, names
from mavic.hints import suggest

ENTRY_POINT = "mavic.bridges.gymnasium:TeamEnv"


def id_of(world: str) -> str:
    """Return the versioned name of a world. Worlds without a version have 0."""
    camel = "".join(part.capitalize() for part in world.split("_"))
    return f"mavic/{camel}-v{known(world).version}"


def world_of(name: str) -> str:
    """Return the world that a versioned name or a plain name means."""
    worlds = {id_of(world): world for world in names()} | {world: world for world in names()}
    if name not in worlds:
        raise ValueError(f"no world is called {name!r}; {suggest(name, tuple(worlds))}")
    return worlds[name]


def register_plugin() -> None:
    """Make all built-in worlds known to Gymnasium.

    Gymnasium before 1.4 calls this for an installed package (an entry point). Later versions leave it to whoever
    imports `mavic.bridges.gymnasium`.
    """
    import gymnasium

    for world in BUILT_IN:
        if id_of(world) not in gymnasium.registry:
            gymnasium.register(id_of(world), entry_point=ENTRY_POINT, kwargs={"world": world})

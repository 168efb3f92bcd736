"""The worlds: cooperative environments whose agents run macro-actions.

- `api`: what an environment offers, what is known about a world, and the registry of worlds.
- `unreliable`: unreliable macros and costly interruptions, for any world.
- `conformance`: the test that an environment keeps its promises.
- `painting`: pictures of states, in text and with matplotlib.
- `box_pushing`, `warehouse`, `overcooked`: the built-in worlds, each with its data, presets and best plans.
"""

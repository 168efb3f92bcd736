"""How people speak of Box Pushing: the job, the macros and the things."""

from __future__ import annotations

JOB = "Two robots push the big box to the green row together; a small box counts too, but far less."
EXAMPLES = (
    "go to the small boxes",
    "don't push",
    "stay",
    "keep away from the left small box",
)
ROBOTS = ("blue robot", "orange robot")
SMALL = ("left small box", "right small box")
BIG = "big box"
SPOTS = ("spot below the left half", "spot below the right half")
MACRO_WORDS = {
    "GO_SMALL_BOX_0": "to the left small box",
    "GO_SMALL_BOX_1": "to the right small box",
    "GO_BIG_SPOT_0": "below the big box, left",
    "GO_BIG_SPOT_1": "below the big box, right",
}
MACRO_THINGS = {
    "GO_SMALL_BOX_0": SMALL[0],
    "GO_SMALL_BOX_1": SMALL[1],
    "GO_BIG_SPOT_0": SPOTS[0],
    "GO_BIG_SPOT_1": SPOTS[1],
}
# What people also say for a robot, or for the noun in the name of a thing.
OTHER_WORDS = {
    **{robot: (f"robot {number}",) for number, robot in enumerate(ROBOTS)},
    **{
        spot: (f"{spot.split()[-2]} half", f"{spot.split()[-2]} half of the big box")
        for spot in SPOTS
    },
    "small box": ("box", "little box", "crate", "small crate", "small one", "little one"),
}

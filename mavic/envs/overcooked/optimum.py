"""The best plans for map D under the paper's dynamics, with and without a prohibition.

`tools/search_overcooked.py` found them and proves that none is better: with a beam of 100,000 states no state with a
bound above 154.562 is dropped, and `BEST_PLAN`, which takes 56 ticks, earns 156.612.
"""

from __future__ import annotations

from mavic.envs.overcooked.env import Overcooked
from mavic.envs.overcooked.macros import PattyMacro

GAMMA = 0.992
# One letter per tick (Stay, Right, Down, Left, Up), one text per cook.
BEST_PLAN = (
    "RRRDRDRUUULLLLLLLLLRRDDDDDRRDUUUUUDDDDRLUUUUSSSSSLULLDDL",
    "RRLLLLLLLLLDDRRDDDRRUURDDLLDDDDDDDUUUUUUUUUUUUUUURRULSSS",
)
OPTIMAL_RETURN = 156.6119  # the return of BEST_PLAN, discounted with GAMMA
# What the kinds forbid that leave the task on, as in instructions.toml.
FORBIDDEN: dict[str, tuple[PattyMacro, ...]] = {
    "avoid-right-board": (PattyMacro.GO_BOARD_1,),
    "avoid-left-board": (PattyMacro.GO_BOARD_2,),
    "avoid-plate-1": (PattyMacro.GET_PLATE_1,),
    "avoid-plate-2": (PattyMacro.GET_PLATE_2,),
    "avoid-left-oven": (PattyMacro.GO_OVEN_1,),
    "avoid-right-oven": (PattyMacro.GO_OVEN_2,),
}
# The best plans that obey them from start to end. Four are as good as BEST_PLAN, so no plan is better.
OBEDIENT_PLANS = {
    "avoid-right-board": (
        "RRRDRDRUUUDLLLLLLLLLRRDDDDRRDUUUUUDDDDRLUUUUSSSSSLULLDDL",
        "RRLLLDLLLLLLDRRDDDRRUURDDLLDDDDDDDUUUUUUUUUUUUUUURRULSSS",
    ),
    "avoid-left-board": BEST_PLAN,
    "avoid-plate-1": (
        "RRRDRDRUUULLLLLLLLLRRDDDDDRRDUUUULSLRSSSSSSSSSSSSLUDLDLL",
        "RRLLLLLLLLLDDRRDDDRRUURDDLLDDDDDDDUUUUUUUUUUUUUUURDDSUUS",
    ),
    "avoid-plate-2": (
        "RRRDRDRUUULLLLLLLLLRRDDDDDRRRUULUULRLRSSSSSSSSSSSLULLDDL",
        "RRLLLLLLLLLDDRRDDDRRUURDDLLDDDDDDDUUUUUUUUUUUUUUULSDUSDS",
    ),
    "avoid-left-oven": (
        "RRRDRDRUUULLLLLLLLLRRDDDDDRRDUUUUUDDDDRUUUUSSSSSSSLULLLDDL",
        "RRLLLLLLLLLDDRRDDDRRUURDDLLDDDDDDDUUUURUUUUUUUUUUURULSSSSS",
    ),
    "avoid-right-oven": BEST_PLAN,
}
OBEDIENT_RETURNS = {
    **dict.fromkeys(OBEDIENT_PLANS, OPTIMAL_RETURN),
    "avoid-right-board": 156.4677,
    "avoid-left-oven": 154.3814,
}
# Pairs for which the plan of one of the two kinds also obeys the other. It earns the lower of the two returns, and no
# plan that obeys both can earn more. The best plans for the other pairs are not known.
OBEDIENT_PAIRS = {
    "avoid-right-board+avoid-right-oven": "avoid-right-board",
    "avoid-left-board+avoid-plate-1": "avoid-plate-1",
    "avoid-left-board+avoid-plate-2": "avoid-plate-2",
    "avoid-left-board+avoid-left-oven": "avoid-left-oven",
    "avoid-left-board+avoid-right-oven": "avoid-left-board",
    "avoid-plate-1+avoid-right-oven": "avoid-plate-1",
    "avoid-plate-2+avoid-right-oven": "avoid-plate-2",
}


def best_return(env: Overcooked, gamma: float, kind: str | None = None) -> float | None:
    """Return the best return of the task.

    Args:
        env: The environment.
        gamma: The discount.
        kind: The kind that is obeyed from the start; None: no instruction; "KIND+KIND": both.

    Returns:
        The return. None unless the options and the discount are the default ones, for a kind that replaces the task,
        and for a pair whose best plan is not known.
    """
    if env != Overcooked() or gamma != GAMMA:
        return None
    if kind is None:
        return OPTIMAL_RETURN
    return OBEDIENT_RETURNS.get(OBEDIENT_PAIRS.get(kind, kind))

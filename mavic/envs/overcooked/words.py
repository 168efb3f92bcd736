"""How people speak of the kitchen: the job, the cooks, the macros and the things.

Left and right are those of a cook who faces the thing, as in `instructions.toml`.
"""

from __future__ import annotations

JOB = "Two cooks make one dish: chop, blend, cook, plate, then bring it to the hatch."
EXAMPLES = (
    "don't use the left board",
    "stay away from the right oven",
    "leave plate 1 alone",
    "let me do all the chopping",
    "stay where you are",
)
COOKS = ("blue cook", "orange cook", "purple cook")
BOARDS = ("right board", "left board")  # board 1, board 2
OVENS = ("left oven", "right oven")
PLATES = ("plate 1", "plate 2")
BLENDER, HATCH = "blender", "hatch"

_USED = {
    "GET_TOMATO": "tomato",
    "GET_LETTUCE": "lettuce",
    "GET_ONION": "onion",
    "GET_PEAS": "peas",
    "GET_PLATE_1": PLATES[0],
    "GET_PLATE_2": PLATES[1],
    "GET_BOWL": "bowl",
    "GET_PATTY": "patty",
    "GO_BOARD_1": BOARDS[0],
    "GO_BOARD_2": BOARDS[1],
    "GO_BLENDER": BLENDER,
    "GO_OVEN_1": OVENS[0],
    "GO_OVEN_2": OVENS[1],
    "DELIVER": HATCH,
}
MACRO_THINGS = _USED
MACRO_WORDS = {
    **{
        macro: ("get " if macro.startswith("GET") else "to the ") + thing
        for macro, thing in _USED.items()
    },
    "DELIVER": "deliver",
    "GO_COUNTER": "to a counter",
    "LEFT": "step left",
    "RIGHT": "step right",
    "UP": "step up",
    "DOWN": "step down",
}
# What people also say for a cook, a thing, or the noun in its name.
OTHER_WORDS = {
    **{cook: (f"cook {number}", f"chef {number}") for number, cook in enumerate(COOKS, 1)},
    "board": ("cutting board", "chopping board", "knife"),
    "oven": ("stove", "cooker"),
    "plate": ("dish",),
    "tomato": ("tomatoes", "tomatos"),
    "lettuce": ("salad leaves", "lettuces"),
    "peas": ("bag of peas", "pea"),
    HATCH: ("delivery counter", "serving hatch"),
}

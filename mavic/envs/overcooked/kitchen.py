"""Kitchens: text maps, read once on the host and checked. Errors name the row and column.

A map is 7 rows of 7 letters. The border holds no floor. The letters are

    .  floor           #  counter         *  delivery        K  cutting board (two)
    T  tomato          L  lettuce         N  onion           P  bag of peas
    1  2  plates       B  blender         O  oven (two)      a  b  c  where the cooks start

A kitchen for salads has an onion and neither a blender nor ovens. A kitchen for patties has peas, a blender and two
ovens. Boards and ovens are numbered from the top left, row by row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mavic.envs.overcooked.grid import CELLS, NOWHERE, SIZE, cell_of, neighbours, row_column

MAPS = Path(__file__).parent / "maps"

FLOOR, COUNTER = ".", "#"
COOKS = "abc"
ONCE = "TL12*abc"  # letters that every map has once
LETTERS = {
    ".": "floor",
    "#": "counter",
    "*": "delivery",
    "K": "cutting board",
    "T": "tomato",
    "L": "lettuce",
    "N": "onion",
    "P": "peas",
    "1": "plate 1",
    "2": "plate 2",
    "B": "blender",
    "O": "oven",
    "a": "first cook",
    "b": "second cook",
    "c": "third cook",
}


class _MapError(ValueError):
    """A map is wrong. The message names the map, row and column."""


@dataclass(frozen=True, kw_only=True)
class Kitchen:
    """A checked map as cell numbers. It is hashable, so it can be a static part of a compiled program."""

    name: str
    floor: tuple[int, ...]
    starts: tuple[int, ...]  # where the three cooks start
    homes: tuple[int, ...]  # where tomato, lettuce, onion or peas, plate 1 and plate 2 start
    boards: tuple[int, ...]
    delivery: int
    blender: int = NOWHERE
    ovens: tuple[int, ...] = (NOWHERE, NOWHERE)
    passes: tuple[int, ...] = ()  # counters inside the room, in order of distance from the middle

    @property
    def patty(self) -> bool:
        """Whether patties are made here (blender and ovens) rather than salads (onion)."""
        return self.blender != NOWHERE

    @property
    def third_food(self) -> str:
        """The food beside tomato and lettuce."""
        return "peas" if self.patty else "onion"

    def is_floor(self) -> np.ndarray:
        """Return bool [CELLS]: the cell is floor."""
        table = np.zeros(CELLS, bool)
        table[list(self.floor)] = True
        return table

    @classmethod
    @lru_cache(maxsize=64)
    def load(cls, name: str | Path) -> Kitchen:
        """Return a shipped map by its letter, or your own map by its path."""
        shipped = MAPS / f"{name}.txt"
        path = shipped if shipped.is_file() else Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            known = ", ".join(sorted(file.stem for file in MAPS.glob("*.txt")))
            raise _MapError(f"{name}: no such map; shipped: {known}; or give a path") from None
        except UnicodeDecodeError as error:
            raise _MapError(f"{path}: not UTF-8 text (byte {error.start})") from None
        except (OSError, ValueError) as error:  # a folder, no permission, a name that cannot be one
            raise _MapError(f"{name}: cannot be read as a map ({error})") from None
        return cls.parse(text, path.stem if path == shipped else str(path))

    @classmethod
    def parse(cls, text: str, name: str) -> Kitchen:
        """Check the text of a map and return it. `name` is what errors call the map."""
        where = _find(text.splitlines(), name)
        floor = where["."] + where["a"] + where["b"] + where["c"]
        patty = bool(where["B"])
        third = where["P"] if patty else where["N"]
        inside = [c for c in where["#"] if min(row_column(c)) > 0 and max(row_column(c)) < SIZE - 1]
        made = cls(
            name=name,
            floor=tuple(sorted(floor)),
            starts=(where["a"][0], where["b"][0], where["c"][0]),
            homes=(where["T"][0], where["L"][0], third[0], where["1"][0], where["2"][0]),
            boards=tuple(where["K"]),
            delivery=where["*"][0],
            blender=where["B"][0] if patty else NOWHERE,
            ovens=tuple(where["O"]) if patty else (NOWHERE, NOWHERE),
            passes=tuple(sorted(inside, key=_from_the_middle)),
        )
        _check_reach(made, where["#"])
        return made


def _from_the_middle(cell: int) -> tuple[int, int, int]:
    """Return a sort key: the distance from the middle of the map, then row and column."""
    row, column = row_column(cell)
    return abs(row - SIZE // 2) + abs(column - SIZE // 2), row, column


def _find(rows: list[str], name: str) -> dict[str, list[int]]:
    """Return the cells of each letter. Refuse unknown letters, wrong sizes and wrong numbers of stations."""
    while rows and not rows[-1].strip():
        rows = rows[:-1]
    if len(rows) != SIZE:
        raise _MapError(f"{name}: {len(rows)} rows; a map has {SIZE}")
    where: dict[str, list[int]] = {letter: [] for letter in LETTERS}
    for r, row in enumerate(rows):
        if len(row) != SIZE:
            raise _MapError(f"{name}: row {r}: {len(row)} columns; a map has {SIZE}")
        for c, letter in enumerate(row):
            if letter not in LETTERS:
                known = ", ".join(f"{key} {word}" for key, word in LETTERS.items())
                raise _MapError(
                    f"{name}: row {r}, column {c}: unknown letter {letter!r}; known: {known}"
                )
            border = r in (0, SIZE - 1) or c in (0, SIZE - 1)
            if border and letter in FLOOR + COOKS:
                raise _MapError(f"{name}: row {r}, column {c}: {LETTERS[letter]} on the border")
            where[letter].append(cell_of(r, c))
    _check_numbers(where, name)
    return where


def _check_numbers(where: dict[str, list[int]], name: str) -> None:
    """Refuse a map with too many or too few of a letter."""
    count = Counter({letter: len(cells) for letter, cells in where.items()})
    wanted = dict.fromkeys(ONCE, 1) | {"K": 2}
    patty = any(count[letter] for letter in "PBO")
    wanted |= {"P": 1, "B": 1, "O": 2, "N": 0} if patty else {"N": 1}
    for letter, number in wanted.items():
        if count[letter] > number:
            r, c = row_column(where[letter][number])
            why = "not in a kitchen with peas, blender or ovens" if letter == "N" else "too many"
            raise _MapError(f"{name}: row {r}, column {c}: {LETTERS[letter]} {letter!r}: {why}")
        if count[letter] < number:
            raise _MapError(
                f"{name}: {LETTERS[letter]} {letter!r}: {count[letter]}; needs {number}"
            )


def _check_reach(kitchen: Kitchen, counters: list[int]) -> None:
    """Refuse a map in which a station cannot be reached, or no counter joins the rooms of the first two cooks."""
    rooms = _rooms(kitchen)
    stations = [*kitchen.homes, *kitchen.boards, kitchen.delivery]
    if kitchen.patty:
        stations += [kitchen.blender, *kitchen.ovens]
    manned = {rooms[start] for start in kitchen.starts[:2]}
    for cell in stations:
        if not manned & {rooms[n] for n in neighbours(cell) if n in rooms}:
            r, c = row_column(cell)
            raise _MapError(f"{kitchen.name}: row {r}, column {c}: no cook can reach it")
    joined = {rooms[kitchen.starts[0]]}
    for _ in manned:
        for cell in counters:
            touched = {rooms[n] for n in neighbours(cell) if n in rooms} & manned
            if touched & joined:
                joined |= touched
    if not manned <= joined:
        r, c = row_column(kitchen.starts[1])
        raise _MapError(
            f"{kitchen.name}: row {r}, column {c}: no counter joins this room to the first cook's"
        )


def _rooms(kitchen: Kitchen) -> dict[int, int]:
    """Return the connected room of each floor cell, named by one of its cells."""
    rooms: dict[int, int] = {}
    for seed in kitchen.floor:
        stack = [] if seed in rooms else [seed]
        while stack:
            cell = stack.pop()
            rooms[cell] = seed
            stack += [n for n in neighbours(cell) if n in kitchen.floor and n not in rooms]
    return rooms

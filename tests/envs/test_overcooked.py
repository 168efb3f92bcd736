"""Overcooked: each test shows a picture, runs macros and compares the picture after. Then maps, paths, best plan.

A picture has one word per cell: `.` floor, `#` counter, `K` board, `B` blender, `O` oven, `*` delivery, `@0` a cook.
`t l p` are raw foods, `T L` chopped ones, `t1` and `t2` partly chopped ones. `1 2` are plates; `bowl`, `patty` and
`1+patty` are dishes. `=` shows what a station or cook holds, and `/` its progress. Rows that a test does not name look
as in the first state.
"""

from __future__ import annotations

import heapq
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs import painting
from mavic.envs.api import make
from mavic.envs.conformance import check_env
from mavic.envs.overcooked import (
    Overcooked,
    PattyMacro,
    SaladMacro,
    SaladPassMacro,
    State,
    pathfinding,
)
from mavic.envs.overcooked import optimum as plans
from mavic.envs.overcooked.env import _move_cooks
from mavic.envs.overcooked.grid import CELLS, NOWHERE, SIZE, STEPS, cell_of
from mavic.envs.overcooked.kitchen import Kitchen, _MapError
from mavic.envs.overcooked.macros import Primitive, Thing
from mavic.envs.overcooked.observation import TASKS
from mavic.envs.overcooked.state import CHOPS, Event, Place
from mavic.types import Tick, replace
from tools import search_overcooked

M = PattyMacro
D = Overcooked()
THREE = Overcooked(third_cook=True)
KEY = jax.random.key(0)
EMPTY = {
    0: "#  #  #  O  O  t  #",
    1: "K  .  @0 .  @1 .  l",
    2: "K  .  .  .  .  .  p",
    3: "*  .  .  .  .  .  #",
    4: "#  .  .  .  .  .  #",
    5: "#  .  .  .  .  .  1",
    6: "#  #  #  B  #  2  #",
}
GROUND = [list("###OO##"), *(list("K.....#") for _ in "12"), list("*.....#")]
GROUND += [*(list("#.....#") for _ in "45"), list("###B###")]
WORDS = {
    "t": Thing.TOMATO,
    "l": Thing.LETTUCE,
    "p": Thing.THIRD,
    "1": Thing.PLATE_1,
    "2": Thing.PLATE_2,
}
WORDS |= {"bowl": Thing.DISH, "patty": Thing.DISH}

tick = jax.jit(Overcooked.tick)


def read(rows: dict[int, str] | None = None, env: Overcooked = D) -> State:
    """Return the state of a picture. Every cook knows where everything is, and nothing has been paid."""
    state = jax.tree.map(np.array, env.reset(KEY))
    place, cell, chopped = state.place, state.cell, state.chopped
    counts = {"blended": 0, "cooked": 0}
    place[:], cell[:] = Place.NOWHERE, NOWHERE
    for r, row in (EMPTY | (rows or {})).items():
        for c, word in enumerate(row.split()):
            ground, _, holds = word.partition("=")
            where = cell_of(r, c)
            if ground.startswith("@"):
                state.cook[int(ground[1])] = where
                spot = Place.HAND + int(ground[1])
            elif ground in ("K", "B", "O"):
                spot = {"K": Place.BOARD_1 + r - 1, "B": Place.BLENDER, "O": Place.OVEN_1 + c - 3}[
                    ground
                ]
            else:
                spot, holds = Place.COUNTER, ground if ground not in ".#*" else ""
            holds, _, progress = holds.partition("/")
            names = list(holds) if ground == "B" and holds != "bowl" else holds.split("+")
            for name in filter(None, names):
                thing = WORDS[name.lower()[0] if name not in ("bowl", "patty") else name]
                plated = "+" in holds and name != names[0]
                place[thing] = Place.PLATE_1 + int(names[0]) - 1 if plated else spot
                cell[thing] = where
                if thing < Thing.THIRD:
                    chopped[thing] = CHOPS if name.isupper() else int(name[1:] or 0)
                if thing == Thing.DISH:
                    counts = {"blended": 5, "cooked": 10 if name == "patty" else int(progress or 0)}
                elif progress:
                    counts["blended"] = int(progress)
    if place[Thing.DISH] != Place.NOWHERE:
        place[:3], cell[:3], chopped[:2] = Place.DISH, cell[Thing.DISH], CHOPS
    known = np.concatenate([cell, state.cook])
    made = replace(
        state,
        blended=np.int32(counts["blended"]),
        cooked=np.int32(counts["cooked"]),
        last_seen=np.broadcast_to(known, state.last_seen.shape),
        last_seen_patty=np.full(env.cook_count, counts["cooked"] == 10),
    )
    return jax.tree.map(jnp.asarray, made)


def show(state: State) -> dict[int, str]:
    """Return the picture of a state."""
    state = jax.tree.map(np.asarray, state)
    cells = [list(row) for row in GROUND]
    names = {}
    for thing, letter in ((0, "t"), (1, "l"), (2, "p")):
        times = int(state.chopped[thing])
        names[thing] = letter.upper() if times >= CHOPS else letter + str(times or "")
    names |= {3: "1", 4: "2", 5: "patty" if state.cooked >= 10 else "bowl"}
    for plate in (3, 4):
        if state.place[5] == Place.PLATE_1 + plate - 3:
            names[plate] += "+patty"
    for cook, at in enumerate(state.cook):
        cells[at >> 3][at & 7] = f"@{cook}"
    blender = "".join(names[k] for k in range(3) if state.place[k] == Place.BLENDER)
    for thing, name in names.items():
        where, (r, c) = int(state.place[thing]), divmod(int(state.cell[thing]), 8)
        if where == Place.COUNTER:
            cells[r][c] = name
        elif where == Place.BLENDER and thing < 3:
            cells[r][c] = f"B={blender}" + (f"/{state.blended}" if state.blended else "")
        elif Place.HAND <= where < Place.PLATE_1 or Place.BOARD_1 <= where <= Place.OVEN_2:
            baking = where >= Place.OVEN_1 and 0 < state.cooked < 10
            cells[r][c] += f"={name}" + (f"/{state.cooked}" if baking else "")
    return {r: " ".join(row) for r, row in enumerate(cells)}


def expect(state: State, rows: dict[int, str]) -> None:
    """Assert that the state looks like the first state except for these rows."""
    wanted = {r: " ".join(row.split()) for r, row in (EMPTY | rows).items()}
    assert show(state) == wanted


def run(
    state: State, *choices: tuple[int | None, ...], env: Overcooked = D, effect=0
) -> list[Tick]:
    """Run one tick per pair of choices. None lets the running macro run on."""
    ticks, macro = [], np.zeros(env.cooks, np.int32)
    for pair in choices:
        fresh = np.array([choice is not None for choice in pair])
        assert ticks or fresh.all()
        macro = np.array(
            [m if c is None else c for m, c in zip(macro, pair, strict=True)], np.int32
        )
        effects = np.full(env.cooks, effect, np.int32)
        ticks.append(tick(env, KEY, state, macro, fresh, effects))
        state = ticks[-1].state
    return ticks


def alone(state: State, *macros: int | None, env: Overcooked = D) -> list[Tick]:
    """Let cook 0 act while cook 1 stays."""
    return run(state, *((macro, M.STAY) for macro in macros), env=env)


def until_end(state: State, macro: int, limit: int = 40) -> list[Tick]:
    """Let cook 0 run a macro to its end."""
    ticks = []
    while not ticks or not ticks[-1].ended[0]:
        ticks += alone(state, macro)
        state = ticks[-1].state
        assert len(ticks) < limit
    return ticks


def rewards(ticks: list[Tick]) -> list[float]:
    return [round(float(t.reward[0]), 4) for t in ticks]


def happened(ticks: list[Tick]) -> list[str]:
    return [D.events[k] for t in ticks for k in np.flatnonzero(t.events)]


def test_pictures_are_read_as_they_are_shown():
    rows = {
        0: "# # # O O=bowl/4 # 1",
        1: "K . @0=2 . @1 . #",
        2: "K . . . . . #",
        5: "# . . . . . #",
        6: "# # # B # # #",
    }
    expect(read(rows), rows)
    rows = {0: "# # # O O # #", 1: "K=t2 . @0 . @1=p . #", 2: "K . . . . . #", 6: "# # # B=L # 2 #"}
    expect(read(rows), rows)
    expect(read(), {})
    expect(D.reset(KEY), {})


# Moving


def test_first_cook_has_priority_and_the_other_waits():
    ticks = run(read(), (M.RIGHT, M.LEFT))
    expect(ticks[0].state, {1: "K . . @0 @1 . l"})


def test_two_cooks_swap_places():
    state = read({1: "K . . @0 @1 . l"})
    expect(run(state, (M.RIGHT, M.LEFT))[0].state, {1: "K . . @1 @0 . l"})


def test_a_queue_advances_whoever_leads():
    state = read({1: "K . . @0 @1 . l"})
    expect(run(state, (M.RIGHT, M.RIGHT))[0].state, {1: "K . . . @0 @1 l"})
    expect(run(state, (M.LEFT, M.LEFT))[0].state, {1: "K . @0 @1 . . l"})


def test_a_cook_who_stays_blocks():
    state = read({1: "K . . @0 @1 . l"})
    expect(run(state, (M.RIGHT, M.STAY))[0].state, {1: "K . . @0 @1 . l"})


@pytest.mark.parametrize("cooks", [2, 3])
def test_cooks_move_as_in_the_sequential_loop(cooks):
    """Compare with repeated passes over the cooks in order, written with plain lists."""
    kitchen = Kitchen.load("C")
    floor = set(kitchen.floor)

    def slow(cells, moves):
        cells, done = list(cells), [False] * cooks
        wanted = [c + int(STEPS[m]) for c, m in zip(cells, moves, strict=True)]
        while not all(done):
            for i in range(cooks):
                if done[i]:
                    continue
                done[i] = True
                if wanted[i] == cells[i]:
                    continue
                others = [j for j in range(cooks) if j != i and cells[j] == wanted[i]]
                if others:
                    j = others[0]
                    if not done[j] and wanted[j] == cells[i]:
                        cells[i], cells[j], done[j] = cells[j], cells[i], True
                    elif not done[j]:
                        done[i] = False
                elif wanted[i] in floor:
                    cells[i] = wanted[i]
        return cells

    rng = np.random.default_rng(0)
    cells = np.array([rng.choice(kitchen.floor, cooks, replace=False) for _ in range(2000)])
    close = rng.choice(kitchen.floor[:8], (2000, cooks))
    close = close[[len(set(row)) == cooks for row in close]]
    cells = np.concatenate([cells, close]).astype(np.int32)
    moves = rng.integers(0, 5, cells.shape).astype(np.int32)
    fast = jax.jit(jax.vmap(lambda c, m: _move_cooks(kitchen, c, m)))(cells, moves)
    np.testing.assert_array_equal(fast, [slow(c, m) for c, m in zip(cells, moves, strict=True)])


# Picking and putting


def test_moving_against_food_takes_it_and_against_a_free_counter_puts_it():
    state = read({1: "K . . . @1 @0 l"})
    got = alone(state, M.RIGHT)[0]
    expect(got.state, {1: "K . . . @1 @0=l #"})
    put = alone(got.state, M.RIGHT)[0]
    expect(put.state, {1: "K . . . @1 @0 l"})
    assert [int(got.effective_macro[0]), int(put.effective_macro[0])] == [M.GET_LETTUCE, M.RIGHT]
    assert rewards([got, put]) == [-0.1, -0.1]


def test_full_hands_take_nothing_and_put_nothing_on_food():
    state = read({0: "# # # O O # #", 1: "K . . . @1 @0=t l"})
    ticks = alone(state, M.RIGHT)
    expect(ticks[0].state, {0: "# # # O O # #", 1: "K . . . @1 @0=t l"})
    assert ticks[0].effective_macro[0] == M.RIGHT


def test_the_first_cook_is_served_first():
    state = read({0: "# # # O O t #", 1: "K . . . @1 @0 l", 2: "K . . . . . p"})
    state = replace(state, cook=jnp.array([cell_of(1, 5), cell_of(2, 5)], jnp.int32))
    ticks = run(state, (M.RIGHT, M.RIGHT))
    expect(ticks[0].state, {1: "K . . . . @0=l #", 2: "K . . . . @1=p #"})


# Chopping


def test_three_pushes_chop_and_pay_once():
    state = read({0: "# # # O O # #", 1: "K=t @0 . . @1 . l"})
    ticks = alone(state, M.LEFT, M.LEFT, M.LEFT)
    for done, word in zip(ticks, ("t1", "t2", "T"), strict=True):
        expect(done.state, {0: "# # # O O # #", 1: f"K={word} @0 . . @1 . l"})
        assert done.effective_macro[0] == M.CHOP
    assert rewards(ticks) == [-0.1, -0.1, 9.9]
    assert happened(ticks) == ["tomato-chopped"]
    taken = alone(ticks[-1].state, M.LEFT)
    expect(taken[0].state, {0: "# # # O O # #", 1: "K @0=T . . @1 . l"})
    assert taken[0].effective_macro[0] == M.GET_TOMATO


def test_a_milestone_pays_once_an_episode():
    state = read({0: "# # # O O # #", 1: "K=t2 @0 . . @1 . l"})
    state = replace(state, paid=state.paid.at[Event.TOMATO_CHOPPED].set(True))
    ticks = alone(state, M.LEFT)
    assert rewards(ticks) == [-0.1] and happened(ticks) == ["tomato-chopped"]


def test_full_hands_do_not_chop():
    rows = {0: "# # # O O # #", 1: "K=t @0=l . . @1 . #"}
    ticks = alone(read(rows), M.LEFT)
    expect(ticks[0].state, rows)
    chop = alone(read(rows), M.CHOP)
    expect(chop[0].state, rows)
    assert chop[0].ended[0]


def test_peas_are_not_chopped():
    rows = {1: "K=p @0 . . @1 . l", 2: "K . . . . . #"}
    expect(alone(read(rows), M.LEFT)[0].state, rows | {1: "K @0=p . . @1 . l"})
    chop = alone(read(rows), M.CHOP)[0]
    expect(chop.state, rows)
    assert chop.ended[0]


@pytest.mark.parametrize("word", ["p", "1", "bowl", "patty", "t"])
def test_a_board_holds_anything_and_one_thing(word):
    gone = EMPTY | {5: "# . . . . . 1" if word != "1" else "# . . . . . #"}
    if word in ("bowl", "patty"):
        gone |= {0: "# # # O O # #", 1: "K @0 . . @1 . #", 2: "K . . . . . #"}
    gone |= {"p": {2: "K . . . . . #"}, "t": {0: "# # # O O # #"}}.get(word, {})
    tail = "#" if word in ("bowl", "patty") else "l"
    ticks = alone(read(gone | {1: f"K @0={word} . . @1 . {tail}"}), M.LEFT)
    expect(ticks[0].state, gone | {1: f"K={word} @0 . . @1 . {tail}"})
    assert ticks[0].effective_macro[0] == M.GO_BOARD_1


# Blending

NO_FOOD = {0: "# # # O O # #", 1: "K . @0 . @1 . #", 2: "K . . . . . #"}


@pytest.mark.parametrize(
    ("word", "row", "inside"),
    [("T", 0, "T"), ("p", 2, "p"), ("L", 1, "L"), ("t", 0, ""), ("t2", 0, ""), ("2", 6, "")],
)
def test_the_blender_takes_chopped_food_and_peas_only(word, row, inside):
    gone = {0: "# # # O O # #", 1: "K . . . @1 . #", 2: "K . . . . . #", 6: "# # # B # # #"}
    rows = {1: "K . . . @1 . l", 5: f"# . . @0={word} . . 1"} | {row: gone[row]}
    ticks = alone(read(rows), M.DOWN)
    if not inside:
        expect(ticks[0].state, rows)
        assert ticks[0].effective_macro[0] == M.DOWN
        return
    plate = "#" if row == 6 else "2"
    expect(ticks[0].state, rows | {5: "# . . @0 . . 1", 6: f"# # # B={inside} # {plate} #"})
    assert ticks[0].effective_macro[0] == M.GO_BLENDER


def test_nothing_comes_out_of_the_blender_before_it_is_blended():
    rows = NO_FOOD | {1: "K . . . @1 . l", 5: "# . . @0 . . 1", 6: "# # # B=Tp # 2 #"}
    ticks = alone(read(rows), M.DOWN)
    expect(ticks[0].state, rows)


def test_five_pushes_blend_and_then_the_bowl_is_taken():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . @0 . . 1", 6: "# # # B=TLp # 2 #"}
    ticks = alone(read(rows), *[M.DOWN] * 5)
    for count, done in enumerate(ticks[:4], 1):
        expect(done.state, rows | {6: f"# # # B=TLp/{count} # 2 #"})
    expect(ticks[4].state, rows | {6: "# # # B=bowl # 2 #"})
    assert rewards(ticks) == [-0.1] * 4 + [9.9] and happened(ticks) == ["blended"]
    assert [int(t.effective_macro[0]) for t in ticks] == [M.BLEND] * 5
    taken = alone(ticks[-1].state, M.DOWN)[0]
    expect(taken.state, rows | {5: "# . . @0=bowl . . 1", 6: "# # # B # 2 #"})
    assert taken.effective_macro[0] == M.GET_BOWL


def test_full_hands_do_not_blend():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . @0=1 . . #", 6: "# # # B=TLp # 2 #"}
    expect(alone(read(rows), M.DOWN)[0].state, rows)


# Cooking

AT_OVEN = NO_FOOD | {1: "K . . @0 . @1 #"}


@pytest.mark.parametrize(("oven", "macro"), [(3, M.GO_OVEN_1), (4, M.GO_OVEN_2)])
def test_an_oven_takes_a_bowl_and_needs_ten_pushes(oven, macro):
    cook = "K . . @0=bowl . @1 #" if oven == 3 else "K . . . @0=bowl @1 #"
    bare = cook.replace("=bowl", "")
    top = "# # # {} O # #" if oven == 3 else "# # # O {} # #"
    put = alone(read(NO_FOOD | {1: cook}), M.UP)
    expect(put[0].state, NO_FOOD | {0: top.format("O=bowl"), 1: bare})
    assert put[0].effective_macro[0] == macro and happened(put) == ["bowl-in-oven"]
    waited = alone(put[0].state, M.STAY, M.STAY)[-1].state
    expect(waited, NO_FOOD | {0: top.format("O=bowl"), 1: bare})
    ticks = alone(waited, *[M.UP] * 10)
    for count, done in enumerate(ticks[:9], 1):
        expect(done.state, NO_FOOD | {0: top.format(f"O=bowl/{count}"), 1: bare})
    expect(ticks[9].state, NO_FOOD | {0: top.format("O=patty"), 1: bare})
    assert rewards(ticks) == [-0.1] * 9 + [9.9] and happened(ticks) == ["cooked"]
    assert [int(t.effective_macro[0]) for t in ticks] == [M.COOK] * 10
    taken = alone(ticks[-1].state, M.UP)
    expect(taken[0].state, NO_FOOD | {1: cook.replace("bowl", "patty")})
    assert taken[0].effective_macro[0] == M.GET_PATTY and happened(taken) == ["patty-taken"]


@pytest.mark.parametrize("word", ["patty", "1"])
def test_an_oven_takes_nothing_but_a_bowl(word):
    rows = {0: "# # # O O # #", 1: f"K . . @0={word} . @1 #", 2: "K . . . . . #"}
    if word == "1":
        rows = {1: "K . . @0=1 . @1 l", 5: "# . . . . . #"}
    expect(alone(read(rows), M.UP)[0].state, rows)


def test_full_hands_do_not_cook():
    rows = NO_FOOD | {0: "# # # O=bowl/3 O # #", 1: "K . . @0=1 . @1 #", 5: "# . . . . . #"}
    expect(alone(read(rows), M.UP)[0].state, rows)


# Plating


def test_a_patty_goes_onto_the_plate_where_it_stands():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . . . @0=patty 1"}
    ticks = alone(read(rows), M.RIGHT, M.RIGHT)
    expect(ticks[0].state, rows | {5: "# . . . . @0 1+patty"})
    expect(ticks[1].state, rows | {5: "# . . . . @0=1+patty #"})
    assert happened(ticks) == ["patty-plated"]
    assert [int(t.effective_macro[0]) for t in ticks] == [M.GET_PLATE_1] * 2


def test_a_patty_goes_onto_a_plate_on_a_board_and_the_plate_stays():
    rows = NO_FOOD | {1: "K=2 @0=patty . . @1 . #", 6: "# # # B # # #"}
    expect(alone(read(rows), M.LEFT)[0].state, rows | {1: "K=2+patty @0 . . @1 . #"})


def test_an_empty_plate_takes_the_patty_from_the_oven():
    rows = NO_FOOD | {0: "# # # O=patty O # #", 1: "K . . @0=2 . @1 #", 6: "# # # B # # #"}
    ticks = alone(read(rows), M.UP)
    expect(ticks[0].state, rows | {0: "# # # O O # #", 1: "K . . @0=2+patty . @1 #"})
    assert happened(ticks) == ["patty-taken", "patty-plated"]
    assert ticks[0].effective_macro[0] == M.GET_PATTY


@pytest.mark.parametrize("word", ["bowl", "T", "L", "p"])
def test_only_a_patty_is_plated(word):
    rows = {
        "bowl": NO_FOOD | {1: "K . . . @1 . #"},
        "T": {0: "# # # O O # #", 1: "K . . . @1 . l"},
        "L": {1: "K . . . @1 . #"},
        "p": {1: "K . . . @1 . l", 2: "K . . . . . #"},
    }[word] | {5: f"# . . . . @0={word} 1"}
    expect(alone(read(rows), M.RIGHT)[0].state, rows)


def test_a_plate_does_not_take_a_bowl_from_oven_or_blender():
    rows = NO_FOOD | {0: "# # # O=bowl O # #", 1: "K . . @0=2 . @1 #", 6: "# # # B # # #"}
    expect(alone(read(rows), M.UP)[0].state, rows)
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . @0=1 . . #", 6: "# # # B=bowl # 2 #"}
    expect(alone(read(rows), M.DOWN)[0].state, rows)


# Delivering


def test_the_plated_patty_ends_the_episode():
    ticks = alone(
        read(NO_FOOD | {1: "K . . . @1 . #", 3: "* @0=1+patty . . . . #", 5: "# . . . . . #"}),
        M.LEFT,
    )
    assert rewards(ticks) == [199.9] and bool(ticks[0].terminal)
    assert happened(ticks) == ["solved"] and ticks[0].effective_macro[0] == M.DELIVER


@pytest.mark.parametrize(
    ("word", "gone"),
    [
        ("T", {0: "# # # O O # #"}),
        ("t1", {0: "# # # O O # #"}),
        ("p", {2: "K . . . . . #"}),
        ("1", {5: "# . . . . . #"}),
        ("bowl", NO_FOOD),
        ("patty", NO_FOOD),
    ],
)
def test_a_wrong_delivery_costs_and_everything_returns_raw(word, gone):
    food = "#" if gone is NO_FOOD else "l"
    rows = gone | {1: f"K . . . @1 . {food}", 3: f"* @0={word} . . . . #"}
    state = read(rows)
    state = replace(state, paid=jnp.ones_like(state.paid))
    ticks = alone(state, M.LEFT)
    expect(ticks[0].state, {1: "K . . . @1 . l", 3: "* @0 . . . . #"})
    assert rewards(ticks) == [-5.1] and not bool(ticks[0].terminal)
    assert happened(ticks) == ["wrong-delivery"]
    assert ticks[0].state.paid.all()
    assert int(ticks[0].state.blended) == int(ticks[0].state.cooked) == 0


def test_what_returns_onto_another_thing_is_found_below_it():
    """Under `paper` nothing is lost: the counter gives back one thing after the other."""
    rows = {0: "# # # O O l #", 1: "K . . . @1 . #", 3: "* @0=t . . . . #"}
    state = alone(read(rows), M.LEFT)[0].state
    state = replace(state, cook=jnp.array([cell_of(1, 5), cell_of(1, 4)], jnp.int32))
    first = alone(state, M.UP)[0].state
    assert first.place[Thing.TOMATO] == Place.HAND
    second = alone(replace(first, place=first.place.at[Thing.TOMATO].set(Place.BOARD_1)), M.UP)
    assert second[0].state.place[Thing.LETTUCE] == Place.HAND


def test_the_reference_never_finds_what_lies_below():
    env = Overcooked(map="A", dynamics="reference")
    state = env.reset(KEY)
    home = state.cell[Thing.TOMATO]
    state = replace(
        state,
        cook=jnp.array([cell_of(3, 1), cell_of(1, 4)], jnp.int32),
        place=state.place.at[Thing.TOMATO].set(Place.HAND),
        cell=state.cell.at[Thing.LETTUCE].set(home),
    )
    after = run(state, (SaladMacro.DELIVER, SaladMacro.STAY), env=env)[0]
    assert round(float(after.reward[0]), 4) == -5.1
    assert after.state.place[Thing.TOMATO] == Place.COUNTER
    assert after.state.place[Thing.LETTUCE] == Place.LOST


def test_shaping_rewards_pay_once_each_and_are_off_by_default():
    state = read(NO_FOOD | {1: "K . . @0=bowl . @1 #"})
    assert rewards(alone(state, M.UP)) == [-0.1]
    shaped = replace(D, bridges=10.0)
    assert rewards(alone(state, M.UP, env=shaped)) == [9.9]
    again = replace(state, paid=state.paid.at[Event.BOWL_IN_OVEN].set(True))
    assert rewards(alone(again, M.UP, env=shaped)) == [-0.1]


# Macros


def test_get_walks_takes_and_ends():
    ticks = run(read(), (M.STAY, M.GET_TOMATO), (M.STAY, None))
    expect(ticks[1].state, {0: "# # # O O # #", 1: "K . @0 . . @1=t l"})
    assert [bool(t.ended[1]) for t in ticks] == [False, True]


@pytest.mark.parametrize("macro", [M.GET_TOMATO, M.GET_PLATE_1, M.GET_BOWL, M.GET_PATTY])
def test_get_ends_at_once_with_other_things_in_hand(macro):
    ticks = alone(read({1: "K . @0=p . @1 . l", 2: "K . . . . . #"}), macro)
    expect(ticks[0].state, {1: "K . @0=p . @1 . l", 2: "K . . . . . #"})
    assert ticks[0].ended[0]


def test_get_ends_when_the_thing_is_seen_in_a_hand():
    state = read({0: "# # # O O # #", 1: "K . @0 . @1=t . l"})
    assert alone(state, M.GET_TOMATO)[0].ended[0]
    own = read({0: "# # # O O # #", 1: "K . @0=t . @1 . l"})
    assert alone(own, M.GET_TOMATO)[0].ended[0]


def test_get_goes_where_last_seen_then_to_the_start_then_ends():
    state = read({0: "# # # O O # #", 1: "K . @1 . . . l", 5: "# @0 . . . . 1", 6: "t # # B # 2 #"})
    state = replace(state, cell=state.cell.at[Thing.TOMATO].set(cell_of(3, 6)))
    remembered = jnp.int32(cell_of(4, 6))
    state = replace(state, last_seen=state.last_seen.at[0, Thing.TOMATO].set(remembered))
    state = replace(state, cell=state.cell.at[Thing.TOMATO].set(cell_of(6, 1)))
    state = replace(state, cook=state.cook.at[0].set(cell_of(1, 1)))
    # The tomato lies below on the left, where the cook does not see it on its way.
    ticks = until_end(state, M.GET_TOMATO)
    path = [divmod(int(t.state.cook[0]), 8) for t in ticks]
    last_seen = [int(t.state.last_seen[0, Thing.TOMATO]) for t in ticks]
    home = D.kitchen.homes[Thing.TOMATO]
    turned = last_seen.index(home)
    assert last_seen[:turned] == [int(remembered)] * turned and turned > 0
    assert path[turned][1] >= 3, "it walked towards where it remembered the tomato"
    assert int(ticks[-1].state.place[Thing.TOMATO]) == Place.COUNTER, "it found none"


@pytest.mark.parametrize("rows", [{6: "# # # B=Lp # 2 #"}, {6: "# # # B=bowl # 2 #"}])
def test_get_ends_when_the_food_is_in_the_blender(rows):
    full = NO_FOOD | {0: "# # # O O t #"} if "bowl" not in rows[6] else NO_FOOD
    state = read(full | {1: "K . @0 . @1 . #"} | rows)
    assert alone(state, M.GET_LETTUCE)[0].ended[0]
    assert alone(state, M.GET_PEAS)[0].ended[0]


def test_get_does_not_take_raw_food_from_a_board():
    state = read({0: "# # # O O # #", 1: "K=t . @0 . @1 . l"})
    ticks = until_end(state, M.GET_TOMATO)
    expect(ticks[-1].state, {0: "# # # O O # #", 1: "K=t @0 . . @1 . l"})


def test_get_takes_chopped_food_from_a_board():
    state = read({0: "# # # O O # #", 1: "K=T . @0 . @1 . l"})
    ticks = until_end(state, M.GET_TOMATO)
    expect(ticks[-1].state, {0: "# # # O O # #", 1: "K @0=T . . @1 . l"})
    assert len(ticks) == 2


@pytest.mark.parametrize(("macro", "board", "cell"), [(M.GO_BOARD_1, 1, 1), (M.GO_BOARD_2, 2, 2)])
def test_go_board_puts_what_is_in_hand(macro, board, cell):
    ticks = until_end(read({1: "K . @0=l . @1 . #"}), macro)
    rows = {1: "K @0 . . @1 . #"} if board == 1 else {1: "K . . . @1 . #", 2: "K=l @0 . . . . p"}
    expect(ticks[-1].state, rows | ({1: "K=l @0 . . @1 . #"} if board == 1 else {}))


@pytest.mark.parametrize(
    ("macro", "row", "column"),
    [
        (M.GO_BOARD_1, 1, 1),
        (M.GO_BOARD_2, 2, 1),
        (M.GO_BLENDER, 5, 3),
        (M.GO_OVEN_1, 1, 3),
        (M.DELIVER, 3, 1),
    ],
)
def test_go_with_empty_hands_ends_on_arrival(macro, row, column):
    start = read({1: "K . @0 . . @1 l"})
    ticks = until_end(start, macro)
    assert int(ticks[-1].state.cook[0]) == cell_of(row, column)
    assert len(ticks) == abs(row - 1) + abs(column - 2)
    again = alone(ticks[-1].state, macro)
    assert again[0].ended[0] and int(again[0].state.cook[0]) == cell_of(row, column)
    assert set(np.asarray(again[0].state.place[:5])) == {int(Place.COUNTER)}


def test_go_ends_where_a_cook_stands_in_the_way():
    state = read({1: "K @1 @0=l . . . #"})
    ticks = alone(state, M.GO_BOARD_1)
    expect(ticks[0].state, {1: "K @1 @0=l . . . #"})
    assert ticks[0].ended[0]


def test_the_lower_index_has_the_cell_and_the_other_macro_ends():
    state = read({1: "K . @0 . @1 . l"})
    ticks = run(state, (M.GO_OVEN_1, M.GO_OVEN_1))
    expect(ticks[0].state, {1: "K . . @0 @1 . l"})
    assert np.asarray(ticks[0].ended).tolist() == [True, True]


def test_go_board_ends_before_an_occupied_board():
    rows = {0: "# # # O O # #", 1: "K=t @0=l . . @1 . #"}
    ticks = alone(read(rows), M.GO_BOARD_1)
    expect(ticks[0].state, rows)
    assert ticks[0].ended[0]


def test_chop_runs_until_chopped():
    state = read({0: "# # # O O # #", 1: "K=t @0 . . @1 . l"})
    ticks = alone(state, M.CHOP, None, None)
    assert [bool(t.ended[0]) for t in ticks] == [False, False, True]
    expect(ticks[-1].state, {0: "# # # O O # #", 1: "K=T @0 . . @1 . l"})
    assert alone(ticks[-1].state, M.CHOP)[0].ended[0]
    expect(alone(ticks[-1].state, M.CHOP)[0].state, {0: "# # # O O # #", 1: "K=T @0 . . @1 . l"})


@pytest.mark.parametrize("macro", [M.CHOP, M.BLEND, M.COOK])
def test_work_ends_at_once_where_there_is_none(macro):
    ticks = alone(read(), macro)
    expect(ticks[0].state, {})
    assert ticks[0].ended[0]


def test_blend_and_cook_run_until_done():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . @0 . . 1", 6: "# # # B=TLp/2 # 2 #"}
    ticks = until_end(read(rows), M.BLEND)
    assert len(ticks) == 3 and happened(ticks) == ["blended"]
    rows = NO_FOOD | {0: "# # # O O=bowl/7 # #", 1: "K . . . @0 @1 #"}
    ticks = until_end(read(rows), M.COOK)
    assert len(ticks) == 3 and happened(ticks) == ["cooked"]


def test_get_bowl_fetches_it_and_ends_at_once_when_none_is_known():
    rows = NO_FOOD | {1: "K . @0 . @1 . #", 6: "# # # B=bowl # 2 #"}
    ticks = until_end(read(rows), M.GET_BOWL)
    expect(ticks[-1].state, NO_FOOD | {1: "K . . . @1 . #", 5: "# . . @0=bowl . . 1"})
    assert len(ticks) == 6
    unknown = read(rows)
    unknown = replace(unknown, last_seen=unknown.last_seen.at[:, Thing.DISH].set(NOWHERE))
    assert alone(unknown, M.GET_BOWL)[0].ended[0]
    assert alone(read(), M.GET_BOWL)[0].ended[0]
    in_oven = read(NO_FOOD | {0: "# # # O=bowl/4 O # #"})
    assert alone(in_oven, M.GET_BOWL)[0].ended[0]


def test_get_patty_knows_only_what_it_saw():
    rows = NO_FOOD | {0: "# # # O=patty O # #", 1: "K . @0 . @1 . #"}
    ticks = until_end(read(rows), M.GET_PATTY)
    expect(ticks[-1].state, NO_FOOD | {1: "K . . @0=patty @1 . #"})
    far = read(NO_FOOD | {0: "# # # O=patty O # #", 1: "K . . . @1 . #", 5: "# @0 . . . . 1"})
    far = replace(far, last_seen_patty=jnp.array([False, True]))
    assert alone(far, M.GET_PATTY)[0].ended[0]


def test_get_patty_with_a_plate_in_hand_plates_it():
    rows = NO_FOOD | {0: "# # # O=patty O # #", 1: "K . @0=1 . @1 . #", 5: "# . . . . . #"}
    ticks = until_end(read(rows), M.GET_PATTY)
    expect(ticks[-1].state, rows | {0: "# # # O O # #", 1: "K . . @0=1+patty @1 . #"})


def test_get_plate_with_a_patty_in_hand_plates_it_and_takes_the_plate():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . . @0=patty . 1"}
    ticks = until_end(read(rows), M.GET_PLATE_1)
    expect(ticks[1].state, rows | {5: "# . . . . @0 1+patty"})
    expect(ticks[2].state, rows | {5: "# . . . . @0=1+patty #"})
    assert len(ticks) == 3


def test_get_plate_takes_a_laden_plate():
    rows = NO_FOOD | {1: "K . . . @1 . #", 5: "# . . . . @0 #", 6: "# # # B # 2+patty #"}
    rows[5] = "# . . . . @0 1"
    ticks = until_end(read(rows), M.GET_PLATE_2)
    expect(ticks[-1].state, rows | {5: "# . . . . @0=2+patty 1", 6: "# # # B # # #"})


def test_deliver_brings_it_home():
    rows = NO_FOOD | {1: "K . . @0=1+patty @1 . #", 5: "# . . . . . #"}
    ticks = until_end(read(rows), M.DELIVER)
    assert len(ticks) == 5 and bool(ticks[-1].terminal)


def test_stay_and_moves_end_in_their_tick():
    for macro in (M.STAY, M.RIGHT, M.DOWN, M.LEFT, M.UP):
        assert alone(read(), macro)[0].ended[0]


def test_the_whole_dish_by_macros():
    """One cook alone uses every station in turn, with macros only."""
    state, reward, time = read({1: "K . @0 . . . l", 5: "# @1 . . . . 1"}), [], 0
    steps = [M.GET_TOMATO, M.GO_BOARD_1, M.CHOP, M.GET_LETTUCE, M.GO_BOARD_2, M.CHOP, M.GET_TOMATO]
    steps += [M.GO_BLENDER, M.GET_LETTUCE, M.GO_BLENDER, M.GET_PEAS, M.GO_BLENDER, M.BLEND]
    steps += [M.GET_BOWL, M.GO_OVEN_2, M.COOK, M.GET_PATTY, M.GET_PLATE_2, M.DELIVER]
    for macro in steps:
        for done in until_end(state, macro):
            reward += rewards([done])
            state, time = done.state, time + 1
    assert bool(done.terminal)
    assert round(sum(reward) + 0.1 * time, 3) == 240.0


# Compliance, preconditions, observations


def test_a_laden_plate_is_not_free():
    assert np.asarray(D.check(read())).tolist() == [True, True]
    laden = read(NO_FOOD | {1: "K . @0 . @1 . #", 5: "# . . . . . 1+patty"})
    assert np.asarray(D.check(laden)).tolist() == [False, True]


def test_a_macro_counts_as_itself():
    state = read({1: "K @0=l . . @1 . #"})
    assert alone(state, M.GO_BOARD_1)[0].effective_macro[0] == M.GO_BOARD_1
    assert alone(read(), M.LEFT)[0].effective_macro[0] == M.LEFT


def observation(state: State, env: Overcooked = D) -> list[dict[str, list[float]]]:
    """Return the observations split into named parts."""
    sizes = {"foods": 9, "plates": 4, "boards": 4, "delivery": 2, "cooks": 6}
    if env.kitchen.patty:
        sizes |= {"blender": 7, "ovens": 10, "dish": 4}
    sizes |= {"hands": 7 if env.kitchen.patty else 5, "task": 10}
    rows = np.asarray(env.observe(state))
    assert rows.shape[1] == sum(sizes.values())
    ends = np.cumsum(list(sizes.values()))[:-1]
    parts = [np.split(row, ends) for row in rows]
    return [dict(zip(sizes, map(np.ndarray.tolist, part), strict=True)) for part in parts]


def near(values, sevenths):
    np.testing.assert_allclose(np.array(values) * 7, sevenths, atol=1e-5)


def test_observations_show_the_window_and_nothing_else():
    first, second = observation(D.reset(KEY))
    near(first["foods"], [0] * 9)
    near(first["boards"], [1, 0, 2, 0])
    near(first["delivery"], [3, 0])
    near(first["cooks"], [1, 2, 1, 4, 0, 0])
    near(first["ovens"], [0, 3, 0, 0, 0, 0, 4, 0, 0, 0])
    near(second["foods"], [0, 5, 0, 1, 6, 0, 2, 6, 0])
    near(second["boards"], [0] * 4)
    near(second["ovens"], [0, 3, 0, 0, 0, 0, 4, 0, 0, 0])
    assert first["task"] == second["task"] == [0.0] * 9 + [1.0]
    assert first["hands"] == [0.0] * 7
    assert TASKS[9] == D.order


def test_observations_show_progress_and_hands():
    rows = {0: "# # # O O # #", 1: "K=t2 @0 . . @1 . #", 5: "# . . . . . #", 6: "# # # B=L # 2 #"}
    rows |= {5: "# . . @1=1 . . #", 1: "K=t2 @0 . . . . #"}
    first, second = observation(read(rows))
    np.testing.assert_allclose(first["foods"][:3], [1 / 7, 0, 2 / 3], atol=1e-6)
    np.testing.assert_allclose(second["blender"], [6 / 7, 3 / 7, 0, 1, 0, 0, 0], atol=1e-6)
    assert second["hands"] == [0, 0, 0, 1, 0, 0, 0]
    rows = NO_FOOD | {1: "K . . . . . #", 5: "# . . @0 . @1 1", 6: "# # # B=TLp/3 # 2 #"}
    first, _ = observation(read(rows))
    np.testing.assert_allclose(first["blender"][2:], [1, 1, 1, 0.6, 0], atol=1e-6)
    rows = NO_FOOD | {0: "# # # O O=bowl/4 # #", 1: "K . . @0 . @1 #"}
    first, _ = observation(read(rows))
    np.testing.assert_allclose(first["ovens"][5:], [0, 4 / 7, 1, 0.4, 0], atol=1e-6)
    np.testing.assert_allclose(first["dish"], [0, 4 / 7, 1, 0], atol=1e-6)
    near(first["foods"], [0] * 9)
    first, _ = observation(read(NO_FOOD | {1: "K . . @0=patty . @1 #"}))
    assert first["hands"] == [0, 0, 0, 0, 0, 0, 1] and first["dish"][2:] == [0, 1]


def test_a_third_cook_fills_its_slot():
    state = THREE.reset(KEY)
    assert THREE.observe(state).shape == D.observe(D.reset(KEY)).shape
    state = replace(state, cook=state.cook.at[2].set(cell_of(3, 2)))
    near(observation(state, THREE)[0]["cooks"], [1, 2, 1, 4, 3, 2])


# The scripted third cook

CHOPS_IT, DELIVERS_IT = 1, 2


def third(state: State, effect: int, ticks: int) -> list[Tick]:
    return run(state, *[(M.STAY, M.STAY)] * ticks, env=THREE, effect=effect)


def test_the_third_cook_stands_still_without_an_instruction():
    ticks = third(THREE.reset(KEY), 0, 5)
    assert int(ticks[-1].state.cook[2]) == cell_of(5, 2)


def test_the_third_cook_chops_everything():
    ticks = third(THREE.reset(KEY), CHOPS_IT, 60)
    assert sorted(happened(ticks)) == ["lettuce-chopped", "tomato-chopped"]
    on_boards = {int(place) for place in ticks[-1].state.place[:2]}
    assert on_boards == {Place.BOARD_1, Place.BOARD_2}
    assert sum(rewards(ticks)) > 0, "the team is paid"


def test_the_third_cook_delivers():
    rows = NO_FOOD | {5: "# . @2 . . . 1+patty"}
    ticks = third(read(rows, THREE), DELIVERS_IT, 12)
    assert happened(ticks) == ["solved"]


def test_the_third_cook_delivers_what_it_carries_after_the_instruction_has_ended():
    rows = NO_FOOD | {5: "# . @2=1+patty . . . #"}
    assert happened(third(read(rows, THREE), 0, 5)) == ["solved"]


# Salads under the paper's dynamics


SALAD = Overcooked(map="C", task="tomato salad")
S = SaladPassMacro


def by_one(state: State, *macros: int) -> tuple[State, list[Tick]]:
    """Let cook 1 run macros one after the other while cook 0 stays."""
    ticks = []
    for macro in macros:
        for _ in range(20):
            ticks += run(state, (S.STAY, macro), env=SALAD)
            state = ticks[-1].state
            if ticks[-1].ended[1]:
                break
    return state, ticks


def test_salads_pay_chops_once_and_plates_take_chopped_food():
    todo = [S.GET_TOMATO, S.GO_BOARD_2, S.CHOP, S.GET_TOMATO, S.GET_PLATE_1, S.DELIVER]
    _, ticks = by_one(SALAD.reset(KEY), *todo)
    assert bool(ticks[-1].terminal)
    assert [r for r in rewards(ticks) if r != -0.1] == [9.9, 199.9]


def test_go_counter_puts_the_thing_on_the_first_free_counter_inside():
    state, _ = by_one(SALAD.reset(KEY), S.GET_LETTUCE, S.GO_COUNTER)
    assert int(state.cell[Thing.LETTUCE]) == cell_of(3, 3)
    assert state.place[Thing.LETTUCE] == Place.COUNTER
    state, _ = by_one(state, S.GET_TOMATO, S.GO_COUNTER)
    assert int(state.cell[Thing.TOMATO]) == cell_of(2, 3)


# Paths


def test_shortest_paths_are_shortest():
    """Compare with breadth-first search, with random obstacles and cooks."""
    kitchen = Kitchen.load("C")
    rng = np.random.default_rng(1)
    number = 3000
    cooks = rng.choice(kitchen.floor, (number, 2)).astype(np.int32)
    targets = rng.choice([c for c in range(CELLS) if c % 8 < SIZE and c < 56], number).astype(
        np.int32
    )
    obstacles = rng.choice([*kitchen.floor, NOWHERE, NOWHERE], (number, 4)).astype(np.int32)
    fast = jax.jit(jax.vmap(lambda c, t, g, p: pathfinding.shortest_step(kitchen, c, t, g, p)))
    got = np.asarray(fast(cooks[:, 0], targets, obstacles, cooks))

    def distance(start, target, passable):
        seen, layer, steps = {start}, [start], 0
        while layer:
            if target in layer:
                return steps
            ring = [c + int(d) for c in layer for d in STEPS[:4]]
            layer = [
                c for c in dict.fromkeys(ring) if c not in seen and (c in passable or c == target)
            ]
            seen |= set(layer)
            steps += 1
        return None

    for cook, target, blocked, people, step in zip(
        cooks[:, 0], targets, obstacles, cooks, got, strict=True
    ):
        passable = set(kitchen.floor) - set(blocked.tolist()) | set(people.tolist())
        if cook == target:
            continue
        best = distance(int(cook), int(target), passable)
        ways = []
        for primitive in range(4):
            near = int(cook) + int(STEPS[primitive])
            if near == target or near in passable:
                left = distance(near, int(target), passable)
                if best is not None and left == best - 1:
                    ways.append((near in people.tolist() and near != target, primitive))
        assert step == (min(ways)[1] if ways else Primitive.STAY)


def test_the_heap_orders_nodes_like_heapq():
    """Compare pushes and pops with `heapq`, whose comparison calls equal keys less."""

    class Node:
        def __init__(self, key, name):
            self.key, self.name = key, name

        def __lt__(self, other):
            return self.key <= other.key

    push = jax.jit(lambda heap, size, node: pathfinding._push(heap, size, node, jnp.asarray(True)))
    pop = jax.jit(pathfinding._pop)
    rng = np.random.default_rng(2)
    for _ in range(20):
        heap, size, real = jnp.zeros((pathfinding.HEAP, 4), jnp.int32), jnp.int32(0), []
        for name in range(25):
            key = int(rng.integers(0, 5))
            heapq.heappush(real, Node(key, name))
            heap, size = push(heap, size, jnp.array([key, name, 0, 0], jnp.int32))
            if real and rng.random() < 0.4:
                node, heap, size = pop(heap, size)
                assert int(node[1]) == heapq.heappop(real).name


# Maps


MAP_D = "###OOT#\nK.a.b.L\nK.....P\n*.....#\n#.....#\n#.c...1\n###B#2#\n"


def broken(row: int, column: int, letter: str) -> str:
    rows = [list(line) for line in MAP_D.splitlines()]
    rows[row][column] = letter
    return "\n".join("".join(line) for line in rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (broken(2, 3, "?"), "row 2, column 3: unknown letter '\\?'"),
        (broken(4, 0, "."), "row 4, column 0: floor on the border"),
        (broken(0, 0, "T"), "row 0, column 5: tomato 'T': too many"),
        (broken(2, 6, "#"), "peas 'P': 0; needs 1"),
        (broken(0, 0, "N"), "row 0, column 0: onion 'N': not in a kitchen with peas"),
        (broken(0, 5, "#").replace("#####", "T####", 1), "tomato"),
        (MAP_D + "#######", "8 rows"),
        (MAP_D.replace("K.a.b.L", "K.a.b.L#"), "row 1: 8 columns"),
        (
            "T##OO##\nK.a.b.L\nK.....P\n*.....#\n#.....#\n#.c...1\n###B#2#",
            "row 0, column 0: no cook",
        ),
        ("###OOT#\nK.a.b.L\nK..T..P\n*.....#\n#.....#\n#.c...1\n###B#2#", "too many"),
        ("###OOT#\nKa###bL\nK#####P\n*#####1\n#.....2\n#.c...#\n###B###", "no c"),
    ],
)
def test_bad_maps_are_refused_with_row_and_column(text, message):
    with pytest.raises(_MapError, match=message):
        Kitchen.parse(text, "mine")


def test_a_map_of_your_own(tmp_path):
    path = tmp_path / "mirror.txt"
    path.write_text("\n".join(line[::-1] for line in MAP_D.splitlines()), encoding="utf-8")
    env = make("overcooked", map=str(path))
    assert env.kitchen.delivery == cell_of(3, 6)
    with pytest.raises(_MapError, match="no such map; shipped: A, B, C, D"):
        Overcooked(map="E")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamics": "papre"}, "did you mean 'paper'"),
        ({"task": "tomato salad"}, "map D: task 'tomato salad'"),
        ({"dynamics": "reference"}, "dynamics 'reference' has no blender"),
        ({"cooks": 3, "third_cook": True}, "allowed are two cooks, two cooks and a scripted third"),
        ({"map": "A", "dynamics": "reference", "third_cook": True}, "no scripted third cook"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Overcooked(**options)


# The protocol, the picture, the best plan


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"third_cook": True}, marks=pytest.mark.slow),
        pytest.param({"map": "B", "cooks": 3}, marks=pytest.mark.slow),
        pytest.param({"map": "A", "dynamics": "reference"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_conforms_to_the_protocol(options):
    check_env(make("overcooked", **options), ticks=100)


def test_the_picture_shows_everything():
    rows = NO_FOOD | {0: "# # # O O=bowl/4 # #", 1: "K . . @0=1 @1 . #", 5: "# . . . . . #"}
    drawn = painting.text(D.scene(read(rows), jnp.array([M.GET_PLATE_1, M.COOK])))
    for word in ("K1", "K2", "mix", "O1", "O2", "blue cook: get plate 1", "right oven: 4 of 10"):
        assert word in drawn
    assert "robot B holds plate 1" in drawn
    assert "station O2 holds bowl" in drawn


def test_one_tick_moves_do_what_every_macro_does():
    """So a search over one-tick moves covers all macros."""
    state = D.reset(KEY)
    for macro in itertools.chain(PattyMacro):
        done, primitive = D.advance(state, jnp.array([macro, M.STAY]), jnp.zeros(2, jnp.int32))
        move = {0: M.RIGHT, 1: M.DOWN, 2: M.LEFT, 3: M.UP, 4: M.STAY}[int(primitive[0])]
        same = D.advance(state, jnp.array([move, M.STAY]), jnp.zeros(2, jnp.int32))[0]
        for a, b in zip(jax.tree.leaves(done.state), jax.tree.leaves(same.state), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_best_plan_earns_the_optimum_and_the_bound_is_optimistic():
    reward, over, _, states = search_overcooked.play(D, search_overcooked.moves(plans.BEST_PLAN))
    assert over.argmax() == len(over) - 1 and over.sum() == 1
    assert search_overcooked.discounted(reward) == pytest.approx(plans.OPTIMAL_RETURN, abs=1e-3)
    undiscounted = 200 + 4 * 10 - 0.1 * len(reward)
    assert reward.sum() == pytest.approx(undiscounted, abs=1e-3)

    earned = np.cumsum(reward * plans.GAMMA ** np.arange(len(reward)))[:-1]
    states = jax.tree.map(lambda leaf: leaf[:-1], states)
    bound = jax.jit(
        jax.vmap(lambda s, t, e: search_overcooked.bound(D.kitchen, plans.GAMMA, s, t, e)[0])
    )
    bounds = np.asarray(bound(states, np.arange(1.0, len(reward)), earned))
    assert (bounds >= plans.OPTIMAL_RETURN - 1e-3).all(), "a bound is below the return"
    assert bounds[0] < plans.OPTIMAL_RETURN + 10, "the bound is not vacuous"


@pytest.mark.parametrize("kind", plans.FORBIDDEN)
def test_the_obedient_plans_obey_and_earn_their_returns(kind):
    """Each is played with as many ticks as the longest, so that one program serves all."""
    moves = search_overcooked.moves(plans.OBEDIENT_PLANS[kind])
    rest = np.full((58 - len(moves), 2), M.STAY)
    done = search_overcooked.play(D, np.concatenate([moves, rest]))
    assert done.over.argmax() == len(moves) - 1
    earned = search_overcooked.discounted(done.reward[: len(moves)])
    assert earned == pytest.approx(plans.OBEDIENT_RETURNS[kind], abs=1e-3)
    assert earned <= plans.OPTIMAL_RETURN + 1e-3
    assert not np.isin(done.work, plans.FORBIDDEN[kind]).any()
    assert plans.best_return(D, plans.GAMMA, kind) == plans.OBEDIENT_RETURNS[kind]


@pytest.mark.parametrize(("pair", "plan"), plans.OBEDIENT_PAIRS.items())
def test_the_plan_of_one_kind_that_obeys_both_is_best_for_the_pair(pair, plan):
    moves = search_overcooked.moves(plans.OBEDIENT_PLANS[plan])
    done = search_overcooked.play(D, np.concatenate([moves, np.full((58 - len(moves), 2), M.STAY)]))
    kinds = pair.split("+")
    assert not any(np.isin(done.work, plans.FORBIDDEN[kind]).any() for kind in kinds)
    earned = search_overcooked.discounted(done.reward[: len(moves)])
    assert earned == pytest.approx(min(plans.OBEDIENT_RETURNS[kind] for kind in kinds), abs=1e-3)
    assert plans.best_return(D, plans.GAMMA, pair) == plans.OBEDIENT_RETURNS[plan]


def test_what_a_plan_may_not_use_counts_as_gone_in_the_bound():
    """Without the left oven the way is longer, so the bound of the first state is lower."""
    start, zero = D.reset(KEY), jnp.zeros(())

    def bound(kind=None):
        forbidden = plans.FORBIDDEN.get(kind, ())
        return float(
            search_overcooked.bound(D.kitchen, plans.GAMMA, start, zero, zero, forbidden)[0]
        )

    assert bound("avoid-left-oven") < bound() - 1
    for kind, best in plans.OBEDIENT_RETURNS.items():
        assert bound(kind) >= best


@pytest.mark.slow
def test_the_search_proves_the_optimum():
    """The beam drops no state that could beat the plan. This takes minutes on two cores."""
    found = search_overcooked.search(D, width=100_000, horizon=70)
    assert found.value == pytest.approx(plans.OPTIMAL_RETURN, abs=1e-3)
    assert found.dropped < plans.OPTIMAL_RETURN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "width"), [("avoid-right-board", 20_000), ("avoid-left-oven", 40_000)]
)
def test_the_search_proves_the_obedient_plans(kind, width):
    """The other kinds need no search: their plans earn the optimum of the uninstructed task."""
    found = search_overcooked.search(D, width=width, horizon=70, forbidden=plans.FORBIDDEN[kind])
    assert found.value == pytest.approx(plans.OBEDIENT_RETURNS[kind], abs=1e-3)
    assert found.dropped < plans.OBEDIENT_RETURNS[kind]

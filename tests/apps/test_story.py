"""The first minute and the captions of recorded episodes say what the frames show, and nothing else."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest
from test_replay import Page, unpacked

from mavic.apps.playground import export, seen, story
from mavic.apps.playground.catalog import open_catalog
from mavic.apps.recording import Recording
from mavic.envs import api

LEFT, RIGHT = "left board", "right board"
THINGS = api.known("overcooked").macro_things


def sprite(shape: str, name: str, picture: str, holds: str = "") -> dict:
    return dict(
        shape=shape, x=0, y=0, width=1, height=1, label="", colour="grey", heading="",
        name=name, picture=picture, holds=holds, carries="",
    )  # fmt: skip


def frame(time: int, doing: str, holds: str = "", used: str = "", told: bool = False, **more):
    """The blue cook does something; `used` is the board that has something on it."""
    boards = [sprite("station", b, "board", "tomato" if b == used else "") for b in (LEFT, RIGHT)]
    agent = dict(
        name="cook_0", macro=doing, decided=True, holds=holds,
        complies=(THINGS.get(doing) != LEFT) if told else None,
    )  # fmt: skip
    asked = dict(number=1, text="", kind="avoid-left-board", agents=[0], left=None, held=0)
    made = dict(
        time=time, agents=[agent], events=[], verdicts=[], refused=[], values={"none": 1.0},
        scene=dict(
            width=7, height=7, notes=[], steps=[dict(name="chop", done=0, of=3)],
            sprites=[*boards, sprite("robot", "blue cook", "cook", holds)],
        ),
        instruction={**asked, "forbids": [LEFT], "wants": []} if told else None,
        reward=-1.0, earned=-float(time), judged=0, followed=0, over="",
    )  # fmt: skip
    return {**made, **more}


def episode(*frames: dict, name: str = "with the correction") -> Recording:
    facts = dict(name=name, world="overcooked", agents=("cook_0",), kinds=("none",))
    return Recording(frames=frames, **facts)


WALK = [frame(t, "GO_BOARD_2", "tomato") for t in range(3)]
FREE = episode(*WALK, frame(3, "CHOP", used=LEFT), frame(4, "STAY", over="solved"))
TOLD = episode(
    WALK[0],
    *(frame(t, "GO_BOARD_1", "tomato", told=True) for t in (1, 2, 3)),
    frame(4, "CHOP", used=RIGHT, told=True),
    frame(5, "STAY", over="solved"),
)
IDLE = episode(
    WALK[0],
    *(frame(t, "STAY", "tomato", told=True) for t in range(1, 20)),
    frame(20, "STAY", over="time is up"),
)
DISOBEYING = episode(
    WALK[0],
    *(frame(t, "GO_BOARD_2", "tomato", told=True) for t in (1, 2)),
    frame(3, "CHOP", used=LEFT, told=True),
    frame(4, "STAY", over="solved"),
)


def test_what_an_episode_shows():
    told = seen.see(TOLD)
    assert (told.ticks, told.finished, told.obeyed) == (5, True, True)
    assert (told.forbidden, told.misused, told.instead) == ((LEFT,), (), (RIGHT,))
    wrong = seen.see(DISOBEYING)
    assert (wrong.obeyed, wrong.disobeyed, wrong.told) == (False, 2, 3)
    assert (wrong.misused, wrong.instead) == ((LEFT,), ())
    free = seen.see(FREE)
    assert (free.told, free.obeyed, free.forbidden) == (0, False, ())


def test_captions_say_it():
    told, idle, wrong = map(seen.see, (TOLD, IDLE, DISOBEYING))
    assert seen.caption(told) == "obeys, uses the right board instead, finishes after 5 moves"
    assert seen.caption(idle) == "obeys, has not finished when the time is up, after 20 moves"
    assert "does not obey in 2 of the 3 moves" in seen.caption(wrong)
    names = ("with", "without")
    assert seen.contrast(names, (told, told)) == "The two teams do alike here."
    assert "only the team with finishes" in seen.contrast(names, (told, idle))
    assert "only the team without obeys" in seen.contrast(names, (wrong, idle))
    slower = dataclasses.replace(told, ticks=9)
    assert "the team with is 4 moves faster" in seen.contrast(names, (told, slower))


def test_the_moment_is_in_the_middle_of_a_way():
    assert seen.on_the_way(FREE.frames, LEFT, THINGS, loaded=True) == (0, 1)
    assert seen.on_the_way(FREE.frames, RIGHT, THINGS) is None
    empty = [frame(t, "GO_BOARD_2") for t in range(4)]
    assert seen.on_the_way(empty, LEFT, THINGS, loaded=True) is None
    assert seen.on_the_way(empty, LEFT, THINGS) == (0, 1)


def test_expecting_less_than_one_earns_is_seen():
    """Three ticks that pay 1, 1, 1 at gamma .5 are worth 1.75, 1.5, 1."""
    values = [{"none": 0.0}] * 3
    assert seen.expectation(values, [1.0] * 3, 0.5) == (0.0, round(4.25 / 3, 2))
    assert seen.expectation([None] * 3, [1.0] * 3, 0.5) is None


def test_the_first_chapter_says_what_happened():
    made = story.obeying_chapter(TOLD, FREE, LEFT, 0, 1)
    assert made is not None
    assert made.asking == "The blue cook is carrying a tomato to the left board. Now a person says:"
    assert made.lines == (
        (1, "The blue cook turns to the right board."),
        (4, "The blue cook uses the right board. The work goes on."),
    )
    assert made.ending.endswith("nobody used the left board. The detour cost 1 move.")
    assert made.race == (("not told", 4, True), ("told", 5, True))
    assert [right for _, right in made.choices] == [True, False, False]


@pytest.mark.parametrize("told", [DISOBEYING, IDLE], ids=["disobeys", "does not finish"])
def test_an_episode_that_does_not_show_it_is_no_first_chapter(told):
    assert story.obeying_chapter(told, FREE, LEFT, 0, 1) is None


def test_the_second_chapter_is_told_of_a_team_that_obeys_and_does_nothing():
    made = story.failing_chapter(IDLE, IDLE, LEFT, 0, 1)
    assert made is not None and made.ending == "It obeys. It never does the job, told or not told."
    assert "left undone: chop. Not told anything, this team does not do the job" in made.detail
    assert made.note.startswith("The correction keeps what a team learns")
    beside = story.failing_chapter(IDLE, IDLE, LEFT, 0, 1, (seen.see(FREE), seen.see(IDLE)))
    assert beside is not None and beside.detail.startswith(f"{made.detail} Another team, trained")
    assert (
        "told nothing, it does the job in 4 moves; told the sentence, it does not" in beside.detail
    )
    assert [(who, done) for who, _, done in beside.race] == [
        ("not told", False),
        ("told", False),
        ("corrected, not told", True),
        ("corrected, told", False),
    ]
    assert "does the job in 4 moves" in story.failing_chapter(IDLE, FREE, LEFT, None, 1).detail
    assert story.failing_chapter(TOLD, FREE, LEFT, 0, 1) is None  # it does its job
    assert story.failing_chapter(DISOBEYING, FREE, LEFT, 0, 1) is None
    slips = list(IDLE.frames)
    slips[5] = frame(5, "GO_BOARD_2", told=True)
    once = story.failing_chapter(episode(*slips), FREE, LEFT, 0, 1)
    assert once.ending == "It obeys in 18 of 19 moves. It never does the job."


def test_a_missing_team_is_left_out():
    catalog = open_catalog()
    shipped = catalog.teams["overcooked"]
    catalog.teams["overcooked"] = {"mavic": shipped["mavic"]}
    assert story.can_be_told(catalog)
    assert story._failing(catalog, 1, "don't use the left board", LEFT, 5) is None
    catalog.teams["overcooked"] = {"mine": shipped["naive"]}
    assert not story.can_be_told(catalog)


# What pages claim, checked on the frames that they hold.


def obeys(frames: list[dict]) -> tuple[int, int]:
    """In how many ticks the team was told something, and in how many it did not comply."""
    told = [one for one in frames if one["instruction"]]
    return len(told), sum(any(a["complies"] is False for a in one["agents"]) for one in told)


def filled(frames: list[dict], thing: str) -> bool:
    """Whether something was put into or onto a thing, or it was taken, while the team was told something."""

    def full(one: dict) -> bool:
        sprites = one["scene"]["sprites"]
        return any(
            (s["name"] == thing and s["shape"] == "station" and s["holds"])
            or (s["shape"] == "robot" and thing in s["holds"])
            for s in sprites
        )

    pairs = itertools.pairwise(frames)
    return any(full(b) and not full(a) for a, b in pairs if a["instruction"])


def check_claims(note: str, recordings: list[dict]) -> None:
    """Fail unless the frames show what a caption says."""
    for recording, claim in zip(
        recordings, re.findall(r"The team [^.]*?: ([^.]*)\.", note), strict=False
    ):
        frames = unpacked(recording)
        told, broken = obeys(frames)
        if claim.startswith("obeys"):
            assert told and not broken
        else:
            wrong, of = map(int, re.match(r"does not obey in (\d+) of the (\d+)", claim).groups())
            assert (wrong, of) == (broken, told) and wrong > 0
        for thing in re.findall(r"uses (?:the )?([\w ]+?) instead", claim):
            forbidden = {t for f in frames if f["instruction"] for t in f["instruction"]["forbids"]}
            assert filled(frames, thing) and not any(filled(frames, t) for t in forbidden)
        end, moves = frames[-1], int(re.findall(r"after (\d+) moves", claim)[0])
        assert end["time"] == moves
        assert (end["over"] == "solved") == ("finishes after" in claim)
        if "when the time is up" in claim:
            assert end["over"] == "time is up"
            assert all(f["reward"] < 100 for f in frames)  # no dish was delivered


@pytest.mark.long
@pytest.mark.parametrize("world", ["box_pushing", "overcooked", "warehouse"])
def test_every_exported_page_shows_what_it_says(tmp_path, world):
    catalog = open_catalog()
    catalog.teams = {world: catalog.teams[world]}
    catalog.opening = world
    first = export.export(catalog, tmp_path, lambda _: None)
    pages = sorted(path for path in tmp_path.glob("*.html") if path != first)
    assert len(pages) == len(api.known(world).examples)
    for path in pages:
        text = path.read_text(encoding="utf-8")
        note = re.search(r'<p class="note">(.*?)</p>', text)[1].replace("&#x27;", "'")
        recordings = Page(text).data["recordings"]
        assert len(recordings) == 2 and note.count("The team ") >= 2
        assert ("do alike" in note) != ("They differ" in note)
        check_claims(note, recordings)
        assert note in first.read_text(encoding="utf-8").replace("&#x27;", "'")
    if world == "overcooked":
        check_story(Page(first.read_text(encoding="utf-8")).data)


def check_story(data: dict) -> None:
    """The cook is on its way when it is told; then the other board is used and the forbidden one never is."""
    one, *others = data["chapters"]
    frames, at = unpacked(one["recording"]), one["at"]
    assert frames[at]["instruction"]["text"] == data["words"] == "don't use the left board"
    walking = frames[at - 1]["agents"]
    assert any(a["macro"] == "GO_BOARD_2" and a["holds"] for a in walking)
    assert obeys(frames)[1] == 0
    assert filled(frames, RIGHT) and not filled(frames, LEFT)
    assert frames[-1]["over"] == "solved" and one["race"][1] == ["told", frames[-1]["time"], True]
    for other in others:
        frames = unpacked(other["recording"])
        told, broken = obeys(frames)
        assert broken <= story.SLIPS * told and not filled(frames, LEFT)
        assert frames[-1]["over"] == "time is up" and frames[-1]["earned"] < 100

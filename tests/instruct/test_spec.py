"""Every bad instruction file is refused with file, key and what is allowed; the built-in ones become rules."""

from __future__ import annotations

import numpy as np
import pytest
from corridor import Corridor

from mavic.envs import api
from mavic.instruct import reward
from mavic.instruct.spec import InstructionFile, InstructionFileError

GOOD = """
world = "corridor"

[kinds.walk]
rule = "replace"
allow = ["WALK"]
train = ["walk", "go on"]
"""


def rules(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return reward.rules_of(Corridor(), path)


def test_a_good_file_becomes_rules(tmp_path):
    made = rules(tmp_path, GOOD)
    assert made.names == ("none", "walk")
    assert made.allowed[1].tolist() == [[False, True, False, False, False]] * 2
    assert made.allowed[0].all() and made.addressed.tolist() == [[False] * 2, [True] * 2]
    assert made.replaces.tolist() == [False, True] and made.given.tolist() == [False, True]


def test_a_macro_only_one_agent_has_is_forbidden_to_that_one(tmp_path):
    made = rules(tmp_path, GOOD.replace('allow = ["WALK"]', 'forbid = ["RING"]'))
    assert made.allowed[1].tolist() == [[True, True, False, True, True], [True] * 5]


def test_the_rule_add_pays_what_the_paper_pays(tmp_path):
    prohibition = GOOD.replace('rule = "replace"', 'rule = "add"\npenalty = -250\nbonus = 1')
    both = GOOD.replace('"replace"', '"add"\npenalty = -250\npaper_penalty = -50\npaper_bonus = 10')
    path = tmp_path / "mine.toml"
    for text, rule, paid in [
        (prohibition, "add", (-250.0, 1.0)),  # the file names no figures of the paper
        (both, "by-kind", (-250.0, 0.0)),
        (both, "add", (-50.0, 10.0)),
    ]:
        path.write_text(text)
        made = reward.rules_of(Corridor(), path, rule=rule)
        assert (float(made.penalty[1]), float(made.bonus[1])) == paid


def test_a_table_by_agent_leaves_the_others_free(tmp_path):
    made = rules(tmp_path, GOOD.replace('["WALK"]', '{ right = ["WALK"] }'))
    assert made.allowed[1, 0].all()
    assert made.allowed[1, 1].tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"WALK"', '"WALKK"', r"kinds\.walk\.allow: 'WALKK' is unknown; did you mean 'WALK'\? .*RING"),
        ('["WALK"]', '{ lefty = ["WALK"] }', r"kinds\.walk\.allow: 'lefty' .*'left'\? .*right"),
        ('["WALK"]', '{ right = ["RING"] }', r"kinds\.walk\.allow\.right: 'RING' .*WAIT, WALK"),
        ('["WALK"]', "[]", r"kinds\.walk\.allow: must be a list of macro names that is not empty"),
        ('["WALK"]', "[3]", r"kinds\.walk\.allow: must be a list of macro names"),
        ('["WALK"]', '"WALK"', r"kinds\.walk\.allow: has the wrong type str"),
        ('allow = ["WALK"]\n', "", r"kinds\.walk: needs exactly one of allow and forbid"),
        ("allow", 'forbid = ["WAIT"]\nallow', r"kinds\.walk: needs exactly one of allow and forbid"),
        ("allow", 'twin = "wolk"\nallow', r"kinds\.walk\.twin: 'wolk' is unknown; did you mean 'walk'"),
        ("allow", 'agents = ["nobody"]\nallow', r"kinds\.walk\.agents: 'nobody' .*left, right"),
        ("allow", "agents = []\nallow", r"kinds\.walk\.agents: must be a list .* not empty"),
        ("allow", "agents = [3]\nallow", r"kinds\.walk\.agents: must be a list of agents' names"),
        ('["WALK"]', "{}", r"kinds\.walk\.allow: must be a list of macro names that is not empty"),
        ("allow", "pay = nan\nallow", r"kinds\.walk\.pay: must be a number from .*, not nan"),
        ("allow", "pay = 1e39\nallow", r"kinds\.walk\.pay: must be a number from .*, not 1e\+39"),
        ("allow", f"penalty = -{'9' * 400}\nallow", r"kinds\.walk\.penalty: must be .* so large"),
        ("allow", "resolved_by = { bell = true }\nallow", r"kinds\.walk\.resolved_by\.bell: must be 1"),
        ('"go on"', '"\u200b\u200d"', r"kinds\.walk\.train: every phrase must be .* letter or digit"),
        ("kinds.walk", "kinds.none", r"kinds\.none: a kind needs a name"),
        ("kinds.walk", 'kinds.""', r"kinds\.: a kind needs a name"),
        ('allow = ["WALK"]', 'forbid = ["WAIT", "WALK"]', r"kinds\.walk: it forbids every macro of right"),
        ("world =", f"deep = {'[' * 5000}\nworld =", r"not TOML that can be read: nested"),
        ("allow", "pay = true\nallow", r"kinds\.walk\.pay: has the wrong type bool"),
        ("allow", 'penalty = "-50"\nallow', r"kinds\.walk\.penalty: has the wrong type str"),
        ("allow", "penality = -5\nallow", r"kinds\.walk\.penality: unknown key; .*'penalty'"),
        ("allow", 'given_if = "opened"\nallow', r"kinds\.walk\.given_if: 'opened' .*'open'"),
        ("allow", 'effect = "eco"\nallow', r"kinds\.walk\.effect: 'eco' .*'echo'"),
        ("allow", "resolved_by = { bel = 1 }\nallow", r"kinds\.walk\.resolved_by: 'bel' .*'bell'"),
        ("allow", "resolved_by = { bell = 2 }\nallow", r"kinds\.walk\.resolved_by\.bell: must be 1"),
        ('"replace"', '"replaces"', r"kinds\.walk\.rule: 'replaces' is unknown; .*'replace'"),
        ('rule = "replace"\n', "", r"kinds\.walk\.rule: .*allowed: add, replace"),
        ('["walk", "go on"]', "[]", r"kinds\.walk\.train: the kind is empty"),
        ('["walk", "go on"]', '["walk", " "]', r"kinds\.walk\.train: every phrase must be a text"),
        ('["walk", "go on"]', '["walk", 3]', r"kinds\.walk\.train: every phrase must be a text"),
        ('"go on"', '"Walk"', r"kinds\.walk: the phrase 'Walk' stands twice"),
        ('"go on"]', '"go"]\nheld_out = ["go"]', r"kinds\.walk: the phrase 'go' stands twice"),
        ('world = "corridor"', "world = 3", r"world: missing; write world ="),
        ('world = "corridor"', 'world = "warehouse"', r"world: .*'warehouse'.*'corridor'"),
        ('world = "corridor"', 'word = "corridor"', r"word: unknown key; did you mean 'world'"),
        ("[kinds.walk]", "[kind.walk]", r"kind: unknown key; did you mean 'kinds'"),
        ("[kinds.walk]", "[kinds.walk", r"not TOML: .*line 4"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, old, new, complaint):
    assert old in GOOD
    with pytest.raises(InstructionFileError, match=r"mine\.toml: " + complaint):
        rules(tmp_path, GOOD.replace(old, new, 1))


def test_one_phrase_cannot_stand_in_two_kinds(tmp_path):
    twice = GOOD + GOOD.split("\n\n")[1].replace("walk]", "run]").replace('"walk"', '"  WALK "')
    with pytest.raises(
        InstructionFileError, match=r"kinds\.run: the phrase .* \(also in kinds\.walk"
    ):
        rules(tmp_path, twice)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b'world = "\xff"', r"not UTF-8 text .* at byte 9"),
        ("", r"world: missing"),
        ('world = "corridor"', r"kinds: missing; write at least one table"),
        ('world = "corridor"\nkinds = 3', r"kinds: missing"),
        ('world = "corridor"\n[kinds]\nwalk = 3', r"kinds\.walk: must be a table"),
    ],
)
def test_what_is_no_instruction_file_is_refused(tmp_path, text, complaint):
    with pytest.raises(InstructionFileError, match=r"mine\.toml: " + complaint):
        rules(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InstructionFileError, match=r"none\.toml: no such file"):
        InstructionFile.read(tmp_path / "none.toml")


@pytest.mark.parametrize("world", api.names())
def test_built_in_files_become_rules_that_can_be_obeyed(world):
    env = api.make(world)
    made = reward.rules_of(env, api.world(world).instructions)
    own = np.array([[m < len(e) for m in range(api.macro_count(env))] for e in env.macros])
    allowed, addressed = np.asarray(made.allowed), np.asarray(made.addressed)
    assert allowed[0].all() and not addressed[0].any() and addressed[1:].any(1).all()
    some = (allowed & own).any(-1) | ~addressed
    forbids = (~allowed & own & addressed[..., None]).any((1, 2))
    assert some.all(), "an addressed agent could not obey"
    assert forbids[1:].all(), "a kind forbids nothing"
    kinds = InstructionFile.read(api.world(world).instructions).kinds
    assert made.given.tolist() == [False] + [not kind.extra for kind in kinds]

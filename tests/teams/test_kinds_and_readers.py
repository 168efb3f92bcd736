"""Instructions by their kind, and sentences that somebody else understands."""

import jax
import numpy as np
import pytest
import teams
from model_server import serving

import mavic
from mavic.teams.facts import PolicyError

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def team():
    return mavic.load_policy("box_pushing/mavic")


def heard_by(team, **said):
    """The memory after a decision: it differs wherever agents heard something else."""
    _, carry = team.act(KEY, team.start(), np.ones((2, 5)), **said)
    return np.asarray(carry.actor)


def test_a_kind_is_what_its_phrase_is(team):
    by_text = heard_by(team, text="don't push")
    np.testing.assert_array_equal(heard_by(team, kind="dont-push"), by_text)
    np.testing.assert_array_equal(heard_by(team, kind=["dont-push", "dont-push"]), by_text)
    assert (heard_by(team) != by_text).any()
    one = heard_by(team, kind=[None, "dont-push"])
    np.testing.assert_array_equal(one, heard_by(team, text=[None, "don't push"]))
    second = heard_by(team, kind="avoid-small-box-0", also_kind="avoid-small-box-1")
    text, also = (team.facts["examples"][team.kinds.index(f"avoid-small-box-{i}")] for i in (0, 1))
    np.testing.assert_array_equal(second, heard_by(team, text=text, also=also))


def test_the_shield_knows_the_kind(team):
    macro, _ = team.act(KEY, team.start(), np.ones((2, 5)), kind="stay", shield=True)
    names = team.facts["macros"][0]
    assert {names[int(m)] for m in macro} == {"STAY"}


@pytest.mark.parametrize(
    "said, why",
    [
        ({"kind": "dance"}, "kind 'dance' is unknown; "),
        ({"kind": ["stay"]}, "1 kinds for 2 agents"),
        ({"kind": "stay", "text": "stay"}, "a text or a kind, not both"),
    ],
)
def test_a_wrong_kind_is_one_line(team, said, why):
    with pytest.raises(PolicyError) as error:
        heard_by(team, **said)
    assert why in str(error.value)


def test_another_reader_understands_sentences():
    with serving(lambda body: "dont-push") as (url, asked):
        team = mavic.load_policy("box_pushing/mavic", reader=url)
        heard = heard_by(team, text="hands off, all of you")
        np.testing.assert_array_equal(heard, heard_by(team, kind="dont-push"))
        assert len(asked) == 1  # the answer is kept, and phrases of the training are not asked
    silence = heard_by(team, text="gone is the server")
    np.testing.assert_array_equal(silence, heard_by(team))  # unsure: the team hears nothing


def test_a_team_that_hears_vectors_takes_no_reader(tmp_path):
    path = teams.untrained(tmp_path, "box_pushing", network="protected", hear="vectors")
    with pytest.raises(PolicyError, match="only teams that hear kinds take a reader"):
        mavic.load_policy(path, reader="http://127.0.0.1:9")

"""Instructions in phrases that no team was trained on: who hears them, and how they are counted."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from corridor import HURRY, RING, WALK, instructed

from mavic.evaluation import evaluate, infeasible, unseen_phrases
from mavic.evaluation.metrics import Ratio
from mavic.evaluation.unseen_phrases import WAYS, Unseen, _phrase_table
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.language.reader import read
from mavic.language.reader.phrase_file import Example
from mavic.training import train
from mavic.training.groups import Group
from mavic.training.runs import Run, make_run
from mavic.training.trained import Trained, trained_of
from mavic.types import replace

CONFIGS = tuple(
    ExperimentConfig(world="warehouse", method=method) for method in ("mavic", "vanilla")
)


@pytest.fixture(scope="module")
def untrained():
    task = task_of(CONFIGS[0])
    preset = preset_of("tuned", "warehouse")
    static = task.static_config(preset, CONFIGS[0].network)
    runs = Run.stack([make_run(config, preset, task, 0) for config in CONFIGS])
    return Trained(
        group=Group(configs=CONFIGS, seeds=(0,), preset=preset),
        task=task,
        static=static,
        state=train.init_states(static, runs),
        curve=[],
        steps_per_second=0.0,
    )


@pytest.fixture
def hollow(monkeypatch):
    """Runs, groups and lexicons are stand-ins, which annotations would refuse."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def test_the_schedule_draws_understood_phrases_of_the_meant_kind():
    unseen = Unseen(
        kinds=(1, 2, 2), texts=("a", "b", "c"), understood=(True, True, False), trained=(5, 6, 7)
    )
    ours = _phrase_table(unseen, 100, 4, 2, WAYS["vectors"]["per_instruction"])
    assert ours.count.tolist() == [0, 1, 1, 0]
    assert ours.table[1].tolist() == [5, 5] and ours.table[2].tolist() == [6, 6]
    own = _phrase_table(unseen, 100, 4, 2, WAYS["vectors"]["own_vector"])
    assert own.count.tolist() == [0, 1, 1, 0] and own.table[2].tolist() == [101, 101]
    anyway = _phrase_table(unseen, 100, 4, 2, WAYS["vectors"]["own_vector_anyway"])
    assert anyway.count.tolist() == [0, 1, 2, 0] and anyway.table[2].tolist() == [101, 102]


def test_phrases_of_kinds_that_are_not_given_do_not_count():
    unseen = Unseen(
        kinds=(1, 2, 2, 3),
        texts=("a", "b", "c", "d"),
        understood=(True, True, False, True),
        trained=(1, 2, 2, 3),
    )
    for given, phrases, understood in (("1110", 3, 2), ("1111", 4, 3), ("1000", 0, 0)):
        found = unseen.counts(np.array([g == "1" for g in given]))
        assert found == {"phrases": phrases, "understood": understood}


@pytest.mark.usefixtures("hollow")
def test_a_phrase_stands_for_the_closest_one_of_the_kind_that_is_heard(monkeypatch):
    """The reader is sure of walk, unsure between nothing and hurry, and hears an end that may be a ring."""
    heard = (("walk", "walk"), ("none", "hurry"), ("end", "ring"))
    answers = [
        SimpleNamespace(asked=lambda obey_anyway=False, said=said: said[obey_anyway])
        for said in heard
    ]
    monkeypatch.setattr(read, "understand_all", lambda lexicon, texts: answers)
    monkeypatch.setattr(unseen_phrases, "vectors", lambda texts, encoder: [10, 20, 30])
    lexicon = SimpleNamespace(
        names=("none", "walk", "hurry", "ring"),
        encoder="words",
        closest=lambda vector, kind: vector + kind,
    )
    meant = (("a", "hurry"), ("b", "walk"), ("c", "ring"))
    examples = [Example(text=text, kind=kind, group="") for text, kind in meant]
    assert unseen_phrases._read(lexicon, examples) == Unseen(
        kinds=(HURRY, WALK, RING),
        texts=("a", "b", "c"),
        understood=(True, False, False),
        trained=(11, 22, 33),
    )


TWO_SETS = {
    "held-out": Unseen(
        kinds=(WALK, HURRY), texts=("a", "b"), understood=(True, True), trained=(1, 4)
    ),
    "paper": Unseen(
        kinds=(HURRY, HURRY, RING, HURRY),
        texts=("c", "d", "e", "f"),
        understood=(True, False, True, True),
        trained=(5, 0, 6, 4),
    ),
}


def group(*methods: str) -> SimpleNamespace:
    """Some methods with the seeds 7 and 8."""
    configs = tuple(ExperimentConfig(method=method) for method in methods)
    return SimpleNamespace(configs=configs, seeds=(7, 8))


@pytest.mark.usefixtures("hollow")
def test_each_method_that_hears_has_its_own_seeds_in_each_set(monkeypatch):
    """Run r follows r; in the paper's set 100 more, and 10 more for each place of a phrase alone."""
    given = np.zeros((4, 4), bool)
    given[:2, HURRY] = given[2:, WALK] = True  # the two methods are given different kinds
    asked = []

    def by_way(name, places):
        asked.append((name, list(places)))
        first = 100.0 * (name == "paper") + (10 * places[0] if len(places) == 1 else 0)
        return {"own_vector": first + np.arange(4.0)}

    def spoken(trained, hearing, sets, *, num_envs, scale):
        assert (num_envs, scale, sets) == (16, 0.5, TWO_SETS)
        assert [config.method for config in hearing] == ["mavic", "naive"]
        return SimpleNamespace(given=given, by_way=by_way)

    monkeypatch.setattr(unseen_phrases, "sets_of", lambda task: TWO_SETS)
    monkeypatch.setattr(unseen_phrases, "_Spoken", spoken)
    trained = SimpleNamespace(group=group("mavic", "vanilla", "naive"), task=None)
    found = unseen_phrases.evaluate(trained, num_envs=16, scale=0.5)
    singly = [("paper", [place]) for place in range(4)]
    assert asked == [("held-out", [0, 1]), ("paper", [0, 1, 2, 3]), *singly]
    mavic, naive = (found.pop(trained.group.configs[place]) for place in (0, 2))
    assert not found  # vanilla hears nothing
    assert naive.keys() == {"held-out"}  # the paper's phrases ask for kinds that it is not given
    for entry, own in ((mavic, [0, 1]), (naive, [2, 3])):
        assert entry["held-out"]["own_vector"].tolist() == own
        assert (entry["held-out"]["phrases"], entry["held-out"]["understood"]) == (1, 1)
    assert mavic["paper"]["own_vector"].tolist() == [100, 101]
    assert (mavic["paper"]["phrases"], mavic["paper"]["understood"]) == (3, 2)
    each = {text: way["own_vector"].tolist() for text, way in mavic["paper"]["each"].items()}
    assert each == {"c": [100, 101], "d": [110, 111], "e": [120, 121], "f": [130, 131]}
    deaf = SimpleNamespace(group=group("vanilla"), task=None)
    assert unseen_phrases.evaluate(deaf, num_envs=16) == {}


@pytest.mark.usefixtures("hollow")
def test_unseen_phrases_are_said_in_place_of_the_schedules_own(monkeypatch):
    """The phrases lie behind seven rows. Of a kind without a phrase that is said, nothing is given."""
    two, two_of_training = (
        jax.tree.map(lambda *leaves: np.stack(leaves), *[instructed(rate=rate)] * 2)
        for rate in (0.25, 0.5)
    )
    given = np.array([[False, True, True, True], [False, True, False, True]])
    test = replace(two, rules=replace(two.rules, given=given))
    runs = Run(
        hyper=None, correction=None, key=None, eval_epsilon=None,
        train_env=two_of_training, test_env=test,
    )  # fmt: skip
    played = []

    def until_enough(*args):
        played.append(args)
        followed = np.array([[0.0, 1.0], [0.0, 3.0]])
        ratios = {"compliance": Ratio(followed, np.full((2, 2), 2.0)), "base": None}
        return SimpleNamespace(ratios=ratios)

    monkeypatch.setattr(evaluate, "until_enough", until_enough)
    monkeypatch.setattr(
        unseen_phrases.heard, "texts_heard", lambda lexicon, texts, hear: np.ones((len(texts), 1))
    )
    task = SimpleNamespace(
        lexicon=SimpleNamespace(names=("none", "walk", "hurry", "ring")),
        hear="vectors",
        vectors=jnp.zeros((7, 1)),
    )
    trained = SimpleNamespace(task=task, static="static", teams_of=lambda configs: (runs, "state"))
    spoken = unseen_phrases._Spoken(trained, (), TWO_SETS, num_envs=4, scale=0.5)
    found = spoken.by_way("paper", [1, 2])
    assert list(found) == list(WAYS["vectors"])
    assert all(share.tolist() == [0.25, 0.75] for share in found.values())
    said = []
    for static, num_envs, vectors, played_runs, state, which, enough in played:
        assert (static, num_envs, state) == ("static", 4, "state")
        assert vectors.tolist() == [[0.0]] * 7 + [[1.0]] * 6
        assert which.instructed and which.twins.shape == (4, 2, 5)
        assert enough == 2000 * 0.5 * 2 / 4  # as many for each of the four phrases
        env = played_runs.test_env
        assert env.schedule.rate.tolist() == [0.25, 0.25]
        assert env.phrases.table.shape == (2, 4, 3) and env.phrases.count.shape == (2, 4)
        said.append((env.phrases.table[:, :, 0].tolist(), env.rules.given.tolist()))
    nobody = [False] * 4
    only_ring, both = ([False, False, hurry, True] for hurry in (False, True))
    assert said == [
        ([[0, 0, 0, 6]] * 2, [only_ring, only_ring]),  # the training phrase
        ([[0, 0, 0, 11]] * 2, [only_ring, only_ring]),  # its own row: 7 + 2 held-out + 2
        ([[0, 0, 10, 11]] * 2, [both, only_ring]),  # the unsure one too
    ]
    played.clear()
    spoken.by_way("held-out", [1])
    ((*_, runs_played, _, _, enough), *_) = played
    assert enough == 500 and runs_played.test_env.rules.given.tolist() == [
        [False, False, True, False],
        nobody,
    ]


@pytest.mark.long
def test_unseen_phrases_are_not_among_the_training_phrases(untrained):
    lexicon = untrained.task.lexicon
    trained = {lexicon.texts[row] for row in np.asarray(lexicon.table).ravel()}
    for name, unseen in unseen_phrases.sets_of(untrained.task).items():
        assert len(unseen.texts) >= (3 if name == "paper" else 9), name
        assert not trained & set(unseen.texts)
        for kind, sure, row in zip(unseen.kinds, unseen.understood, unseen.trained, strict=True):
            assert kind > 0
            assert lexicon.texts[row] in trained or not sure


def test_the_closest_phrase_is_of_the_kind_asked_for(untrained):
    lexicon = untrained.task.lexicon
    for row in (1, 5, 20):
        own = int(lexicon.kind[row])
        assert lexicon.closest(lexicon.vectors[row], own) == row
        other = 1 + own % 3
        assert int(lexicon.kind[lexicon.closest(lexicon.vectors[row], other)]) == other
    assert lexicon.closest(lexicon.vectors[1], 0) == 0


@pytest.mark.long
def test_every_hearing_method_is_evaluated_in_every_set(untrained, monkeypatch):
    """A team that hears kinds hears the reader's probabilities, not what the author meant."""
    played, play = [], evaluate.until_enough
    monkeypatch.setattr(evaluate, "until_enough", lambda *args: played.append(args) or play(*args))
    found = unseen_phrases.evaluate(untrained, num_envs=16, scale=0.005)
    lexicon, sets = untrained.task.lexicon, unseen_phrases.sets_of(untrained.task)
    texts = [text for unseen in sets.values() for text in unseen.texts]
    shares = np.array(
        [
            [answer.probabilities.get(name, 0.0) for name in lexicon.names[1:]]
            for answer in read.understand_all(lexicon, texts)
        ]
    )
    assert len(played) == 2 * len(sets)  # understood ones, and all
    first = len(lexicon.texts)
    for args in played:
        np.testing.assert_allclose(args[2][first:], shares, atol=1e-6)
        table = np.asarray(args[3].test_env.phrases.table)[0]
        assert table[1:].min() >= first and not table[0].any()
    assert (shares.max(1) < 0.999).any()  # so they are no one-hot vectors of the kinds meant
    assert set(found) == {CONFIGS[0]}  # vanilla hears nothing
    for name, entry in found[CONFIGS[0]].items():
        assert 0 < entry["understood"] <= entry["phrases"], name
        for way in WAYS["kinds"]:
            assert entry[way].shape == (1,) and 0 <= entry[way][0] <= 1


@pytest.mark.long
def test_a_request_that_nobody_can_fulfil_changes_nothing_if_the_reader_is_unsure(
    untrained, monkeypatch
):
    """Heard as its own vector, or taken for a kind, it changes what an instructed actor does."""
    nothing_asked = [0] * len(infeasible.REQUESTS)
    assert infeasible.kinds_asked(untrained.task) == nothing_asked
    taken = [untrained.task.lexicon.names.index("fetch-tool-2-first"), *nothing_asked[1:]]
    monkeypatch.setattr(infeasible, "kinds_asked", lambda task: taken)
    # the instructed actors' last layers start near zero, so that words would hardly matter
    louder = jax.tree.map(lambda leaf: 20 * leaf, untrained.state.actor)
    team = dataclasses.replace(untrained, state=replace(untrained.state, actor=louder))
    found = infeasible.evaluate(team, scale=0.2)
    assert set(found) == {CONFIGS[0]}  # vanilla hears nothing
    requests = found[CONFIGS[0]]
    nothing = requests.pop(infeasible.NO_REQUEST)["own"]
    assert set(requests) == set(infeasible.REQUESTS)
    for request, entry in requests.items():
        for way in ("own", "read"):
            np.testing.assert_allclose(sum(entry[way].values()), 1.0, rtol=1e-6)
        moved = max(float(abs(entry["read"][macro] - nothing[macro])[0]) for macro in nothing)
        assert (moved > 0.01) == (request == infeasible.REQUESTS[0]), request
        assert entry["asked"] == ("fetch-tool-2-first" if moved else "none")


def test_a_policy_file_can_be_evaluated_too(untrained, tmp_path):
    path = untrained.save_team(tmp_path / "team", CONFIGS[0], 0)
    again = trained_of(path)
    assert again.group.preset == untrained.group.preset
    assert again.group.configs == CONFIGS[:1]

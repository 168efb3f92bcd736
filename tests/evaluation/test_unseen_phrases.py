"""Instructions in phrases that no team was trained on: who hears them, and how they are counted."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from mavic.evaluation import evaluate, infeasible, unseen_phrases
from mavic.evaluation.unseen_phrases import WAYS, Unseen, _phrase_table
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.language.reader import read
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

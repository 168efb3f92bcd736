"""Configurations and presets: what they take if they do not say, and numbers by context."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tasks import make_task

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import hyperparams_of, preset_of, static_config_of
from mavic.preset import Preset
from mavic.training.runs import make_run


def test_the_preset_chooses_network_and_hearing_unless_the_configuration_does():
    tuned, paper = ExperimentConfig(), ExperimentConfig(preset="paper")
    assert (tuned.network, tuned.hear) == ("residual", "kinds")
    assert (paper.network, paper.hear) == ("protected", "vectors")
    own = ExperimentConfig(network="shared", hear="vectors")
    assert (own.network, own.hear) == ("shared", "vectors")
    with pytest.raises(ValueError, match="kinds"):
        ExperimentConfig(hear="kind")


@pytest.mark.parametrize("world", ["box_pushing", "warehouse", "overcooked"])
def test_the_learner_of_the_papers_setting_has_no_help_to_obey(world):
    plain, tuned = (dataclasses.asdict(preset_of(n, world)) for n in ("paper-tuned", "tuned"))
    differing = {name for name in plain if plain[name] != tuned[name]}
    helps = {
        "kind_heads", "drill_prob", "allowed_loss", "from_start_prob", "one_agent_prob", "hold_to_end_prob",
        "spurious_interrupt_prob", "uninstructed_episode_prob", "single_instruction",
    }  # fmt: skip
    longer = {"n_steps"} if world == "box_pushing" else set()
    assert differing <= helps | {"episodes", "epsilon_episodes", "entropy_episodes"} | longer
    assert not any(np.any(plain[name]) for name in helps)
    share = plain["episodes"] / tuned["episodes"]
    assert plain["entropy_episodes"] == round(share * tuned["entropy_episodes"])
    config = ExperimentConfig(world=world, preset="paper-tuned").with_condition("paper/add")
    assert config.is_papers() and config.population == 1


def test_names_tell_an_unexpected_hearing():
    vectors = ExperimentConfig(network="protected", hear="vectors")
    assert vectors.name() == "mavic-default-protected-live-by-kind"
    assert ExperimentConfig().name() == "mavic-default-residual-live-by-kind"
    names = {
        ExperimentConfig(network=network, hear=hear, preset=preset).table_group()
        for network in ("protected", "residual")
        for hear in ("kinds", "vectors")
        for preset in ("tuned", "paper")
    }
    assert len(names) == 8 and "tuned/residual+vectors/live/by-kind" in names


def test_a_pair_counts_for_both_contexts_in_which_something_is_asked():
    preset = Preset.of({"actor_hysteresis": [0.3, 0.7], "epsilon_end": [0.01, 0.05]})
    hyper = hyperparams_of(preset)
    np.testing.assert_allclose(hyper.actor_hysteresis, [0.3, 0.7, 0.7])
    np.testing.assert_allclose(hyper.epsilon_end, [0.01, 0.05, 0.05])
    np.testing.assert_allclose(hyper.actor_hysteresis_end, hyper.actor_hysteresis)
    np.testing.assert_allclose((hyper.advantage_scale, hyper.allowed_loss), [[1] * 3, [0] * 3])
    three = hyperparams_of(dataclasses.replace(preset, allowed_loss=(0.0, 0.1, 0.2)))
    np.testing.assert_allclose(three.allowed_loss, [0.0, 0.1, 0.2])
    assert hyper.gamma.shape == ()


def test_the_allowed_loss_is_compiled_in_only_where_a_preset_has_it():
    sizes = dict(observation=3, macro_counts=(4, 4), embedding=5, kinds=3)
    for preset, on in ((Preset(), False), (Preset(allowed_loss=(0.0, 0.0, 0.1)), True)):
        assert static_config_of(preset, "residual", **sizes).allowed_loss is on


@pytest.mark.parametrize(
    ("method", "drills", "from_start"),
    [("mavic", 1.0, 0.5), ("naive", 1.0, 0.5), ("switch", 1.0, 0.5), ("vanilla", 0.0, 0.0)],
)
def test_drills_belong_to_the_training_of_methods_that_hear(method, drills, from_start):
    preset = preset_of("tuned", "warehouse")
    run = make_run(ExperimentConfig(world="warehouse", method=method), preset, TASK, 0)
    assert float(run.train_env.schedule.drill_prob) == drills
    assert float(run.train_env.schedule.from_start) == from_start
    assert bool(run.train_env.schedule.single_instruction) is (method in ("mavic", "naive"))
    assert float(run.test_env.schedule.drill_prob) == float(run.test_env.schedule.from_start) == 0
    assert not bool(run.train_env.schedule.shield) and not bool(run.test_env.schedule.shield)


TASK = make_task("warehouse")


def test_a_policy_file_is_named_by_what_differs_from_the_defaults():
    assert ExperimentConfig().short_name() == "mavic"
    assert ExperimentConfig(method="naive", network="shared").short_name() == "naive-shared+kinds"
    assert ExperimentConfig(preset="paper").short_name() == "mavic-paper"
    paper = ExperimentConfig().with_condition("paper/add")
    assert paper.short_name() == "mavic-paper-add"
    several = [
        ExperimentConfig(network=network, hear=hear, preset=preset, backbone=backbone, penalty=cost)
        for network in ("protected", "residual")
        for hear in ("kinds", "vectors")
        for preset in ("tuned", "paper")
        for backbone in ("mac-iac", "acac")
        for cost in (None, 5.0)
    ]
    assert len({config.short_name() for config in several}) == len(several)

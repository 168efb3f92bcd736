"""Policies as ONNX and records as marl-eval JSON."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sample_records import config_of, record_of, study

import mavic
from mavic.apps import cli
from mavic.bridges import marl_eval
from mavic.learn import act, networks
from mavic.learn.kind_heads import KindHeads
from mavic.learn.losses import mixture
from mavic.teams.facts import PolicyError
from mavic.teams.team import TeamPolicy

pytest.importorskip("onnx")
import onnxruntime
from teams import untrained

from mavic.bridges import onnx as bridge

EXAMPLE = Path(__file__).parents[2] / "examples" / "run_onnx.py"


@pytest.fixture(scope="module", params=["shipped", "vectors", "kind_heads"])
def team(request, tmp_path_factory):
    """The shipped team, one on the paper's network that hears vectors, and one with output layers for the kinds."""
    shipped = mavic.load_policy("box_pushing/mavic")
    if request.param == "vectors":
        folder = tmp_path_factory.mktemp("teams")
        return mavic.load_policy(untrained(folder, "box_pushing", network="shared", hear="vectors"))
    return shipped if request.param == "shipped" else with_kind_heads(shipped)


def with_kind_heads(team):
    shape = dataclasses.replace(team.shape, kind_heads=True)
    facts = {**team.facts, "shape": dataclasses.asdict(shape)}
    random = np.random.default_rng(5)

    def more(params, outputs):
        layers = {"kind_heads": KindHeads.init(shape.embedding, shape.hidden, outputs)}
        made = jax.tree.map(
            lambda x: random.normal(size=(shape.agents, *x.shape)).astype(np.float32), layers
        )
        return {**params, **made}

    weights = dataclasses.replace(
        team.weights,
        actor=more(team.weights.actor, shape.macros),
        critic=more(team.weights.critic, networks.VALUE_HEADS),
    )
    return TeamPolicy(weights, facts)


def probabilities(team, carry, observation, kind, idle, available):
    """What the networks give in JAX, and their memory."""
    actors, _ = team._networks(())
    seen = act.Observed(
        observation=observation[None], last_macro=carry.macro[None], phrase=kind[None]
    )
    first = carry.actor[0]  # a model has no room for a second instruction
    heads, memory = act._step(team.networks.actor, actors, first, seen, idle[None])
    logits = jax.vmap(lambda h: team.shape.logits(h, seen.instructed))(heads)
    _, soft = mixture(logits[:, 0], available, jnp.zeros(len(kind)))
    return jnp.exp(soft), memory


def test_a_model_decides_as_the_team_does(team, tmp_path):
    session = onnxruntime.InferenceSession(str(bridge.export(team, tmp_path / "team")))
    shape, random = team.shape, np.random.default_rng(0)
    carry = team.start()
    memory = np.zeros((shape.agents, shape.parts, shape.hidden), np.float32)
    counts = np.array(team.facts["macro_counts"])
    for step in range(6):
        observation = random.normal(size=(shape.agents, shape.observation)).astype(np.float32)
        kind = random.integers(0, 1 + len(team.kinds), shape.agents) * (step % 3 > 0)
        kind[0] *= step % 2
        idle = random.random(shape.agents) < 0.8
        available = (np.arange(shape.macros)[None] < counts[:, None]) & (
            random.random(shape.macros) < 0.7
        )
        available[:, 0] = True
        given = dict(
            observation=observation, last_macro=np.asarray(carry.macro, np.int64), memory=memory
        )
        given |= dict(kind=kind.astype(np.int64), available=available, idle=idle)
        found, memory = session.run(["probabilities", "next_memory"], given)
        arrays = map(jnp.asarray, (observation, kind, idle, available))
        expected, after = probabilities(team, carry, *arrays)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(memory, after[:, :, 0], atol=1e-5)
        macro = jnp.asarray([int(row.argmax()) for row in found], jnp.int32)
        carry = dataclasses.replace(carry, actor=after[None], macro=macro)


@pytest.mark.parametrize(
    ("backbone", "why"), [("mac-cac", "its own actor"), ("acac", "see more than their own")]
)
def test_actors_that_the_model_cannot_hold_are_refused(tmp_path, backbone, why):
    team = mavic.load_policy(untrained(tmp_path, "box_pushing", backbone=backbone))
    with pytest.raises(PolicyError, match=why):
        bridge.model_of(team)


def test_the_example_needs_only_onnxruntime(tmp_path):
    team = mavic.load_policy("box_pushing/mavic")
    path = bridge.export(team, tmp_path / "team")
    code = (
        "import sys; sys.modules['mavic'] = sys.modules['jax'] = None; "
        f"sys.argv = ['run', {str(path)!r}]; exec(open({str(EXAMPLE)!r}).read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and lines[2].startswith(f"2 {team.kinds[0]} ")


def test_the_command_names_the_file_that_it_wrote(tmp_path, capsys):
    out = tmp_path / "team.v1"
    cli.main(["export", "onnx", "box_pushing/mavic", "--out", str(out)])
    assert "".join(capsys.readouterr().out.split()) == f"wrote{out}.onnx"
    assert [path.name for path in tmp_path.iterdir()] == ["team.v1.onnx"]


def test_seeds_that_diverged_are_not_exported(tmp_path):
    record = record_of(tmp_path, config_of(), [291.0, 0.0], [0.9, 0.0], [0.0, 0.0])
    assert record.score is not None
    lost = dataclasses.replace(record, score={**record.score, "diverged": [None, 2]})
    (tasks,) = marl_eval._export_records([lost]).values()
    (task,) = tasks.values()
    assert set(task["MAVIC"]) == {"seed_0"}
    none = dataclasses.replace(record, score={**record.score, "diverged": [1, 2]})
    assert marl_eval._export_records([none]) == {"mavic": {}}


def test_no_seed_is_lost_where_two_records_are_of_one_algorithm(tmp_path):
    one = record_of(tmp_path / "a", config_of(), [1.0, 2.0], [0.5, 0.5], [0.0, 0.0])
    other = dataclasses.replace(one, run={**one.run, "seeds": [8, 9]})
    (task,) = marl_eval._export_records([one, other])["mavic"].values()
    assert set(task["MAVIC"]) == {"seed_0", "seed_1", "seed_8", "seed_9"}
    assert task["MAVIC"]["seed_9"]["absolute_metrics"]["base_return"] == [2.0]
    same = dataclasses.replace(one, run={**one.run, "seeds": [8, 1]})
    with pytest.raises(ValueError, match="seed_1 of MAVIC is in another record"):
        marl_eval._export_records([one, same])


def test_records_become_marl_evals_json(tmp_path):
    study(tmp_path)
    (tasks,) = marl_eval.export(tmp_path).values()
    task = tasks["box_pushing/default/protected/live/by-kind"]
    run = task["MAVIC"]["seed_1"]
    assert run["step_3"] == {"step_count": 96_000, "base_return": [292.0], "compliance": [0.98]}
    assert run["absolute_metrics"] == {"base_return": [292.0], "compliance": [0.98]}
    assert "switch" not in task  # unfinished
    assert set(task["MAVIC"]) == {"seed_0", "seed_1", "seed_2"}

"""A team as a folder: what the runtime reads of it is what the JAX team knows."""

import json
import shutil
import sys
from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import robot_recordings as record

import mavic
from mavic.apps.cli import main
from mavic.bridges import team_folder
from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of
from mavic.instruct import reward, schedule
from mavic.instruct.pairs import conflict
from mavic.instruct.reward import rules_of
from mavic.language.reader import own_head
from mavic.language.reader.model import Head
from mavic.language.vectors import shipped_path
from mavic.runtime.contract import Contract
from mavic.runtime.folder import ENCODER, HEAD, VOCABULARY, Export, open_export
from mavic.runtime.reading import reader_of
from mavic.runtime.team import open_team
from mavic.storage.files import digest

DATA = record.DATA
SENTENCES = (
    "please do not use the cutting board on the left",
    "stop and wait where you are",
    "nobody touches the second plate",
    "I'd like to serve it myself",
    "never mind",
    "what a lovely kitchen",
    "asdf qwer",
)


@pytest.fixture(scope="module")
def cooks():
    return mavic.load_policy("overcooked/mavic")


@pytest.fixture(scope="module")
def folder(cooks, tmp_path_factory):
    return team_folder.export(cooks, tmp_path_factory.mktemp("export") / "team")


@pytest.fixture
def with_rescue(monkeypatch):
    """The rescue world can be registered in this test."""
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.syspath_prepend(str(record.EXAMPLES))
    monkeypatch.delitem(sys.modules, "rescue", raising=False)


@pytest.mark.parametrize("world", record.TICKS)
def test_the_recorded_export_is_what_is_exported_now(world, tmp_path, with_rescue):
    team = mavic.load_policy(record.team_of(world, tmp_path / "made"))
    made = open_export(team_folder.export(team, tmp_path, reader=False)).facts
    kept = open_export(DATA / world).facts
    assert {k: v for k, v in made.items() if k not in ("versions", "files")} == {
        k: v for k, v in kept.items() if k not in ("versions", "files")
    }
    assert set(made["files"]) == set(kept["files"]) == {"actors.onnx"}


@pytest.mark.long
@pytest.mark.parametrize("world, seed", record.EPISODES)
def test_the_recorded_episodes_are_what_the_jax_team_plays(world, seed, tmp_path, with_rescue):
    stage = record.stage_of(world, record.team_of(world, tmp_path))
    script = record.EPISODES[world, seed]
    played = record.episode(stage, seed, script, record.TICKS[world])
    kept = dict(np.load(DATA / f"{world}-{seed}.npz"))
    for name, array in kept.items():
        np.testing.assert_allclose(played[name], array, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("world", ["overcooked", "rescue"])
def test_two_instructions_conflict_where_they_do_in_training(world, with_rescue):
    if world == "rescue":
        __import__("rescue")
    task = task_of(ExperimentConfig(world=world))
    rules = rules_of(task.env, task.file)
    contract = Contract.of(open_export(DATA / world).facts)
    everybody = np.ones(len(task.env.agents), int)
    alone = everybody - np.eye(len(everybody), dtype=int)[0]
    for one, other in product(range(len(rules.names)), repeat=2):
        for whom in (everybody, alone):
            pair = one * everybody, other * whom
            assert contract.conflict(*pair) == conflict(task.env, rules, *pair)


def test_a_kind_by_predicate_allows_what_it_allows_in_training(with_rescue):
    """Also kinds that depend on a predicate's not holding, and robots that do not say what holds."""
    facts = open_export(DATA / "rescue").facts
    random = np.random.default_rng(0)
    kinds, agents, macros, predicates = len(facts["kinds"]) + 1, 3, 8, 3
    facts["rules"] |= {
        "predicate": [0, *random.integers(0, 4, kinds - 1).tolist()],
        "negated": random.random(kinds).round().astype(bool).tolist(),
        "lists_allowed": random.random(kinds).round().astype(bool).tolist(),
    }
    contract = Contract.of(facts)
    __import__("rescue")
    task = task_of(ExperimentConfig(world="rescue"))
    changed = ("predicate", "negated", "lists_allowed")
    rules = replace(
        rules_of(task.env, task.file),
        **{name: jnp.asarray(facts["rules"][name]) for name in changed},
    )
    effective = jnp.broadcast_to(jnp.arange(macros), (agents, macros))
    for _ in range(50):
        kind = random.integers(0, kinds, agents)
        holds = random.random((agents, macros, predicates)) < 0.5
        asked = replace(schedule.no_instruction(agents), kind=jnp.asarray(kind))
        for told in (holds, None):
            wanted = reward.allowed_macros(
                asked, effective, rules, None if told is None else jnp.asarray(told)
            )
            known = np.full(agents, told is not None)
            np.testing.assert_array_equal(contract.allows(kind, holds, known), wanted)


def test_sentences_are_read_as_the_team_reads_them(cooks, folder):
    export = open_export(folder)
    reader = reader_of(export, Contract.of(export.facts))
    for text in SENTENCES:
        shares, kind = cooks._understood(text)
        found = reader.read(text)
        asked = 0 if found.unsure or found.kind == "end" else 1 + cooks.kinds.index(found.kind)
        assert asked == kind, text
        np.testing.assert_allclose(found.shares, shares, atol=2e-3)
    assert {reader.read(text).unsure for text in SENTENCES} == {False, True}
    assert reader.read("never mind").kind == "end"
    assert reader.read("?!").note == "the text is empty"


def test_a_users_file_is_read_alike(folder, tmp_path):
    """The exported head of a user's file: its words tell the kind, and the shipped head what a sentence does."""
    export = open_export(folder)
    kinds = ("none", *export.facts["kinds"])
    kind = kinds.index("avoid-left-board")
    weights = np.zeros((384 + 2, len(kinds)), np.float32)
    weights[384, kind] = 5.0
    topics = own_head.Topics(names=kinds, words={"left_board": 0}, numbered=(), weights=weights)
    does = Head.load(shipped_path("any", "does"))
    head = own_head.OwnHead(
        does=does, topics=topics, manner=np.tile([[0.0, 1.0, 1.0, 0.0]], (len(kinds), 1))
    )
    head.save(tmp_path / HEAD)
    for name in (ENCODER, VOCABULARY):
        shutil.copy(folder / name, tmp_path / name)
    files = export.facts["files"] | {HEAD: digest((tmp_path / HEAD).read_bytes())}
    facts = export.facts | {"files": files, "phrases": {}}
    reader = reader_of(Export(path=tmp_path, facts=facts), Contract.of(facts))
    assert reader.read("don't use the left board").kind == "avoid-left-board"
    assert reader.read("you can use the left board again").kind == "end"
    assert reader.read("thanks for staying away from the left board").unsure


def test_a_free_sentence_leads_to_the_same_decisions(cooks, folder):
    """Random observations, a sentence of its own for each cook at once, sampled decisions with shared numbers."""
    rng, said = np.random.default_rng(0), ("leave the left board alone", "don't touch plate 1")
    draws = [0.0, 0.0]
    team = open_team(folder, draw=lambda agent: draws[agent])
    carry, found = cooks.start(), []
    for tick in range(40):
        text, also = (said[0] if tick >= 8 else None), (said[1] if tick >= 20 else None)
        seen = rng.integers(0, 2, (2, 63)).astype(np.float32)
        key = jax.random.fold_in(jax.random.key(3), tick)
        draws[:] = np.asarray(jax.random.uniform(key, (2,)))
        for agent in team.agents if tick else ():
            team.ended(agent)
        if tick == 8:
            assert team.say(said[0]).kind == "avoid-left-board"
        if tick == 20:
            assert team.say(said[1], also=True).kind == "avoid-plate-1"
        macro, carry = cooks.act(key, carry, seen, text, also=also)
        starts = [team.observed(i, seen[i])[0] for i in range(2)]
        wanted = [team.contract.macros[i][int(m)] for i, m in enumerate(macro)]
        found.append(([start.macro for start in starts], wanted))
    assert [pair for pair in found if pair[0] != pair[1]] == []


def test_the_command_writes_a_folder_and_says_so(tmp_path, capsys):
    out = tmp_path / "cooks"
    main(["export", "team", "overcooked/mavic", "--out", str(out), "--without-reader"])
    assert f"wrote {out}" in " ".join(capsys.readouterr().out.split())
    assert json.loads((out / "team.json").read_text())["world"] == "overcooked"
    assert sorted(path.name for path in out.iterdir()) == ["actors.onnx", "team.json"]

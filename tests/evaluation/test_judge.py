"""Any agent judged: scripts whose scores are known, and an ordinary record."""

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
from corridor import RULES
from model_server import serving

import mavic
from mavic.envs import api
from mavic.evaluation import evaluate, judge
from mavic.experiment import records
from mavic.experiment.methods import METHODS
from mavic.instruct.spec import InstructionFile
from mavic.reporting.rows import table
from mavic.reporting.tables import group_tables
from mavic.session import session

EXAMPLE = Path(__file__).parents[2] / "examples" / "judge_agents.py"


@pytest.fixture(scope="module")
def examples():
    spec = importlib.util.spec_from_file_location("judge_agents", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judged(examples, tmp_path_factory):
    out = tmp_path_factory.mktemp("judged")
    agents = {"script": examples.script("box_pushing", True), "network": examples.network()}
    condition = "live/by-kind/rate=0.3"
    return {
        name: mavic.judge(agent, "box_pushing", name=name, episodes=4, out=out, condition=condition)
        for name, agent in agents.items()
    }


def test_a_script_that_obeys_and_works_has_the_best_numbers(judged):
    found = judged["script"].summary()
    assert found["base"] == pytest.approx(291.98, abs=0.01)
    assert found["share_of_optimum"] == pytest.approx(1.0, abs=1e-4)
    assert found["followed"] == 1.0 and found["latency"] == 0.0 and found["unsure"] == 0.0
    assert found["under_instructions"] == pytest.approx(1.0, abs=1e-3)


def test_an_untrained_network_has_not(judged):
    found = judged["network"].summary()
    assert found["base"] < 50 and found["followed"] < 0.5 and found["latency"] > 0.5


def test_the_record_is_an_ordinary_one(judged):
    path = judged["script"].record
    record = records.read(path)
    assert record.config().method == "judged-script" and record.run["judged"] == "script"
    assert record.score["compliance"]["latency"] == [0.0]
    (grids,) = group_tables(table(records.read_folder(path.parent))).values()
    shown = {grid.title: grid for grid in grids.values()}
    assert [row[0] for row in shown["Main results"].rows] == [
        ("judged-network",),
        ("judged-script",),
    ]
    assert "Latency" in shown["Compliance"].header


def test_an_agent_that_asks_back_waits_and_is_counted():
    found = mavic.judge(
        lambda seen: ["unsure" if kind else "STAY" for kind in seen.kind],
        "box_pushing",
        name="asks",
        episodes=1,
        condition="live/by-kind/kinds=stay/rate=1",
    ).summary()
    assert found["unsure"] == 1.0 and found["followed"] == 1.0  # to stay is to wait


STAY = "live/by-kind/kinds=stay/rate=1"


def told(words: str) -> dict[str, str]:
    """What somebody does who reads what the example writes: obeys, else goes to the big box and pushes it."""
    choices = {}
    for line in words.splitlines():
        if " decides." in line:
            agent = line.split()[0]
            there = f"It ran GO_BIG_SPOT_{agent[-1]}" in line or "It ran PUSH" in line
            work = "PUSH" if there else f"GO_BIG_SPOT_{agent[-1]}"
            choices[agent] = "STAY" if "It is told: “" in line else work
    return choices


def test_a_language_model_is_judged(examples):
    """The model is a local server that reads the messages and answers as such servers do."""
    with serving(lambda body: f"I say {json.dumps(told(body['messages'][1]['content']))}.") as (
        url,
        asked,
    ):
        agent = examples.model("box_pushing", url, key="secret")
        found = mavic.judge(
            agent, "box_pushing", name="model", episodes=2, condition=STAY
        ).summary()
    assert found["base"] == pytest.approx(291.98, abs=0.01)
    assert (found["followed"], found["latency"], found["unsure"]) == (1.0, 0.0, 0.0)
    assert asked[0]["key"] == "Bearer secret" and asked[0]["temperature"] == 0
    system, seen = (message["content"] for message in asked[0]["messages"])
    assert "push the big box" in system.lower() and "robot_0 decides." in seen


@pytest.mark.parametrize(
    "answer", ["I'd rather not", '{"robot_0": "DANCE"}', "{}", b"<html>", 500, "[1]"]
)
def test_what_a_language_model_says_that_is_no_macro_counts_as_unsure(examples, answer):
    with serving(lambda body: answer) as (url, _):
        agent = examples.model("box_pushing", url)
        found = mavic.judge(
            agent, "box_pushing", name="model", episodes=1, condition=STAY
        ).summary()
    assert found["unsure"] == 1.0 and found["base"] < 0


def test_a_person_at_a_terminal_is_judged(examples):
    written, mistakes = [], iter(["dance", "99"])

    def read(prompt):
        if prompt == "robot_1> " and (typed := next(mistakes, None)):
            return typed  # it is asked again
        shown = next(text for text in reversed(written) if text.startswith("Tick"))
        return told(shown)[prompt.removesuffix("> ")].lower()

    agent = examples.person("box_pushing", read, written.append)
    which = dict(name="person", episodes=2, condition=STAY)
    found = mavic.judge(agent, "box_pushing", at_once=1, **which).summary()
    assert found["base"] == pytest.approx(291.98, abs=0.01)
    assert (found["followed"], found["latency"], found["unsure"]) == (1.0, 0.0, 0.0)
    assert any(text.startswith("DANCE is none of: ") for text in written)
    ticks = [int(text.split()[1][:-1]) for text in written if text.startswith("Tick")]
    assert all(now > before or now == 0 for before, now in itertools.pairwise(ticks))  # one by one
    asks = examples.person("box_pushing", lambda prompt: "?", lambda text: None)
    assert mavic.judge(asks, "box_pushing", **which | {"episodes": 1}).summary()["unsure"] == 1.0


@pytest.mark.long
def test_the_example_names_its_agents_and_a_person_may_leave(tmp_path):
    command = [sys.executable, str(EXAMPLE), "box_pushing"]
    kind = ["--episodes", "1", "--condition", STAY, "--out", str(tmp_path)]
    for more, said in (
        (["dog"], "no agent is called 'dog'; there are script, deaf, network, model, person"),
        (["model"], "a language model needs --url"),
        (["person", *kind], "the person has left; nothing was written"),
    ):
        ran = subprocess.run(
            [*command, *more],
            input="stay\n",
            capture_output=True,
            text=True,
            cwd=EXAMPLE.parents[1],
        )
        assert ran.returncode and said in ran.stderr and "Traceback" not in ran.stderr
    assert not list(tmp_path.rglob("*.jsonl"))


def phrases_of(name: str) -> tuple[str, ...]:
    """The training phrases of a kind of box pushing."""
    file = InstructionFile.read(api.world("box_pushing").instructions)
    return next(kind.train for kind in file.kinds if kind.name == name)


def test_the_agent_sees_what_is_asked_and_has_a_memory_of_its_own():
    times = []

    def agent(seen):
        seen.memory["calls"] = seen.memory.get("calls", 0) + 1
        times.append((seen.time, seen.memory["calls"], seen.kind, seen.text, seen.running))
        assert seen.observation.shape == (2, 5) and seen.available.shape == (2, 8)
        assert int(seen.state.big) == 3  # a scripted agent may look at the state
        return [0, 0]

    mavic.judge(agent, "box_pushing", episodes=1, condition="live/by-kind/kinds=stay/rate=1")
    begins = [one for one in times if one[0] == 0]
    assert begins and all(
        calls == 1 and running == (None, None) for _, calls, *_, running in begins
    )
    said = {
        (kind, text)
        for _, _, kinds, texts, _ in times
        for kind, text in zip(kinds, texts, strict=True)
    }
    phrases = phrases_of("stay")
    assert (None, None) in said and len(said) > 1
    assert all(kind == "stay" and text in phrases for kind, text in said - {(None, None)})
    later = {running for time, *_, running in times if time}
    assert later == {("GO_SMALL_BOX_0", "GO_SMALL_BOX_0")}  # macro 0


@pytest.mark.parametrize(
    "agent, said",
    [
        (lambda seen: None, "the agent returned None, not a macro for each agent"),
        (lambda seen: "STAY", "the agent returned 'STAY', not a macro for each agent"),
        (lambda seen: np.full((2, 8), 0.125), "chose array([0.125, 0.125"),
        (lambda seen: ["STAY"], "the agent chose 1 macros for 2 agents"),
        (lambda seen: ["DANCE", "STAY"], "chose 'DANCE' for robot_0, which is not available; av"),
        (lambda seen: [0, 99], "chose 99 for robot_1"),
    ],
)
def test_a_wrong_choice_is_one_line(agent, said):
    with pytest.raises(ValueError) as error:
        mavic.judge(agent, "box_pushing", episodes=1)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"name": "A b"}, "use small letters"),
        ({"episodes": 0}, "episodes must be 1 or more"),
        ({"at_once": 17}, "at_once must be from 1 to 16, not 17"),
    ],
)
def test_wrong_arguments_are_one_line(wrong, said):
    with pytest.raises(ValueError, match=said):
        mavic.judge(lambda seen: [0, 0], "box_pushing", **wrong)


def test_an_agent_that_asks_back_waits_in_the_way_of_its_world(monkeypatch):
    """The first agent rests with its last macro, and the second has no macro for it. Only the first is told."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # what is seen is hollow
    play = SimpleNamespace(
        macros=(("GO", "STAY"), ("GO", "PUSH")), rest=[[1], []], asked=0, unsure=0
    )

    def chosen(agent, choice, *available):
        seen = SimpleNamespace(
            kind=("stay", None),
            available=np.array([[m in available for m in range(2)]] * 2),
            agents=("one", "two"),
        )
        return judge._Play._number(play, agent, choice, seen)

    assert chosen(0, None, 0, 1) == chosen(0, "unsure", 0, 1) == 1
    assert chosen(0, "unsure", 0) == 0  # it cannot rest
    assert chosen(1, None, 0, 1) == 0 and chosen(1, "unsure", 1) == 1
    assert (play.asked, play.unsure) == (3, 3)
    assert chosen(0, "STAY", 0, 1) == chosen(1, np.int32(1), 0, 1) == 1
    assert (play.asked, play.unsure) == (4, 3)


@pytest.mark.parametrize("whose", ["teams", "agents"])
def test_a_kind_names_what_it_asks_for_or_forbids(whose, monkeypatch):
    """The corridor's walk asks for macro 1, hurry forbids macro 0, and ring forbids left macro 1."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the runs are hollow
    test, hyper = SimpleNamespace(rules=RULES), SimpleNamespace(gamma=0.5)
    if whose == "teams":
        which = SimpleNamespace(twins="twins")
        tally = evaluate._tally(SimpleNamespace(test_env=test, hyper=hyper), "rows", which)
    else:
        monkeypatch.setattr(judge, "_sums", lambda measured, tally: tally)
        play = SimpleNamespace(test=test, gamma=hyper.gamma, twins="twins")
        tally = judge._Play._measure(play, "rows")
    none, walk, hurry = [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    named = [[none, none], [walk, walk], [hurry, hurry], [walk, none]]
    assert tally.named.astype(int).tolist() == named
    assert (tally.rows, tally.twins, tally.gamma, tally.kinds) == ("rows", "twins", 0.5, 4)
    assert tally.addressed.tolist() == RULES.addressed.tolist()


def test_a_judged_agent_cannot_be_trained():
    assert METHODS["judged-script"].judged and "judged-script" not in list(METHODS)
    with pytest.raises(ValueError, match="was judged; it cannot be trained"):
        session.train("box_pushing", method="judged-script", seeds=1, episodes=128)


@pytest.mark.long
@pytest.mark.parametrize("world, optimum", [("warehouse", 533.0), ("overcooked", 156.6119)])
def test_scripts_of_the_other_worlds(examples, world, optimum):
    deaf = mavic.judge(examples.script(world, False), world, name="deaf", episodes=2)
    assert deaf.summary()["base"] == pytest.approx(optimum, abs=0.01)
    assert np.isfinite(deaf.summary()["latency"])

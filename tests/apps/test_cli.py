"""The command line as a user types it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import tomllib
from typing import get_args

import fake_training
import jax
import numpy as np
import pytest
from sample_records import score_of

import mavic
from mavic.apps import cli
from mavic.apps.commands import config_file, options
from mavic.apps.commands import evaluate as evaluate_command
from mavic.apps.commands import train as train_command
from mavic.apps.commands.command import options_from
from mavic.envs import api
from mavic.evaluation import evaluate
from mavic.experiment import records
from mavic.language.encoder import EncoderError
from mavic.language.reader import read
from mavic.preset import Preset
from mavic.session import runner
from mavic.storage import files
from mavic.training import train

NAMES = [command.__name__.lower() for command in get_args(cli.COMMANDS)]
TINY = (
    "train box_pushing --method mavic vanilla random --network protected --hear vectors --seeds 1"
    " --episodes 128 --batch 64 --options size 4 --preset tuned"
)

LOG = "--log tensorboard" if importlib.util.find_spec("tensorboardX") else ""


def run(line):
    """What a command wrote, and its exit status."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(line.split())
        except SystemExit as stop:
            status = stop.code
    return status, out.getvalue(), err.getvalue()


def few_episodes(monkeypatch):
    """Evaluate few episodes; they are enough for every column of a record."""
    whole = evaluate.evaluate
    monkeypatch.setattr(
        evaluate, "evaluate", lambda trained, **_: whole(trained, num_envs=32, scale=0.01)
    )
    monkeypatch.setattr(runner, "default_num_envs", lambda batch, horizon: 32)


def made_up_scores(trained, **_):
    """Scores that are different for every configuration."""
    return {
        config: score_of([10.0 * n], [0.5 / n], [0.1], shield=True)
        for n, config in enumerate(trained.group.configs, start=1)
    }


@contextlib.contextmanager
def short_training(real):
    """What is trained and evaluated ends soon. Unless it is real, nothing is compiled and scores are made up."""
    with contextlib.ExitStack() as stack:
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        if real:
            few_episodes(monkeypatch)
        else:
            stack.enter_context(fake_training.fake())
            monkeypatch.setattr(evaluate, "evaluate", made_up_scores)
        yield


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)])
def trained(request, tmp_path_factory):
    """The folder of a short training and what the user saw of it."""
    out = tmp_path_factory.mktemp("runs")
    with short_training(request.param):
        status, said, complaint = run(f"{TINY} --out {out} {LOG}")
    assert (status, complaint) == (0, "")
    return out / "box_pushing", said


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_an_example(name):
    status, said, _ = run(f"{name} --help")
    assert status == 0
    assert re.search(rf"[Ee]xample:\s+mavic {name}\b", said), said


@pytest.mark.parametrize("name", NAMES)
def test_help_names_types_plainly(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    said = run(f"{name} --help")[1]
    assert not re.search(
        r"\{None\}|\{preset\}|PATH|FLOAT|STR\b|\{False\}|\(default: (None|preset)\)", said
    )


def test_an_option_that_is_repeated_shows_one_value():
    assert "--say INT TEXT INT \n" in re.sub(r" +│?\n", " \n", run("replay --help")[1])


def test_the_version_is_printed_without_loading_jax():
    script = "import sys; from mavic.apps import cli; cli.main(['--version']); print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"mavic {mavic.__version__}\nFalse\n"


def test_help_loads_neither_jax_nor_numpy():
    script = "import sys; from mavic.apps import cli; cli.main(['--help'])"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0 and not re.search(r"\| +(jax|numpy)$", done.stderr, re.MULTILINE)


def test_help_lists_the_commands():
    status, said, _ = run("--help")
    assert status == 0 and all(name in said for name in NAMES)


PLUGIN = """
from mavic.envs import api
from mavic.envs.box_pushing import BoxPushing


class Own(BoxPushing):
    name = "own"


api.register("own", Own, instructions=api.world("box_pushing").instructions)
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_command_knows_worlds_of_ones_own(name):
    assert "--plugins" in run(f"{name} --help")[1]


def test_a_plugins_world_is_one_of_the_worlds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "own_worlds.py").write_text(PLUGIN)
    status, said, _ = run("worlds --plugins own_worlds")
    assert status == 0 and re.search(r"─ own ─+\noptions: size 6, ", said), said
    status, said, _ = run("words own stay --json --plugins own_worlds")
    assert status == 0 and json.loads(said)["kind"] == "stay"
    status, _, complaint = run("worlds --plugins nowhere")
    assert status == 1 and complaint.startswith("mavic: plugin nowhere: ")


def test_more_than_one_thing_can_be_said(monkeypatch, tmp_path):
    def of_policy(path, seed, said, *_):
        heard.append(said)
        raise ValueError("seen enough")

    heard = []
    monkeypatch.setattr("mavic.apps.recording.Recording.of_policy", of_policy)
    run("replay team --say 3 stay 4 --say 9 push 2")
    assert heard == [((3, "stay", 4), (9, "push", 2))]


def test_worlds_shows_agents_macros_and_kinds():
    status, said, _ = run("worlds")
    assert status == 0
    for name in api.names():
        assert name in said
    for fact in (
        "robot_0: GO_SMALL_BOX_0",
        "dont-push (replace)",
        "fetch-tool-2-first (add)",
        "chop (replace, extra)",
    ):
        assert fact in said, fact


def test_train_leaves_records_and_policies(trained):
    folder, said = trained
    for method, learns in (("mavic", True), ("vanilla", True), ("random", False)):
        name = f"{method}-tuned-protected-live-by-kind"
        for ending in ("safetensors", "json"):
            assert (folder / f"{method}-tuned-protected.{ending}").is_file() == learns
        record = records.read(folder / f"{name}.jsonl")
        assert record.config().method == method and record.config().options == {"size": 4}
        assert record.run["preset"]["batch"] == 64 and len(record.curve) == 2 * learns
        base = record.score["base"]["discounted"][0]
        followed = record.score["compliance"]["per_instruction"][0]
        assert f"{name}: base {base:.2f}" in said and f"compliance {followed:.2%}" in said
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["method"] == ["mavic", "vanilla", "random"] and config["options"] == {"size": 4}
    assert config["numbers"]["batch"] == 64
    _, printed, _ = run(f"train --config {folder / 'config.toml'} --print-config")
    assert tomllib.loads(printed) == config


def test_a_log_has_a_line_for_each_point(trained):
    _, said = trained
    lines = [line for line in said.splitlines() if " runs: " in line]
    assert [line.split(" runs: ")[1][:10] for line in lines] == [
        "compiling…",
        "1/2 · mavi",
        "2/2 · mavi",
    ]
    assert "━" not in said  # no bar


@pytest.mark.skipif(not LOG, reason="needs tensorboardX")
def test_tensorboard_gets_the_points(trained):
    folder, _ = trained
    logs = folder / "logs" / "mavic-tuned-protected-live-by-kind" / "seed-0"
    assert len(list(logs.iterdir())) == 1


def test_training_goes_on_from_a_policy(trained, tmp_path, monkeypatch):
    folder, _ = trained
    policy = folder / "mavic-tuned-protected"
    seen = []

    def train_updates(*args):
        seen.append(args[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train_updates", train_updates)
    monkeypatch.setattr(runner, "_memory_line", lambda *_: "")
    few_episodes(monkeypatch)
    status, _, complaint = run(f"{TINY} --initial {policy} --out {tmp_path}")
    assert status == 130 and "stopped" in complaint
    weights = mavic.load_policy(policy).weights
    for start, own in ((seen[0].actor, weights.actor), (seen[0].critic, weights.critic)):
        jax.tree.map(lambda new, old: np.testing.assert_array_equal(new[0], old), start, own)
    assert seen[0].episodes.tolist() == [0, 0]
    status, _, complaint = run(f"{TINY} --initial warehouse/mavic --out {tmp_path}")
    assert status == 1 and "another network" in complaint


def test_the_same_command_goes_on_where_it_was(trained, request):
    folder, _ = trained
    path = folder / "mavic-tuned-protected-live-by-kind.jsonl"
    before = records.read(path)
    real = request.node.callspec.params["trained"]
    with short_training(real), pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(train, "train_updates", pytest.fail)  # nothing is left to train
        status, said, complaint = run(f"{TINY} --out {folder.parent}")
    assert (status, complaint) == (0, "")
    assert "after 2 of 2 points" in " ".join(said.split())
    assert records.read(path).score == before.score


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("--first-seed 3", "seeds"),
        ("--gamma 0.9", "numbers"),
        ("--options size 6", "options"),
        ("--initial box_pushing/mavic", "initial weights"),
    ],
)
def test_a_record_of_something_else_is_not_replaced(trained, monkeypatch, change, what):
    folder, _ = trained

    def train_group(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train_group", train_group)
    status, _, complaint = run(f"{TINY} {change} --out {folder.parent}")
    assert status == 1 and f"has other {what}; choose another --out" in complaint
    status, _, complaint = run(f"{TINY} {change} --overwrite --out {folder.parent}")
    assert status == 130 and complaint.startswith("mavic: stopped")


def test_report_makes_tables_from_that_folder(trained, tmp_path):
    pytest.importorskip("matplotlib")
    folder, _ = trained
    status, said, complaint = run(f"report {folder} --out {tmp_path}")
    assert (status, complaint) == (0, "")
    table = json.loads((tmp_path / "table.json").read_text())
    row = table["tuned/protected/live/by-kind"]["mavic"]
    score = records.read(folder / "mavic-tuned-protected-live-by-kind.jsonl").score
    np.testing.assert_allclose(row["base_mean"], score["base"]["discounted"][0], rtol=1e-3)
    assert row["seeds"] == 1
    assert set(table["tuned/protected/live/by-kind"]) == {
        *("mavic", "mavic+shield", "vanilla", "vanilla+shield", "random")
    }
    assert "mavic" in said and list((tmp_path / "figures").iterdir())


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("train box_pushin", "did you mean 'box_pushing'?"),
        ("train box_pushing --method mavicc", "did you mean 'mavic'?"),
        ("train box_pushing --preset tunned", "did you mean 'tuned'?"),
        ("train box_pushing --network protect", "did you mean 'protected'?"),
        ("train box_pushing --condition live", "such as live/by-kind"),
        ("train box_pushing --condition life/by-kind", "did you mean 'live'?"),
        ("train box_pushing --condition live/by-kid", "did you mean 'by-kind'?"),
        ("train box_pushing --options sise 4", "did you mean 'size'?"),
        ("train box_pushing --options size 5", "it must be even and 4 or more"),
        ("report nowhere", "no records (*.jsonl) here"),
        ("evaluate nowhere", "nowhere.safetensors: no such file"),
        ("replay nowhere --out replay.avi", "must end in .html or .gif"),
        ("replay nowhere", "nowhere.safetensors: no such file"),
        ("replay nowhere.jsonl", "nowhere.jsonl: No such file"),
        ("serve nowhere", "nowhere.safetensors: no such file"),
        ("export team nowhere --out team", "nowhere.safetensors: no such file"),
        ("words box_pushin push", "did you mean 'box_pushing'?"),
        ("bench box_pushin", "did you mean 'box_pushing'?"),
        ("train box_pushing --engine ray", "box_pushing has no simulators in plain Python"),
        ("train warehouse --options slips 0.1", "has no macro with which it stands still"),
    ],
)
def test_a_mistake_is_one_line_that_helps(line, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, said, complaint = run(line)
    assert (status, said) == (1, "")
    assert complaint.startswith("mavic: ") and complaint.count("\n") == 1, complaint
    assert hint in complaint
    assert not list(tmp_path.rglob("*.jsonl")) and not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("train box_pushing --seeds 0", "--seeds must be a whole number from 1 to 1,000, not 0"),
        ("train box_pushing --seeds 100000000", "from 1 to 1,000, not 100000000"),
        ("train box_pushing --batch 0", "batch must be a whole number from 1 to 1,000,000, not 0"),
        ("train box_pushing --batch -1", "batch must be a whole number"),
        ("train box_pushing --episodes 0", "episodes must be a whole number from 1"),
        (f"train box_pushing --episodes {'9' * 400}", "not a number so large"),
        ("train box_pushing --gamma 1.01", "gamma must be a number from 0 to 1, not 1.01"),
        ("train box_pushing --gamma nan", "gamma must be a number from 0 to 1, not nan"),
        ("train box_pushing --actor-lr 0", "actor_lr must be a number above 0"),
        ("train box_pushing --critic-lr inf", "critic_lr must be a number above 0"),
        ("train box_pushing --method", "--method must be a list that is not empty"),
        ("train box_pushing --method mavic mavic", "without the same thing twice (mavic)"),
        ("train box_pushing --rate 0.1 2", "--rate must be a list, each of them a number from 0"),
        ("train box_pushing --condition off/by-kind", "allowed: live, paper"),
        ("train box_pushing --options name foo", "box_pushing has no option 'name'"),
        ("train overcooked --options hear foo", "overcooked has no option 'hear'"),
        ("train overcooked --options map nan", "nan: no such map"),
        ("train overcooked --options third_cook maybe", "must be true or false, not 'maybe'"),
        ("train box_pushing --options size 4 size 6", "the option size is given twice"),
        ("train box_pushing --out /proc/nowhere", "/proc/nowhere"),
        ("replay team --seed 99999999999999999999", "--seed must be a whole number from 0 to"),
        ("replay team --ticks -3", "--ticks must be a whole number from 1"),
        ("replay team --say -1 stay 3", "a whole number from 0 to"),
        ("replay team --say 1 stay 0", "a whole number from 1 to"),
        ("replay team --out /proc/nowhere/x.html", "/proc/nowhere: files cannot be written here"),
        ("bench --repeats 0", "--repeats must be a whole number from 1"),
        ("play --port 70000", "--port must be a whole number from 0 to 65,535, not 70000"),
    ],
)
def test_a_value_out_of_range_is_refused_in_one_line(line, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "train_updates", None)
    status, said, complaint = run(line)
    assert (status, said) == (1, "")
    assert complaint.startswith("mavic: ") and complaint.count("\n") == 1, complaint
    assert hint in complaint


def test_a_plugin_that_raises_is_named_with_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "broken_plugin.py").write_text("\nraise KeyError('nothing')\n")
    status, _, complaint = run("worlds --plugins broken_plugin")
    assert status == 1
    assert complaint == "mavic: plugin broken_plugin: KeyError: 'nothing' (broken_plugin.py:2)\n"


def test_a_folder_in_use_is_refused_with_who_uses_it(tmp_path):
    with files.locked(tmp_path / "box_pushing"):
        status, _, complaint = run(f"{TINY} --out {tmp_path}")
    assert status == 1 and f"is in use by process {os.getpid()} on " in complaint


def test_sigterm_stops_as_ctrl_c_does(tmp_path, monkeypatch):
    def stop(*_, **__):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(runner, "train_group", stop)
    status, _, complaint = run(f"{TINY} --out {tmp_path}")
    assert status == 143 and complaint.startswith("mavic: stopped before the first point")


def test_a_stopped_command_ends_at_once():
    # What is registered to run at the end stands for a device that computes on.
    script = """
import atexit, sys, time
from mavic.apps import cli
atexit.register(time.sleep, 60)
def stop(command): raise KeyboardInterrupt
cli._run, sys.argv = stop, ["mavic", "worlds"]
cli.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], timeout=50, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "mavic: stopped\n")


def test_stopping_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(group, place, **_):
        if saved:
            place.mkdir(parents=True)
            (place / "state-1.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train_group", stop)
    saved = False
    status, _, complaint = run(f"{TINY} --out {tmp_path}")
    assert status == 130 and "stopped before the first point; nothing is saved" in complaint
    saved = True
    status, _, complaint = run(f"{TINY} --out {tmp_path}")
    assert status == 130
    assert complaint.startswith("mavic: stopped; saved in ")
    assert "The same command goes on from there." in complaint


def test_a_missing_encoder_is_missed_before_the_training(tmp_path, monkeypatch):
    def missing(lexicon, texts):
        raise EncoderError("the encoder is not installed")

    monkeypatch.setattr(read, "understand_all", missing)
    monkeypatch.setattr(runner, "train_group", lambda *_, **__: pytest.fail("it trained"))
    status, _, complaint = run(f"{TINY} --words --out {tmp_path}")
    assert status == 1 and "not installed" in complaint


def test_every_number_of_a_preset_is_an_option_with_its_help():
    names = [field.name for field in dataclasses.fields(Preset)]
    assert [field.name for field in dataclasses.fields(options.Numbers)] == names
    said = run("train --help")[1]
    for name in names:
        assert f"--{name.replace('_', '-')} " in said, name
    flat = " ".join(said.replace("│", " ").split())
    assert "--n-steps INT Macro transitions in an n-step target;" in flat
    assert "None is Monte Carlo (to the end of the episode)." in flat


@pytest.mark.parametrize("command", get_args(cli.COMMANDS), ids=NAMES)
def test_help_texts_have_no_line_breaks_of_the_source(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    said = run(f"{command.__name__.lower()} --help")[1]
    for text in options._help_texts(command).values():
        assert text in said


CONFIG = """
method = ["mavic", "naive"]
seeds = 2
quick = true

[options]
size = 4

[numbers]
n_steps = "None"
epsilon_end = [0.02, 0.03]
balance_kinds = false
"""


def test_options_come_from_a_file_and_the_command_line_comes_first(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(CONFIG)
    status, said, complaint = run(f"train box_pushing --config {path} --seeds 5 --print-config")
    assert (status, complaint) == (0, "")
    found = tomllib.loads(said)
    assert (found["world"], found["method"]) == ("box_pushing", ["mavic", "naive"])
    assert (found["seeds"], found["quick"], found["options"]) == (5, True, {"size": 4})
    numbers = found["numbers"]
    assert (numbers["n_steps"], numbers["epsilon_end"]) == ("None", [0.02, 0.03])
    assert numbers["balance_kinds"] is False and numbers["batch"] == 128
    again = tmp_path / "again.toml"
    again.write_text(said)
    assert run(f"train --config {again} --print-config") == (0, said, "")


@pytest.mark.parametrize(("name", "value"), [("big.box", "1"), ("a=b", "\x7f"), ('"', "true")])
def test_what_is_printed_can_be_read(name, value):
    """Names of options are free texts; TOML would read a dot as a table."""
    printed = config_file.as_toml({"options": options_from([(name, value)])})
    assert tomllib.loads(printed) == {"options": options_from([(name, value)])}


def test_without_an_instruction_no_compliance_is_printed():
    score = score_of([3.0], [math.nan], [0.0], given=0)
    score["under"] = {}
    said = "\n".join(evaluate_command._lines(score, "kinds"))
    assert "no instruction was given" in said and "nan" not in said
    assert train_command._summary("x", score).startswith("x: base 3.00 (min 3.00) · no instruction")


def test_a_printed_file_pins_only_what_holds_for_all_that_is_trained():
    def printed(line):
        status, said, complaint = run(f"train box_pushing {line} --print-config")
        assert (status, complaint) == (0, "")
        return tomllib.loads(said)

    found = printed("--preset tuned --backbone mac-iac acac --plugins json")
    assert found["plugins"] == ["json"] and found["numbers"]["batch"] == 128
    assert not {"td_lambda", "passes", "epsilon_episodes"} & set(found["numbers"])
    found = printed("--preset tuned --backbone mac-iac acac --passes 3 --epsilon-episodes 9")
    assert (found["numbers"]["passes"], found["numbers"]["epsilon_episodes"]) == (3, 9)
    assert printed("--backbone acac")["numbers"]["td_lambda"] == 0.95


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sedes = 2", "'sedes' is unknown; did you mean 'seeds'?"),
        ("[numbers]\ngama = 0.9", "'gama' is unknown; did you mean 'gamma'?"),
        ("seeds = ", "Invalid value"),
        ("numbers = 3", "my.toml: 'numbers' must be a table: a line [numbers]"),
        ("options = 3", "my.toml: 'options' must be a table"),
        (b"world = '\xff'", "my.toml: not UTF-8 text (byte 9)"),
        ('overwrite = "false"', "my.toml: overwrite must be true or false, not 'false'"),
        ('method = ["mavic", "--overwrite"]', "my.toml: '--overwrite' cannot be a value"),
        ('kinds = [["stay"]]', "my.toml: kinds holds a list or a table where a single value"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path, text, hint):
    (tmp_path / "my.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    status, _, complaint = run(f"train box_pushing --config {tmp_path / 'my.toml'}")
    assert status == 1 and hint in complaint

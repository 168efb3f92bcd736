"""Studies with people, without a browser: plans, balance, records, kitchens, and a server that is killed."""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter

import pytest
from studies_with_people import PLAN, Person, StudyServer, write_plan
from test_playground import catalog, folder  # noqa: F401
from websockets.exceptions import ConnectionClosed

from mavic.apps import cli
from mavic.apps.participants import balance, kitchen, plan, records
from mavic.apps.participants.plan import PlanError
from mavic.apps.playground.limits import RequestError

# Plans


def mistakes(path, catalog) -> list[str]:  # noqa: F811
    with pytest.raises(PlanError) as error:
        plan.read(path, catalog)
    return [line.removeprefix(f"{path}: ") for line in str(error.value).splitlines()]


def test_a_plan_is_read(tmp_path, catalog):  # noqa: F811
    read = plan.read(write_plan(tmp_path), catalog)
    assert read.teams == ["mavic", "naive"] and read.worlds == ("box_pushing",)
    assert read.task[0].prompt[0].at == 2 and read.task[0].prompt[0].wait


def test_every_mistake_is_a_line_that_says_what_is_allowed(tmp_path, catalog):  # noqa: F811
    path = write_plan(
        tmp_path,
        ("participants = 4", "participants = 0\npeopel = 2"),
        ('name = "push"', 'name = "Push it"'),
        ("at = 2", 'at = "soon"'),
        ("scale = 5", "scale = 50"),
        ('title = "A study"', ""),
    )
    assert mistakes(path, catalog) == [
        "title is missing; it must be a text that is not empty",
        "participants must be a whole number from 1 to 1,000",
        "task 1: name must be a short name of small letters, digits, - and _",
        "task 1, prompt 1: at must be a whole number from 0 to 1,000",
        "question 1: scale must be a whole number from 2 to 11",
        "'peopel' is unknown; did you mean 'people'? allowed: title, consent, participants, teams, people, "
        "speed, show, thanks, code, task, question",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"naive"',
            '"naiv"',
            "box_pushing has no team 'naiv'; did you mean 'naive'? allowed: mavic, naive",
        ),
        ('"naive"', '"mavic"', "team 'mavic' is there twice; each needs a name of its own"),
        (
            '"box_pushing"',
            '"box_pulling"',
            "no team plays 'box_pulling'; did you mean 'box_pushing'? allowed",
        ),
        (
            'kind = "dont-push"',
            'kind = "no-push"',
            "kind 'no-push' is unknown; did you mean 'dont-push'?",
        ),
        ("at = 2", "at = 12", "prompt 1: at must be below the task's ticks (12); it is 12"),
        (
            "seed = 3",
            'seats = ["robot 7"]',
            "seat 'robot 7' is unknown; allowed: blue robot, orange robot",
        ),
        (
            "seed = 3",
            'seats = ["robot 0", "robot 1"]',
            "seats must name 1, one for each person; it names 2",
        ),
        (
            "seed = 3",
            'seats = ["robot 1", "orange robot"]',
            "seat 'robot 1' is there twice; two people drive two agents",
        ),
        (
            "participants = 4",
            "participants = 3\npeople = 2",
            "participants must be a multiple of people (2)",
        ),
        (
            "scale = 5",
            "",
            "question 'obeyed' must have one of scale, choices and lines; it has none of them",
        ),
        (
            "scale = 5",
            "lines = 2",
            "question 'obeyed': low and high are the ends of a scale; it has none",
        ),
        ("[[task]]", "[task]", "task must be one table [[task]] or more"),
        ("speed = 10", "speed = 0.1", "speed must be a number from 0.5 to 10"),
        ("speed = 10", 'show = ["values"]', 'show must be a list of "examples" and "verdicts"'),
        ("speed = 10", "speed = ", "this is not TOML"),
    ],
)
def test_a_bad_plan_is_explained(tmp_path, catalog, old, new, message):  # noqa: F811
    assert message in "\n".join(mistakes(write_plan(tmp_path, (old, new)), catalog))


def test_the_skeleton_is_a_plan_without_mistakes(tmp_path, monkeypatch, capsys, catalog):  # noqa: F811
    from mavic.apps.playground.catalog import open_catalog

    monkeypatch.chdir(tmp_path)
    cli.main(["new", "trial", "--study"])
    assert "begin it: mavic play --study trial.toml" in capsys.readouterr().out
    read = plan.read(tmp_path / "trial.toml", open_catalog())
    assert (
        balance.sentence(read) == "2 orders of worlds and teams, each for 4 participants: balanced"
    )


def test_the_command_prints_each_mistake_and_begins_nothing(tmp_path, capsys):
    path = write_plan(tmp_path, ("speed = 10", "speed = 99"), ("seed = 3", "sed = 3"))
    with pytest.raises(SystemExit):
        cli.main(["play", "--study", str(path), "--port", "0"])
    said = "".join(capsys.readouterr().err.split("\n"))
    assert "speed must be a number from 0.5 to 10" in said and "'sed' is unknown" in said
    assert "nothing was begun" in said and not (tmp_path / "plan-records").exists()


# Balance


@pytest.mark.parametrize("size", range(1, 8))
def test_in_a_square_each_stands_in_each_place_and_follows_each_equally_often(size):
    rows = balance.square(size)
    assert all(sorted(row) == list(range(size)) for row in rows)
    for place in range(size):
        assert len(set(Counter(row[place] for row in rows).values())) == 1
    follows = Counter(pair for row in rows for pair in itertools.pairwise(row))
    assert len(follows) == size * (size - 1) and len(set(follows.values())) <= 1


def test_worlds_and_teams_are_balanced_over_participants(tmp_path, catalog):  # noqa: F811
    more = '[[task]]\nname = "tools"\nworld = "warehouse"\ntitle = "t"\ntext = "t"\n'
    path = write_plan(
        tmp_path, ("[[task]]\n", more + "[[task]]\n"), ('"mavic", "naive"', '"mavic"')
    )
    read = plan.read(path, catalog).model_copy(update={"teams": ["a", "b", "c"]})
    assert balance.orders(read) == 2 * 6
    met = []
    for row in range(balance.orders(read)):
        steps = [step for step in balance.steps(read, row) if step.sort == "task"]
        met.append([(read.task[step.task].world, step.team) for step in steps])
        assert [step.called for step in steps] == [f"Team {letter}" for letter in "ABCDEF"]
        assert met[-1][0][1] != met[-1][3][1]  # another team begins the second world
    for place in range(6):
        seen = Counter(one[place] for one in met)
        assert len(seen) == 6 and set(seen.values()) == {2}


def test_questions_come_after_what_they_ask_about(tmp_path, catalog):  # noqa: F811
    steps = balance.steps(plan.read(write_plan(tmp_path), catalog), 0)
    assert [(step.sort, step.after, step.team) for step in steps] == [
        ("task", "task", "mavic"),
        ("questions", "team", "mavic"),
        ("task", "task", "naive"),
        ("questions", "team", "naive"),
        ("questions", "end", ""),
    ]


def test_the_next_order_is_the_one_used_least(tmp_path, catalog):  # noqa: F811
    read = plan.read(write_plan(tmp_path), catalog)
    used: list[int] = []
    for _ in range(4):
        used.append(balance.least_used(used, read))
    assert used == [0, 1, 0, 1] and balance.least_used([0, 0, 1], read) == 1
    uneven = read.model_copy(update={"participants": 3})
    assert balance.sentence(uneven).endswith("participants = 4 would be balanced")


# Records


def test_a_record_is_read_to_its_last_whole_line(tmp_path):
    path = records.path_of(tmp_path, 1)
    record = records.read_record(path)
    record.write(at=0.5, what="begun", participant=1, order=0, plan="x")
    record.write(at=2, what="said", by=0, text="Grüße")
    record.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at":3,"what":"ti')
    again = records.read_record(path)
    assert again.lines == record.lines and again.seconds == 2
    assert path.read_bytes() != whole  # a reader without the folder's lock changes nothing
    records.cut_unfinished(path)
    assert path.read_bytes() == whole
    path.write_bytes(b'{"at":1}\n' + whole)
    with pytest.raises(
        records.RecordError, match=r"participant-0001\.jsonl:1: this is no line of a record"
    ):
        records.read_record(path)


def test_links_stay_and_more_can_be_added(tmp_path, catalog):  # noqa: F811
    read = plan.read(write_plan(tmp_path), catalog)
    first = records.links(tmp_path, read)
    more = read.model_copy(update={"participants": 6})
    assert more.mark == read.mark
    assert records.links(tmp_path, more)[:4] == first == records.links(tmp_path, read)[:4]
    assert len({*records.links(tmp_path, more)}) == 6 and all(len(token) >= 20 for token in first)


def test_another_plan_does_not_go_on_with_these_records(tmp_path, catalog):  # noqa: F811
    read = plan.read(write_plan(tmp_path), catalog)
    record = records.read_record(records.path_of(tmp_path, 1))
    record.write(at=0, what="begun", participant=1, order=0, plan=read.mark)
    record.close()
    records.check_marks([record], read, tmp_path)
    other = read.model_copy(update={"thanks": "Bye"})
    with pytest.raises(records.RecordError, match="was made with another plan"):
        records.check_marks([record], other, tmp_path)


def test_a_cell_that_a_spreadsheet_would_run_is_made_a_text():
    made = records.as_csv(["a", "b"], [["=1+1", -1], ["@x", 'say "hi", then'], ["fine", None]])
    assert list(csv.reader(made.splitlines())) == [
        ["a", "b"],
        ["'=1+1", "-1"],
        ["'@x", 'say "hi", then'],
        ["fine", ""],
    ]


# A kitchen


def opened(tmp_path, catalog, *changes):  # noqa: F811
    read = plan.read(write_plan(tmp_path, *changes), catalog)
    lines: list[dict] = []
    step = balance.steps(read, 0)[0]
    made = kitchen.open_kitchen(
        read, step, catalog, lambda what, **more: lines.append({"what": what, **more})
    )
    return read, step, made, lines


def test_notes_bring_a_kitchen_back(tmp_path, catalog):  # noqa: F811
    changes = [("seed = 3", 'seats = ["robot 1"]')]
    read, step, made, lines = opened(tmp_path, catalog, *changes)
    for tick in range(8):
        made.look_for_prompt()
        if made.waiting:
            assert made.time == 2 and made.prompt.text == "Tell them not to push."
            made.say(0, made.read("please do not push anything at all"))
        if tick == 1:
            made.drive(0, "TURN_LEFT")
        if tick == 6:
            made.end(0)
        made.tick()
    said = next(line for line in lines if line["what"] == "said")
    assert (said["tick"], said["kind"], said["right"], said["given"]) == (
        2,
        "dont-push",
        True,
        True,
    )
    again = kitchen.open_kitchen(read, step, catalog, lambda *_, **__: pytest.fail("noted again"))
    again.replay(lines)
    now, then = (one.session.sides[0].episode for one in (again, made))
    assert (now.time, now.earned, now.given, now.events) == (
        then.time,
        then.earned,
        then.given,
        then.events,
    )
    assert (again.prompts, again.waiting, again.prompt) == (made.prompts, made.waiting, made.prompt)
    made.tick()
    again.note = lambda what, **more: lines.append({"what": what, **more})
    again.tick()
    assert lines[-1] == lines[-2]  # both go on alike
    lines[-3]["macros"] = ["STAY", "STAY"]
    with pytest.raises(kitchen.ReplayError, match="tick 7"):
        kitchen.open_kitchen(read, step, catalog, made.note).replay(lines[:-2])


def test_what_is_not_understood_is_recorded_and_the_clock_goes_on_waiting(tmp_path, catalog):  # noqa: F811
    _, _, made, lines = opened(tmp_path, catalog, ("at = 2", "at = 0"))
    made.look_for_prompt()
    assert made.say(0, made.read("hurry up with it")).unsure and made.waiting
    assert (lines[-1]["given"], lines[-1]["right"]) == (False, False)
    made.say(0, made.read("stay where you are"))  # another kind than was asked for
    assert (lines[-1]["given"], lines[-1]["right"]) == (True, False) and not made.waiting
    made.say(0, made.read("never mind"))
    assert lines[-1]["ends"] and lines[-1]["prompt"] is None


def test_people_do_not_see_which_team_it_is_nor_what_it_expects(tmp_path, catalog):  # noqa: F811
    _, _, made, _ = opened(tmp_path, catalog)
    told = made.opened(0).model_dump_json() + made.seen(made.tick()).model_dump_json()
    assert "mavic" not in told and '"called"' not in told
    frame = made.seen(made.tick()).frames[0]
    assert frame["values"] is None and frame["earned"] == 0 and not made.opened(0).asks
    made.say(0, made.read("don't push"))
    frame = made.seen(made.tick()).frames[0]
    assert [agent["complies"] for agent in frame["agents"]] == [None, None]
    made.show = ["verdicts", "examples"]
    frame = made.seen(made.tick()).frames[0]
    assert [agent["complies"] for agent in frame["agents"]] == [True, True] and made.opened(0).asks


def test_who_drives_nobody_cannot_drive(tmp_path, catalog):  # noqa: F811
    _, _, made, _ = opened(tmp_path, catalog)
    with pytest.raises(RequestError, match="you drive nobody here"):
        made.drive(0, "STAY")


# The server


@pytest.fixture
def study(tmp_path, catalog):  # noqa: F811
    """Start servers of the plan with changes, one after another on the same folder."""
    servers = []

    def start(*changes, plan_text=PLAN):
        read = plan.read(write_plan(tmp_path, *changes, text=plan_text), catalog)
        servers.append(StudyServer(read, catalog, tmp_path / "records"))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_a_whole_study_becomes_a_record_and_tables(study, tmp_path):
    server = study()
    with server.person(0) as one:
        assert one.screen("consent")["text"].startswith("You may leave.")
        one.send(do="consent", agree=True)
        for team in ("Team A", "Team B"):
            intro = one.screen("intro")
            assert intro["team"] == team and intro["steps"] == 5
            one.begin(intro)
            assert one.read("prompt")["text"] == ""
            assert one.prompted()["waits"]
            one.send(do="say", text="don't push")
            assert one.read("understood")["kind"] == "dont-push"
            one.read("over")
            one.send(do="next")
            asked = one.screen("questions")
            assert asked["questions"][0]["name"] == "obeyed"
            one.send(do="answers", step=asked["step"], answers={})
            assert one.read("error")["text"] == "Please answer: It obeyed."
            one.send(do="answers", step=asked["step"], answers={"obeyed": 4})
        asked = one.screen("questions")
        one.send(do="answers", step=asked["step"], answers={"remarks": "=1+1"})
        code = one.screen("end")["code"]
    server.close()
    record = records.read_record(records.path_of(tmp_path / "records", 1))
    assert record.gone == "finished" and record.lines[-1]["code"] == code
    kept = {"at", "what", "participant", "kitchen", "person", "order", "plan"}
    assert set(record.lines[0]) == kept  # no name, no address, no date
    assert sum(line["what"] == "tick" for line in record.lines) == 24
    cli.main(["export", "study", str(tmp_path / "records"), "--out", str(tmp_path / "csv")])
    (person,) = rows(tmp_path / "csv" / "participants.csv")
    assert (person["state"], person["answer_remarks"]) == ("finished", "'=1+1")
    tasks = rows(tmp_path / "csv" / "tasks.csv")
    assert [(t["place"], t["team"], t["ticks"], t["right"], t["answer_obeyed"]) for t in tasks] == [
        ("1", "mavic", "12", "1", "4"),
        ("2", "naive", "12", "1", "4"),
    ]
    said = rows(tmp_path / "csv" / "said.csv")
    assert [(s["text"], s["kind"], s["ticks_after_prompt"], s["by_this_person"]) for s in said] == [
        ("don't push", "dont-push", "0", "True")
    ] * 2


def rows(path) -> list[dict]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_reload_in_mid_task_goes_on_where_it_was(study):
    server = study(("speed = 10", "speed = 5"))
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        one.begin(one.screen("intro"))
        one.prompted()
    with server.person(0) as again:
        screen = again.screen("task")
        assert screen["frames"]["frames"][0]["time"] == 2
        assert again.prompted()["text"] == "Tell them not to push."
        again.send(do="skip")
        assert again.read("frame")["frames"][0]["time"] == 2  # what is done in the third tick
        again.read("over")
    lines = server.record(0).lines
    ticks = [line["tick"] for line in lines if line["what"] == "tick"]
    assert len(ticks) > 3 and ticks == list(range(len(ticks)))
    assert lines[-1]["how"] == "solved" and [line["what"] for line in lines].count("task") == 1


def test_a_killed_server_goes_on_where_it_was(study, tmp_path):
    server = study()
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        one.begin(one.screen("intro"))
        one.prompted()
        one.send(do="say", text="don't push")
        one.read("understood")
        while one.read("frame")["frames"][0]["time"] < 4:
            pass
        server.close()
    path = records.path_of(tmp_path / "records", 1)
    path.write_bytes(path.read_bytes() + b'{"at":9,"wha')  # a line that was not finished
    ticks = sum(line["what"] == "tick" for line in records.read_record(path).lines)
    assert 4 <= ticks < 12
    with study().person(0) as again:
        intro = again.screen("intro")
        assert intro["again"] and intro["team"] == "Team A"
        again.begin(intro)
        frame = again.screen("task")["frames"]["frames"][0]
        assert frame["time"] == ticks and frame["instruction"]["kind"] == "dont-push"
        again.read("over")
    lines = records.read_record(path).lines
    assert [line["tick"] for line in lines if line["what"] == "tick"] == list(range(12))


def test_a_task_that_stops_by_a_fault_can_be_begun_again_where_it_was(study, monkeypatch):
    server = study()
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        one.begin(one.screen("intro"))
        one.prompted()
        (task, *_) = [group.task for group in server.study.groups if group.task]
        monkeypatch.setattr(task, "tick", lambda: 1 / 0)
        one.send(do="say", text="don't push")
        intro = one.screen("intro")
        assert intro["again"] and "a fault of ours" in one.read("error")["text"]
        one.begin(intro)
        frame = one.screen("task")["frames"]["frames"][0]
        assert frame["time"] == 2 and frame["instruction"]["kind"] == "dont-push"
        one.read("over")


def test_answers_that_do_not_fit_are_refused_and_a_stale_page_changes_nothing(study):
    server = study(("[[task.prompt]]\nat = 2", "[[task.prompt]]\nat = 11\nwait = false"))
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        intro = one.screen("intro")
        one.send(do="answers", step=intro["step"], answers={"obeyed": 3})  # no questions here
        assert one.screen("intro") == intro
        one.begin(intro)
        one.read("over")
        one.send(do="next")
        asked = one.screen("questions")
        for answer in (0, 6, "5", None):
            one.send(do="answers", step=asked["step"], answers={"obeyed": answer})
            assert "obeyed" in one.read("error")["text"] or answer is None
        one.line.send("no JSON")
        assert "not understood" in one.read("error")["text"]
        one.send(do="answers", step=asked["step"], answers={"obeyed": 5})
        one.screen("intro")
        one.send(do="answers", step=asked["step"], answers={"obeyed": 1})  # again, from an old page
        one.screen("intro")
    answers = [line["answers"] for line in server.record(0).lines if line["what"] == "answers"]
    assert answers == [{"obeyed": 5}]


def test_an_unknown_link_leads_nowhere(study):
    server = study()
    for path in ("/", "/s/nobody", "/s/" + "x" * 22, "/links.csv", "/s/../links.csv"):
        status, _, body = server.get(path)
        assert status == 404 and b"leads to no study" in body
    with pytest.raises(ConnectionClosed) as closed, Person(server, "nobody") as one:
        one.read("screen")
    assert closed.value.rcvd.code == 4004
    assert server.get("/study.js", Host="evil.example")[0] == 403


def test_a_link_that_is_opened_twice_goes_on_in_the_newer_page(study):
    server = study()
    with server.person(0) as one:
        one.screen("consent")
        with server.person(0) as two:
            two.screen("consent")
            with pytest.raises(ConnectionClosed) as closed:
                one.read("screen")
            assert closed.value.rcvd.code == 4001
            two.send(do="consent", agree=True)
            two.screen("intro")


def test_several_people_at_once_get_balanced_orders_and_kitchens_of_their_own(study):
    server = study()
    people = [server.person(number) for number in range(4)]
    teams = []
    for one in people:
        one.send(do="consent", agree=True)
        one.begin(one.screen("intro"))
    for number, one in enumerate(people):
        one.prompted()
        one.send(do="say", text=["don't push", "stay", "robot 0, stay", "no pushing"][number])
        one.read("over")
        one.close()
        lines = server.record(number).lines
        teams.append(next(line["team"] for line in lines if line["what"] == "task"))
        said = [line["text"] for line in lines if line["what"] == "said"]
        assert said == [["don't push", "stay", "robot 0, stay", "no pushing"][number]]
    assert teams == ["mavic", "naive", "mavic", "naive"]


def test_who_leaves_in_mid_task_has_the_order_freed_and_may_have_all_deleted(study):
    server = study()
    for number, keep in ((0, True), (1, False)):
        with server.person(number) as one:
            one.send(do="consent", agree=True)
            one.begin(one.screen("intro"))
            one.prompted()
            one.send(do="say", text="don't push")
            one.read("understood")
            one.send(do="leave", keep=keep)
            assert "kept" in (text := one.screen("left")["text"]) or not keep
            assert "deleted" in text or keep
        with server.person(number) as again:
            again.screen("left")
            again.send(do="consent", agree=True)
            again.screen("left")
    assert server.record(0).gone == "left" and len(server.record(0).lines) > 5
    assert server.record(1).lines == [{"at": 0, "what": "forgotten", "participant": 2}]
    with server.person(2) as three:
        three.send(do="consent", agree=True)
        three.screen("intro")
    assert server.record(2).begun["order"] == 0
    with server.person(3) as four:
        four.send(do="consent", agree=False)
        assert "not take part" in four.screen("left")["text"]


TWO = (
    ("participants = 4", "participants = 4\npeople = 2"),
    ("seed = 3", 'seats = ["robot 0", "robot 1"]'),
)


def test_two_people_share_a_kitchen_and_each_drives_a_robot(study):
    server = study(*TWO)
    with server.person(0) as one, server.person(1) as two:
        one.send(do="consent", agree=True)
        first = one.screen("intro")
        assert first["you"] == "blue robot"
        one.begin(first)
        assert one.screen("intro")["waits"]
        two.send(do="consent", agree=True)
        two.begin(two.screen("intro"))
        assert [page.screen("task")["opened"]["seat"] for page in (one, two)] == [0, 1]
        one.prompted()
        two.prompted()
        two.send(do="say", text="robot 0, stay")
        assert one.read("spoken")["text"] == "robot 0, stay"
        one.send(do="drive", macro="TURN_LEFT")
        two.send(do="drive", macro="TURN_RIGHT")
        one.read("over")
        two.read("over")
    lines = [
        [x for x in server.record(n).lines if x["what"] in ("said", "drive", "tick")]
        for n in (0, 1)
    ]
    same = [[{k: v for k, v in x.items() if k != "at"} for x in one] for one in lines]
    assert same[0] == same[1]  # both records have the whole kitchen
    driven = [(x["by"], x["macro"]) for x in same[0] if x["what"] == "drive"]
    assert sorted(driven) == [(0, "TURN_LEFT"), (1, "TURN_RIGHT")]
    macros = [x["macros"] for x in same[0] if x["what"] == "tick"]
    assert any(one[0] == "TURN_LEFT" for one in macros) and any(
        one[1] == "TURN_RIGHT" for one in macros
    )


def test_a_kitchen_waits_for_who_is_away_and_ends_if_one_leaves(study):
    server = study(*TWO, ("at = 2", "at = 11"))
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        with server.person(1) as two:
            two.send(do="consent", agree=True)
            one.begin(one.screen("intro"))
            two.begin(two.screen("intro"))
            one.screen("task")
            while one.read("frame")["frames"][0]["time"] < 2:
                pass
        while one.read("other")["state"] != "away":
            pass
        ticks = sum(line["what"] == "tick" for line in server.record(0).lines)
        one.send(do="end")  # nothing happens while one is away
        with server.person(1) as two:
            assert two.screen("task")["frames"]["frames"][0]["time"] == ticks
            while one.read("other")["state"] != "there":
                pass
            two.send(do="say", text="stay where you are")
            two.read("understood")
            two.send(do="leave", keep=False)
            two.screen("left")
        asked = one.screen("questions")
        assert asked["heading"] == "At the end"
        one.send(do="answers", step=asked["step"], answers={})
        one.screen("end")
    lines = server.record(0).lines
    assert "said" not in [line["what"] for line in lines]  # by one who had all deleted
    assert "alone" in [line["what"] for line in lines] and "ended" not in [
        line["what"] for line in lines
    ]


def test_who_waits_for_nobody_can_go_on_alone(study):
    server = study(*TWO)
    with server.person(0) as one:
        one.send(do="consent", agree=True)
        one.begin(one.screen("intro"))
        one.send(do="alone")
        assert one.screen("questions")["heading"] == "At the end"
    assert json.loads(server.record(0).path.read_text().splitlines()[-1])["what"] == "alone"

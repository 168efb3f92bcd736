"""The guide is short, its tables are narrow, its figures show on the site, and its commands run."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import mkdocs_hooks as site
from mavic.apps import cli
from mavic.envs import api
from mavic.evaluation import evaluate
from mavic.instruct.spec import KEYS, InstructionFile, InstructionFileError
from mavic.session import session
from tools import cited, headline

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RECORD = sorted(str(path.relative_to(DOCS)) for path in (DOCS / "record").glob("*.md"))
LONGEST = {  # words of text and tables, without code
    "install.md": 500, "concepts.md": 900, "train.md": 500, "extend.md": 1200, "simulator.md": 670,
    "not-learning.md": 400, "correction.md": 450, "robots.md": 575, "words.md": 525, "play.md": 600, "people.md": 300,
    "worlds/box-pushing.md": 420, "worlds/overcooked.md": 420, "worlds/warehouse.md": 420, "methods.md": 750,
    "results.md": 1520, "studies.md": 650, "paper.md": 600, "instructions.md": 400, "definitions.md": 800,
    "faq.md": 600, "architecture.md": 1200, "api.md": 100,
}  # fmt: skip
TOGETHER = 13_100
CODE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def words(text: str) -> int:
    return len(CODE.sub("", text).split())


def test_the_pages_of_the_guide_are_those_of_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = (
        set(re.findall(r"([\w/-]+\.(?:md|html))", nav)) - set(site.SOURCES) - {"record/index.md"}
    )
    guide = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - set(RECORD)
    assert named == guide == set(LONGEST)


def test_the_readme_is_one_screen():
    assert words((ROOT / "README.md").read_text(encoding="utf-8")) <= 700


@pytest.mark.parametrize("page", LONGEST)
def test_a_page_of_the_guide_is_short(page):
    assert words(text_of(page)) <= LONGEST[page]


def test_the_guide_together_is_short():
    assert sum(words(text_of(page)) for page in LONGEST) <= TOGETHER


@pytest.mark.parametrize("page", ["../README.md", *LONGEST])
def test_tables_have_at_most_six_columns(page):
    rows = [line for line in CODE.sub("", text_of(page)).splitlines() if line.startswith("|")]
    assert [row for row in rows if row.replace("\\|", "").count("|") > 7] == []


def test_every_figure_shows_on_the_site():
    pages = [*LONGEST, *RECORD]
    found = {page: list(site.figures(page, text_of(page))) for page in pages}
    assert all((ROOT / path).is_file() for paths in found.values() for path in paths)
    shown = {
        page: [s for mark, _, s, _ in site.LINK.findall(site.as_shown(page, text_of(page))) if mark]
        for page in pages
    }
    assert sum(map(len, shown.values())) == sum(map(len, found.values())) >= 27
    for page, targets in shown.items():  # beside the pages: in docs/, or copied from results/
        for target in targets:
            path = site.placed(page, target) or ""
            beside = path.removeprefix("docs/")
            assert path.startswith("docs/") and not beside.startswith("..")
            assert (ROOT / path).is_file() or (ROOT / beside).is_file()


def test_the_sites_first_page_leads_to_the_guide():
    template = (ROOT / "mavic/apps/web/story.html").read_text(encoding="utf-8")
    shown = site.first_page(template)
    assert shown.count('<a href="install/">Documentation</a></header>') == 1
    assert (DOCS / "install.md").is_file() and site.SOURCES["index.html"]


def test_a_link_out_of_the_pages_becomes_text_or_its_page():
    text = "[a](../mavic/x.py), [b](../CHANGELOG.md), ![c](../results/heatmap.png), [d](faq.md)"
    assert (
        site.as_shown("page.md", text)
        == "a, [b](changelog.md), ![c](results/heatmap.png), [d](faq.md)"
    )
    deep = site.as_shown("record/page.md", "![c](../../results/heatmap.png) [e](../faq.md)")
    assert deep == "![c](../results/heatmap.png) [e](../faq.md)"


@pytest.mark.parametrize("page", ["../README.md", *LONGEST])
def test_every_number_of_the_guide_has_its_record(page):
    assert not list(cited.uncited((DOCS / page).resolve()))


@pytest.mark.parametrize("page", ["../README.md", "install.md", "results.md", "studies.md"])
def test_the_blocks_of_the_guide_are_those_that_the_records_make(page):
    text = text_of(page)
    assert headline.BLOCK.findall(text)
    assert headline.updated(text, ROOT / "results") == text


def commands(page: str) -> list[list[str]]:
    """The arguments of a page's `mavic` commands, in order. Comments and redirections are left out."""
    lines = "".join(SHELL.findall(text_of(page))).splitlines()
    split = (shlex.split(line.partition(" > ")[0], comments=True) for line in lines)
    return [args[1:] for args in split if args[:1] == ["mavic"]]


EVERY = [(page, args) for page in ("../README.md", *LONGEST) for args in commands(page)]


def test_every_command_of_the_guide_is_understood(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text('world = "box_pushing"\n')
    for page, args in EVERY:
        try:
            cli._parse(args)
        except SystemExit:
            pytest.fail(f"{page}: mavic {shlex.join(args)}: {capsys.readouterr().err}")
    assert len(EVERY) >= 30


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module, the files and the figures that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    monkeypatch.setattr(session, "QUICK", 0.002)
    monkeypatch.setattr(evaluate, "PROGRESS_EPISODES", 4)
    (_, environment), (_, file), *_ = BLOCK.findall(text_of("extend.md"))
    environment = environment.replace(
        'register("corridor", Corridor)',
        'register("corridor", Corridor, instructions="corridor.toml")',
    ).partition("check_env(make")[0]
    (tmp_path / "my_worlds.py").write_text(environment, encoding="utf-8")
    (tmp_path / "corridor.toml").write_text(file, encoding="utf-8")
    (tmp_path / "results").symlink_to(ROOT / "results")
    yield tmp_path
    for name in ("my_worlds", "my_world", "lamps"):
        sys.modules.pop(name, None)


OPENED = ("play", "serve")  # they wait for visitors: tests/apps/test_playground.py, tests/runtime
ELSEWHERE = {"rware": "tests/examples/test_rware.py"}  # needs a package of its own
SHORT = {"--episodes": "32", "--batch": "16", "--hidden": "8", "--seeds": "1"}


def shortened(args: list[str]) -> list[str]:
    """The same command with few and small episodes. Worlds that compile for minutes are only configured."""
    if args[0] != "train" or "--print-config" in args:
        return args
    if args[1] in ("overcooked", "warehouse"):
        return [*args, "--print-config"]
    kept = list(args)
    for option, value in SHORT.items():
        if option in kept:
            kept[kept.index(option) + 1] = value
        else:
            kept += [option, value]
    return [
        *kept,
        *(option for option in ("--quick", "--brief", "--overwrite") if option not in kept),
    ]


@pytest.mark.long
def test_every_command_of_the_guide_runs(folder, monkeypatch, capsys):
    monkeypatch.setattr(cli.Train, "with_file", classmethod(lambda cls, args: None))
    (folder / "studies").mkdir()
    done = set()
    for page, args in EVERY:
        key = tuple(sorted(shortened(args)))
        if args[0] in OPENED or set(args) & set(ELSEWHERE) or "--config" in args or key in done:
            continue
        done.add(key)
        importlib.invalidate_caches()
        try:
            cli.main(shortened(args))
        except SystemExit as stop:
            if stop.code:
                pytest.fail(f"{page}: mavic {shlex.join(args)}: {capsys.readouterr().err}")
    assert len(done) >= 24
    assert (folder / "replay.html").is_file() and (folder / "team").is_dir()


def test_the_instruction_file_of_the_page_loads_and_needs_what_is_called_required():
    page = text_of("instructions.md")
    ((_, block),) = BLOCK.findall(page)
    file = InstructionFile.parse(tomllib.loads(block), "my_world.toml")
    assert set(file.names()) == {"avoid-left-door", "avoid-right-door", "stay"}
    rows = re.findall(r"^\| (`.*?) \|.*\| (.*?) \|$", page, re.MULTILINE)
    required = {
        k for row, default in rows if "required" in default for k in re.findall(r"`(\w+)`", row)
    }
    assert {key for row, _ in rows for key in re.findall(r"`(\w+)`", row)} == set(KEYS)

    def needed(kind, key):
        raw = tomllib.loads(block)
        del raw["kinds"][kind][key]
        try:
            InstructionFile.parse(raw, "my_world.toml")
        except InstructionFileError:
            return True
        return False

    kinds = tomllib.loads(block)["kinds"]
    assert {key for kind in kinds for key in kinds[kind] if needed(kind, key)} == required


@pytest.mark.long
def test_the_page_on_training_runs_in_python(folder, capsys):
    names: dict = {}
    for kind, text in BLOCK.findall(text_of("train.md")):
        assert kind == "python"
        exec(compile(text, "docs/train.md", "exec", dont_inherit=True), names)
    assert [result.config.method for result in names["results"]] == ["mavic", "naive"]
    assert (folder / "runs/box_pushing/table.md").is_file()
    assert "'latency'" in capsys.readouterr().out

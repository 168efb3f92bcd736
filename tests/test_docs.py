"""The pages say what is: code blocks of README, extend.md and record/parts.md run, and every cited name exists."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import faults
import numpy as np
import pytest

from mavic.envs import api, painting
from mavic.evaluation.metrics import METRICS
from mavic.experiment.methods import METHODS
from mavic.instruct.spec import InstructionFile
from mavic.language.encoder import OWN
from mavic.learn.cells import CELLS
from mavic.learn.networks import NETWORKS
from mavic.types import Scene, Sprite, Step

ROOT = Path(__file__).parents[1]
FOUND = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", *FOUND)
FENCE = re.compile(r"^```(python|toml)( slow)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# `mavic/rollout/step.py` or `mavic/rollout/step.py::reset`, between backticks
CITED = re.compile(r"`((?:mavic|tests|docs)/[\w./-]+)(?:::(\w+))?`")
CODE = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")  # [text](file) or ![picture](file)


def blocks() -> list[tuple[str, bool, str]]:
    """Language, whether it is slow, and text of every block of both pages, in order."""
    pages = (ROOT / "docs" / "extend.md", ROOT / "docs" / "record" / "parts.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return [(kind, bool(slow), text) for kind, slow, text in FENCE.findall(text)]


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """An empty folder; worlds and methods that a block adds are gone afterwards."""
    tables = (METHODS, METRICS, OWN, CELLS, NETWORKS)
    before = [dict(table) for table in tables]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)


def run_blocks(folder: Path, slow: bool) -> dict:
    """Python blocks share a namespace; a TOML block becomes the file its first line names."""
    names: dict = {"__name__": "extend"}
    for kind, is_slow, text in blocks():
        if kind == "toml":
            (folder / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif slow or not is_slow:
            exec(compile(text, "docs/extend.md", "exec", dont_inherit=True), names)
    return names


def test_the_readmes_team_obeys(monkeypatch, capsys, tmp_path):
    """The block of the README as it stands: a shipped team that is instructed not to push does not push."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    ((_, _, text),) = FENCE.findall(page)
    watched = text.replace(
        "    now = tick", "    assert not said or 4 not in macro.tolist()\n    now = tick"
    )
    assert watched != text
    exec(compile(watched, "README.md", "exec", dont_inherit=True), {})
    said = capsys.readouterr().out
    assert "don't push" in said
    assert "reward 299.9" in said.splitlines()[-1]  # the episode ends when the big box is home


def test_the_counts_of_faults_are_those_that_were_recorded():
    page = (ROOT / "docs" / "record" / "reliability.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- faults -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert table == faults.markdown(faults.recorded())
    assert all(row["tracebacks"] == row["silent"] == 0 for row in faults.recorded())


@pytest.mark.long
def test_the_page_of_extensions_runs(workshop):
    names = run_blocks(workshop, slow=False)
    assert isinstance(api.make("corridor"), names["Corridor"])
    assert "mavic-half" in METHODS and "asked" in METRICS
    assert "letters" in OWN and "tanh" in NETWORKS
    kinds = InstructionFile.read("slow_corridor.toml").kinds
    assert (kinds[0].effect, kinds[0].resolved_by) == ("hurry", {"solved": 1})


@pytest.mark.slow
def test_the_page_of_extensions_trains(workshop):
    results = run_blocks(workshop, slow=True)["results"]
    assert all(np.isfinite(result.base).all() and len(result.base) == 2 for result in results)


def test_the_page_has_all_its_blocks():
    kinds = [kind for kind, _, _ in blocks()]
    first, second = ["python", "toml", *["python"] * 3], ["python", "toml", *["python"] * 7]
    assert kinds == first + second
    assert [slow for _, slow, _ in blocks()] == [*[False] * 4, True, *[False] * 8, True][
        : len(kinds)
    ]


def test_the_page_names_every_shape_and_field_of_a_picture():
    page = (ROOT / "docs" / "record" / "parts.md").read_text(encoding="utf-8")
    assert [shape for shape in painting.SHAPES if f'"{shape}"' not in page] == []
    fields = {f.name for cls in (Scene, Sprite, Step) for f in dataclasses.fields(cls)}
    assert [name for name in fields if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    "row", ['METHODS["mavic-half"]', 'METRICS["asked"]', 'OWN["letters"]', 'NETWORKS["tanh"]']
)
def test_what_is_ones_own_takes_fewer_than_ten_lines(row):
    (text,) = (text for _, _, text in blocks() if f"{row} = " in text)
    assert len([line for line in text.splitlines() if line]) < 10


def missing(text: str) -> list[str]:
    """What a page cites and is not there."""
    gone = []
    for path, name in CITED.findall(CODE.sub("", text)):
        place = ROOT / path
        if not place.exists():
            gone.append(path)
        elif name:
            source = place.read_text(encoding="utf-8")
            defined = rf"^\s*(?:def|class)\s+{name}\b|^\s*{name}\s*[:=]"
            if not re.search(defined, source, re.MULTILINE):
                gone.append(f"{path}::{name}")
    return gone


@pytest.mark.parametrize("page", PAGES)
def test_every_name_a_page_cites_exists(page):
    assert missing((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_a_page_links_to_exists(page):
    place = ROOT / page
    links = LINK.findall(CODE.sub("", place.read_text(encoding="utf-8")))
    assert [link for link in links if not (place.parent / link).exists()] == []


def test_a_name_that_is_gone_is_seen():
    text = "`mavic/types.py::record`, `mavic/types.py::recorded`, `tests/nowhere.py`"
    assert missing(text) == ["mavic/types.py::recorded", "tests/nowhere.py"]


def test_the_tree_of_the_architecture_is_the_folder():
    """Every module that it names is there, and every module of the top and of the packages' top is named."""
    page = (ROOT / "docs" / "record" / "tree.md").read_text(encoding="utf-8")
    tree = page.split("```")[1].partition("\npolicies/")[0]
    package, named = "", set()
    for line in tree.splitlines()[2:]:
        depth, words = len(line) - len(line.lstrip()), line.split("  ")
        entry = next(word for word in words if word.strip()).strip()
        if depth == 2:
            package = entry if entry.endswith("/") else ""
        if depth in (2, 4):
            named |= {f"{package}{name}" for name in re.findall(r"\w+\.py", entry)}
    skipped = {"__init__.py", "__main__.py"}
    folder = ROOT / "mavic"
    found = {str(path.relative_to(folder)) for path in folder.glob("*.py")}
    found |= {str(path.relative_to(folder)) for path in folder.glob("*/*.py")}
    assert named == {name for name in found if Path(name).name not in skipped}

"""Words on the command line: what is understood, the tables, and bad input answered in words."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from mavic.apps import cli, console
from mavic.language import lexicon
from mavic.language.encoder import EncoderError
from mavic.language.reader import measure


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*args, stdin=b""):
    """What a command wrote, and its exit status."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "OUT", Console(file=out, width=80))
        patch.setattr(console, "ERR", Console(file=err, width=200))
        patch.setattr("sys.stdin", stdin if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        with contextlib.redirect_stdout(out):
            try:
                cli.main(list(args))
            except SystemExit as stop:
                status = stop.code
    return status, out.getvalue(), err.getvalue()


def missing(*_):
    raise EncoderError("encoder is not installed; type: pip install 'mavic[language]'")


def test_a_built_in_phrase_is_understood_without_an_encoder(monkeypatch):
    monkeypatch.setattr("mavic.language.encoder.open_encoder", missing)
    status, said, complaint = run("words", "box_pushing", "don't push")
    assert (status, complaint) == (0, "") and "→ dont-push" in said


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "the text is empty"),
        (" \t ", "the text is empty"),
        ("\x00\x07\x1b", "the text is empty"),
        ("[/bold]" * 1500, "too long"),
        ("go left " * 1250, "too long"),
        ("不要动", "no English word"),
        ("не двигайся", "no English word"),
        ("¿¡ -- ;;", "no letter"),
    ],
)
def test_bad_text_is_unsure_and_says_why(text, note):
    status, said, complaint = run("words", "overcooked", text)
    assert (status, complaint) == (0, "")
    assert "→ unsure (" in said and note in said
    assert len(said) < 400 and not set(said) & set("\x00\x07\x1b")
    line = json.loads(run("words", "overcooked", "--json", text)[1])
    assert line["kind"] == "none" and line["unsure"] and note in line["note"]
    assert (line["text"], line["nearest"], line["probability"]) == (text, [], 0)


def test_standard_input_is_read_a_text_a_line():
    status, said, _ = run("words", "box_pushing", "--json", stdin=b"push\n\n  \nstay\r\n")
    assert status == 0
    assert [json.loads(line)["kind"] for line in said.splitlines()] == ["push", "stay"]


@pytest.mark.parametrize(
    ("args", "stdin", "complaint"),
    [
        (("box_pushing",), b"push\n\xff\xfe\n", "not UTF-8 text (invalid start byte at byte 5)"),
        (("box_pushing",), "push".encode("utf-16"), "not UTF-8 text"),
        (("box_pushing", "caf\udce9 stay"), b"", "not UTF-8 text"),
        (("box_pushing", "--json", "\udce9"), b"", "not UTF-8 text"),
        (("box_pushing",), b"", "nothing to understand"),
        (("box_pushing",), b" \n\n", "nothing to understand"),
        (("box_pushing",), None, "nothing to understand"),
        (("box_pushin", "push"), b"", "did you mean 'box_pushing'?"),
        (("", "push"), b"", "neither a world nor a file"),
        ((str(Path(__file__).parent), "push"), b"", "neither a world nor a file"),
        (("kitchen", "--ablation"), b"", "world 'kitchen' is unknown"),
        (("overcooked", "push", "--ablation"), b"", "--ablation takes a world alone"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(args, stdin, complaint):
    status, said, told = run("words", *args, stdin=stdin)
    assert (status, said) == (1, "")
    assert complaint in told and told.startswith("mavic: ") and "Traceback" not in told


def test_a_missing_encoder_says_what_to_type(monkeypatch):
    monkeypatch.setattr("mavic.language.encoder.open_encoder", missing)
    status, _, told = run("words", "box_pushing", "a sentence nobody has said before")
    assert status == 1 and "pip install 'mavic[language]'" in told


def test_the_table_of_targets_names_every_file_it_used(monkeypatch):
    # the third takes as long as both
    monkeypatch.setattr(lexicon, "WORLDS", ("box_pushing", "warehouse"))
    monkeypatch.setattr(measure, "report_words", functools.cache(measure.report_words))
    status, said, _ = run("words", "--report")
    assert status == 0
    plain = " ".join(said.split())
    for world in lexicon.WORLDS:
        shares, _ = measure.report_words(world, prefix=measure.JUDGED)
        assert f"{world}: test phrases, never used for any choice" in plain
        assert f"{world}: development sets of the second author, trained on" in plain
        assert f"{world}: development sets of the first author, trained on" in plain
        assert f"phrases of mavic/envs/{world}: phrases/final_infeasible.toml" in plain
        for share in shares:
            row = f"{share.measure} {share.hits}/{share.total} {share.share:.1%}"
            assert row in plain and share.file in plain
    targets = len(measure.TARGETS) * len(lexicon.WORLDS)
    assert said.count("% met") + said.count("% missed") == targets
    assert run("words", "box_pushing", "--report")[0] == 1


def test_ablation_shows_what_is_there_and_what_to_type_for_the_rest(monkeypatch):
    def variant(name):
        def prepare(train):
            if name == "absent":
                raise EncoderError("not installed; type: this")
            return measure._bag_of_words(train)

        return prepare

    monkeypatch.setattr(
        measure, "VARIANTS", {"words": variant("words"), "absent": variant("absent")}
    )
    status, said, _ = run("words", "warehouse", "--ablation")
    assert status == 0 and "left out: absent: not installed; type: this" in said
    plain = " ".join(said.split())
    for row in measure.ablation("warehouse", ("words",)):
        assert f"{row.accuracy:.1%}" in said and f"{row.left_right:.1%}" in said
        assert f"warehouse: % right by kind, {row.phrases}" in plain
    assert said.count("fetch-tool-1-first") == 2

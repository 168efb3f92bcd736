"""`mavic words`: what a sentence is understood as, the tables, and clear answers to bad input."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import built_in
import pytest
from rich.console import Console

from mavic.apps import cli, console, reader_tables
from mavic.language.encoder import EncoderError
from mavic.language.reader import ablation, measure


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*args, stdin=b""):
    """The exit status of a command and what it wrote to both streams."""
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
def test_a_text_that_is_no_sentence_is_unsure_with_a_reason(text, note):
    status, said, complaint = run("words", "overcooked", text)
    assert (status, complaint) == (0, "")
    assert "→ unsure (" in said and note in said
    assert len(said) < 400 and not set(said) & set("\x00\x07\x1b")
    line = json.loads(run("words", "overcooked", "--json", text)[1])
    assert line["kind"] == "none" and line["unsure"] and note in line["note"]
    assert (line["text"], line["nearest"], line["probability"]) == (text, [], 0)


def test_standard_input_has_one_sentence_per_line():
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
def test_unreadable_input_is_refused_with_a_message(args, stdin, complaint):
    status, said, complained = run("words", *args, stdin=stdin)
    assert (status, said) == (1, "")
    assert (
        complaint in complained
        and complained.startswith("mavic: ")
        and "Traceback" not in complained
    )


def test_a_missing_encoder_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("mavic.language.encoder.open_encoder", missing)
    status, _, complained = run("words", "box_pushing", "a sentence nobody has said before")
    assert status == 1 and "pip install 'mavic[language]'" in complained


@pytest.mark.long
def test_the_report_shows_every_share_with_its_source_and_target():
    worlds = ("box_pushing", "warehouse")  # the third one takes as long as both
    out = io.StringIO()
    for table in reader_tables.report_tables(worlds):
        Console(file=out, width=80).print(table, highlight=False)
    plain = " ".join(out.getvalue().split())
    for world in worlds:
        shares, _ = measure.measure(built_in.instructions(world), built_in.phrases(world))
        assert f"{world}: blind test phrases, never used for any choice" in plain
        for author in ("first", "second", "third", "sixth"):
            assert f"{world}: development sets of the {author} author" in plain
        assert "remark heard as meant" in plain
        assert f"phrases of mavic/envs/{world}: phrases.toml, development, third" in plain
        for share in shares:
            row = f"{share.measure} {share.hits}/{share.total} {share.share:.1%}"
            assert row in plain and share.source in plain
    targets = len(measure.TARGETS) * len(worlds)
    assert plain.count("% met") + plain.count("% missed") == targets
    assert run("words", "box_pushing", "--report")[0] == 1


def test_the_report_covers_every_world_with_phrases_and_no_other(monkeypatch):
    measured = []

    def record(file, phrases, set, author):
        measured.append((file.world, set, author))
        return (), ()

    monkeypatch.setattr(measure, "measure", record)
    assert len(list(reader_tables.report_tables())) == 5 * len(
        built_in.WORLDS
    )  # blind, and four authors
    assert measured[: len(built_in.WORLDS)] == [(world, "blind", "") for world in built_in.WORLDS]


def test_ablation_shows_the_installed_variants_and_how_to_install_the_others(monkeypatch):
    def variant(name):
        def prepare(train):
            if name == "absent":
                raise EncoderError("not installed; type: this")
            return ablation._bag_of_words(train)

        return prepare

    monkeypatch.setattr(
        ablation, "VARIANTS", {"words": variant("words"), "absent": variant("absent")}
    )
    status, said, _ = run("words", "warehouse", "--ablation")
    assert status == 0 and "left out: absent: not installed; type: this" in said
    plain = " ".join(said.split())
    file, phrases = built_in.instructions("warehouse"), built_in.phrases("warehouse")
    for row in ablation.ablation(file, phrases, ("words",)):
        assert f"{row.accuracy:.1%}" in said and f"{row.left_right:.1%}" in said
        assert f"warehouse: % right by kind, {row.phrases}" in plain
    assert said.count("fetch-tool-1-first") == 2

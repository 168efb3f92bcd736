"""`mavic words`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError
from mavic.apps.commands.options import WorldName
from mavic.hints import NAME_IT, suggest

if TYPE_CHECKING:
    from mavic.language.reader.read import Understanding


@dataclass(frozen=True, kw_only=True)
class Words(Command):
    """Print which kind of instruction a sentence asks for, with the probability and the nearest phrases.

    "end" stands for a sentence that ends what holds, "nothing" for a remark or a question, "unsure" for the rest. In
    the playground a team acts without asking back from 80 % on.

    For example:
      mavic words box_pushing "please do not push anything"
      cat requests.txt | mavic words overcooked --json
      mavic words box_pushing --ablation
      mavic words --report
    """

    world: Positional[WorldName] = ""
    """The world whose kinds are meant, or an instruction file of your own."""
    texts: Positional[tuple[str, ...]] = ()
    """The sentences. Without any, they are read from standard input, one per line."""
    obey_anyway: bool = False
    """Take the most probable kind even when unsure, as the paper's agents do."""
    json: bool = False
    """Print one JSON object per sentence: text, kind, probability, unsure, nothing, nearest, note, does."""
    ablation: bool = False
    """Instead, compare encoders, poolings and scalings: how well they tell kinds apart, and left from right."""
    score: Path | None = None
    """Instead, score what the playground does with a TOML file: "sentence" = "kind" in a table [sentences]."""
    report: bool = False
    """Instead, print how well sentences are understood in all worlds, by set of phrases (docs/words.md)."""

    def run(self) -> None:
        """Carry out the command."""
        if self.report:
            self._report()
        elif self.ablation:
            self._ablate()
        elif self.score is not None:
            self._score(self.score)
        else:
            self._understand()

    def _report(self) -> None:
        from mavic.apps import reader_tables

        if self.world or self.texts or self.json or self.ablation:
            raise UserError("--report stands alone: it covers all worlds")
        for table in reader_tables.report_tables():
            console.OUT.print(table)

    def _ablate(self) -> None:
        from mavic.apps import reader_tables

        if self.texts or self.json:
            raise UserError("--ablation takes a world alone")
        for part in reader_tables.ablation_tables(self.world):
            if isinstance(part, str):
                console.OUT.print(escape(part), soft_wrap=True)
            else:
                console.OUT.print(part)

    def _score(self, path: Path) -> None:
        from mavic.experiment import talk
        from mavic.language.conversation import sentences

        read, cast, rules = talk.conversation_of(self.world)
        try:
            found = sentences.read_sentences(path, tuple(cast.phrases))
        except sentences.SentenceFileError as error:
            raise UserError(str(error)) from None
        results = sentences.score(read, cast, rules, found, talk.agents_of(self.world))
        for result in (one for one in results if one.verdict != sentences.RIGHT):
            meant = " + ".join(result.sentence.means)
            line = f"{result.verdict}: {result.sentence.text} → {result.done} (meant: {meant})"
            console.OUT.print(escape(line), soft_wrap=True)
        for verdict in (sentences.RIGHT, sentences.ASKED, sentences.WRONG):
            count = sum(one.verdict == verdict for one in results)
            console.OUT.print(
                f"{verdict} {count}/{len(results)} = {count / max(len(results), 1):.1%}"
            )

    def _understand(self) -> None:
        from mavic.language.lexicon import Lexicon
        from mavic.language.reader import read

        lex = Lexicon.load(_instruction_path(self.world))
        sentences = [_given(text) for text in self.texts]
        if not sentences and sys.stdin is not None:
            sentences = _lines(sys.stdin.buffer.read())
        if not sentences:
            raise UserError(
                "nothing to understand: give sentences, or one per line on standard input"
            )
        for found in read.understand_all(lex, sentences):
            does = self._does(found.text)
            self._print_json(found, does) if self.json else self._print(found, does)

    def _does(self, text: str) -> str:
        """Return what the playground does with a sentence while nothing holds; "" for a file without a world."""
        from mavic.envs import api
        from mavic.experiment import talk
        from mavic.language.conversation import deciding, sentences

        if self.world not in api.names():
            return ""
        read, cast = talk.reading_of(self.world)
        return sentences.in_words(deciding.decide(read, cast, text), cast)

    def _print_json(self, found: Understanding, does: str) -> None:
        import json

        line = {
            "text": found.text,
            "kind": found.asked(self.obey_anyway),
            "probability": round(float(found.probability), 4),
            "unsure": found.unsure,
            "nothing": found.nothing,
            "nearest": [
                {"text": near, "kind": kind, "cosine": round(float(cosine), 3)}
                for near, kind, cosine in found.nearest
            ],
            "note": found.note,
            "does": does,
        }
        print(json.dumps(line, ensure_ascii=False))

    def _print(self, found: Understanding, does: str) -> None:
        from mavic.language import text

        answer = found.asked(self.obey_anyway) if self.obey_anyway or not found.unsure else "unsure"
        answer = "nothing" if found.nothing and not self.obey_anyway else answer
        sure = found.probabilities["none"] if answer == "nothing" else found.probability
        why = found.note or f"{sure:.0%}"
        console.OUT.print(
            f"{escape(text.shown(found.text))} → [bold]{answer}[/] ({escape(why)})",
            soft_wrap=True,
        )
        if does and does != answer and not does.startswith("asks back"):
            console.OUT.print(f"    in the playground: {escape(does)}", soft_wrap=True)
        for near, kind, cosine in found.nearest:
            console.OUT.print(f"    {cosine:.2f} {kind}: {escape(near)}")


def _instruction_path(world_or_file: str) -> Path:
    """Return the instruction file of a world, or the file that is named."""
    from mavic.envs import api
    from mavic.experiment.task import instructions_of

    if world_or_file in api.names():
        return instructions_of(world_or_file)
    path = Path(world_or_file)
    if path.suffix != ".toml" and not path.is_file():
        raise UserError(
            f"{world_or_file!r} is neither a world nor a file; {suggest(world_or_file, api.names())}; {NAME_IT}"
        )
    return path


def _given(text: str) -> str:
    """Return a text of the command line. Bytes that are not UTF-8 are an error."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("not UTF-8 text") from None
    return text


def _lines(raw: bytes) -> list[str]:
    """Return the lines of standard input that are not blank. Bytes that are not UTF-8 are an error."""
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 text ({error.reason} at byte {error.start})") from None
    return [line for line in decoded.splitlines() if line.strip()]

"""The files of a study: the links, and one record for each person, as JSON lines.

A line has `at`, the seconds that the person had the page open so far, and `what` happened:

- `begun` (the first line: who, in which kitchen and order, by which plan), `declined`, `left`, `forgotten`, `finished`;
- `task` (one starts), `over` (it has ended), `alone` (the other person has gone), `back` (the page was opened again);
- `prompt`, `passed`, `said`, `ended`, `drive`, `tick`: what happens in a kitchen, with the `tick` and, where a person
  acts, `by` (0 or 1);
- `answers`.

Nothing else is kept of a person: no name, no address, no date. `links.csv` has the tokens; without it nobody can tell
whose link a record belongs to.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from mavic.apps.participants.plan import Plan
from mavic.storage import files

LINKS = "links.csv"
LEFT = ("declined", "left", "forgotten")  # how a person's part ends before its end
_GONE = (*LEFT, "finished")


class RecordError(ValueError):
    """A file of a study cannot be used. The message names it and says why."""


@dataclass(kw_only=True)
class Record:
    """The record of one person."""

    path: Path
    lines: list[dict[str, Any]] = field(default_factory=list)
    _file: TextIO | None = None

    def write(self, **line: Any) -> None:
        """Add a line. It is with the operating system at once, so that a killed server loses none."""
        if self._file is None:
            self._file = open(self.path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self.lines.append(line)

    def forget(self, **line: Any) -> None:
        """Replace the whole record by one line."""
        self.close()
        self._replace([line])

    def forget_words_of(self, person: int) -> None:
        """Remove what another person of the kitchen said."""
        self.close()
        self._replace(
            [
                {**line, "text": ""} if line["what"] == "said" and line["by"] == person else line
                for line in self.lines
            ]
        )

    def _replace(self, lines: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        files.write_text(self.path, text)
        self.lines = lines

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def begun(self) -> dict[str, Any] | None:
        """The first line of a person who agreed to take part."""
        return self.lines[0] if self.lines and self.lines[0]["what"] == "begun" else None

    @property
    def gone(self) -> str:
        """How the person's part ended: declined, left, forgotten or finished; "" if it has not."""
        last = next((line["what"] for line in self.lines if line["what"] in _GONE), "")
        return str(last)

    @property
    def alone(self) -> bool:
        """Whether the person goes on without the other one of the kitchen."""
        return any(line["what"] == "alone" for line in self.lines)

    @property
    def seconds(self) -> float:
        """How long the person had the page open."""
        return float(self.lines[-1]["at"]) if self.lines else 0.0

    @property
    def done(self) -> int:
        """How many steps are done."""
        return sum(line["what"] in ("over", "answers") for line in self.lines)

    def has_started(self, step: int) -> bool:
        """Return whether a task has started, now or before the server stopped.

        Args:
            step: the number of its step.
        """
        return any(line["what"] == "task" and line["step"] == step for line in self.lines)

    def of_task(self, step: int) -> list[dict[str, Any]]:
        """Return the lines of a task since it last started; empty if it has not.

        Args:
            step: the number of its step.
        """
        starts = [
            number
            for number, line in enumerate(self.lines)
            if line["what"] == "task" and line["step"] == step
        ]
        return self.lines[starts[-1] + 1 :] if starts else []


def read_record(path: Path) -> Record:
    """Return the record in a file, empty if there is none. A last line that a killed server left unfinished is cut off.

    Args:
        path: the file.
    """
    if not path.is_file():
        return Record(path=path)
    whole = files.read_bytes(path)
    kept = whole[: whole.rfind(b"\n") + 1]
    lines = []
    for number, text in enumerate(kept.decode("utf-8", "replace").splitlines(), start=1):
        try:
            line = json.loads(text)
            if not isinstance(line["what"], str) or not isinstance(line["at"], int | float):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise RecordError(f"{path}:{number}: this is no line of a record") from None
        lines.append(line)
    if kept != whole:
        files.write_bytes(path, kept)
    return Record(path=path, lines=lines)


def path_of(folder: Path, participant: int) -> Path:
    """Return the path of a person's record.

    Args:
        folder: the folder of the study.
        participant: the person's number, from 1.
    """
    return folder / f"participant-{participant:04d}.jsonl"


def read_folder(folder: Path) -> list[Record]:
    """Return all records of a study.

    Args:
        folder: the folder of the study.
    """
    found = [read_record(path) for path in sorted(folder.glob("participant-*.jsonl"))]
    if not found:
        raise RecordError(
            f"{folder}: no records of a study (participant-*.jsonl); name the folder that "
            "`mavic play --study` wrote"
        )
    return found


def links(folder: Path, plan: Plan) -> list[str]:
    """Return the token of each person. New ones are added to the file if the plan has more participants than before.

    Args:
        folder: the folder of the study.
        plan: the plan.
    """
    path = folder / LINKS
    tokens: list[str] = []
    if path.is_file():
        for number, row in enumerate(csv.reader(io.StringIO(path.read_text(encoding="utf-8")))):
            if number and len(row) == 3:
                tokens.append(row[2].rpartition("/")[2])
    known = len(tokens)
    tokens += [secrets.token_urlsafe(16) for _ in range(plan.participants - known)]
    if len(tokens) > known:
        rows = [
            (number + 1, number // plan.people + 1, f"/s/{token}")
            for number, token in enumerate(tokens)
        ]
        files.write_text(path, as_csv(("participant", "kitchen", "link"), rows))
    return tokens


def check_marks(records: Iterable[Record], plan: Plan, folder: Path) -> None:
    """Raise `RecordError` if a record was made with another plan.

    Args:
        records: the records.
        plan: the plan.
        folder: the folder of the study.
    """
    for record in records:
        if record.begun is not None and record.begun["plan"] != plan.mark:
            raise RecordError(
                f"{folder}: {record.path.name} was made with another plan (only participants may grow); "
                "name another folder: --records FOLDER"
            )


def as_csv(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe before it.

    Args:
        names: the columns.
        rows: their values; None is empty.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return made.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value

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
_COLUMNS = ("participant", "kitchen", "link")
_RESTORE = (
    "put the file back as it was (columns may be added), or the links that were given out are dead"
)


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

    def forget_lines_of(self, person: int) -> None:
        """Remove what another person of the kitchen said and did."""
        self.close()
        self._replace([line for line in self.lines if line.get("by") != person])

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


def cut_unfinished(path: Path) -> None:
    """Cut off a last line that a killed server left unfinished. Only who holds the folder's lock may do this.

    Args:
        path: the file of a record; nothing happens if there is none.
    """
    if path.is_file():
        whole = files.read_bytes(path)
        if (kept := _whole_lines(whole)) != whole:
            files.write_bytes(path, kept)


def _whole_lines(written: bytes) -> bytes:
    return written[: written.rfind(b"\n") + 1]


def read_record(path: Path) -> Record:
    """Return the record in a file, empty if there is none. A last line that is not finished is left out.

    Args:
        path: the file.
    """
    if not path.is_file():
        return Record(path=path)
    lines = []
    written = _whole_lines(files.read_bytes(path)).split(b"\n")[:-1]
    for number, text in enumerate(written, start=1):  # texts may have line ends of Unicode
        try:
            line = json.loads(text)
            if not isinstance(line["what"], str) or not isinstance(line["at"], int | float):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise RecordError(f"{path}:{number}: this is no line of a record") from None
        lines.append(line)
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
    written = path.read_text(encoding="utf-8-sig") if path.is_file() else as_csv(_COLUMNS, ())
    table = csv.DictReader(io.StringIO(written))
    tokens = [_token(path, number, row) for number, row in enumerate(table, start=1)]
    columns = table.fieldnames or _COLUMNS
    if missing := [name for name in _COLUMNS if name not in columns]:
        raise RecordError(f"{path}: it has no column {missing[0]!r}; {_RESTORE}")
    known = len(tokens)
    tokens += [secrets.token_urlsafe(16) for _ in range(plan.participants - known)]
    if len(tokens) > known:
        new: list[dict[str, Any]] = [
            {
                "participant": number + 1,
                "kitchen": number // plan.people + 1,
                "link": f"/s/{tokens[number]}",
            }
            for number in range(known, len(tokens))
        ]
        rows = as_csv((), [[row.get(name, "") for name in columns] for row in new]).lstrip("\n")
        files.write_text(path, written.rstrip("\n") + "\n" + rows)
    return tokens


def _token(path: Path, number: int, row: dict[str, Any]) -> str:
    """Return the token in a row of the links, which must be that of a participant."""
    token = (row.get("link") or "").strip().rpartition("/")[2]
    if (row.get("participant") or "").strip() != str(number) or not token:
        raise RecordError(
            f"{path}: row {number} is not the link of participant {number}; {_RESTORE}"
        )
    return token


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

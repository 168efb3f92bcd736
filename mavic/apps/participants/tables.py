"""The records of a study as CSV: a row for each person, each task and each sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mavic.apps.participants import records
from mavic.apps.participants.records import Record
from mavic.storage import files

_PERSON = ("participant", "kitchen", "order", "state", "seconds")
_TASK = (
    *(
        "participant",
        "kitchen",
        "order",
        "place",
        "task",
        "world",
        "team",
        "seed",
        "how",
        "ticks",
        "earned",
    ),
    *(
        "prompts",
        "said",
        "understood",
        "right",
        "driven",
        "complied",
        "followed",
        "judged",
        "seconds",
    ),
)
_SAID = (
    *(
        "participant",
        "kitchen",
        "place",
        "task",
        "world",
        "team",
        "tick",
        "by_this_person",
        "text",
        "kind",
        "also",
    ),
    *(
        "probability",
        "given",
        "refused",
        "ends",
        "prompt",
        "right",
        "ticks_after_prompt",
        "seconds_after_prompt",
    ),
)


def export(folder: Path, out: Path) -> list[Path]:
    """Write participants.csv, tasks.csv and said.csv. Return their paths.

    Args:
        folder: the folder of the study.
        out: the folder to write to.
    """
    found = [one for one in records.read_folder(folder) if one.begun is not None]
    tasks = [task for record in found for task in _tasks(record)]
    tables = {
        "participants": (_PERSON, [_person(record) for record in found]),
        "tasks": (_TASK, tasks),
        "said": (_SAID, [said for record in found for said in _said(record)]),
    }
    written = []
    for name, (columns, rows) in tables.items():
        extra = tuple(dict.fromkeys(key for row in rows for key in row if key not in columns))
        names = (*columns, *extra)
        cells = [[row.get(key) for key in names] for row in rows]
        path = out / f"{name}.csv"
        files.write_text(path, records.as_csv(names, cells))
        written.append(path)
    return written


def _base(record: Record) -> dict[str, Any]:
    begun = record.begun or {}
    return {name: begun.get(name) for name in ("participant", "kitchen", "order")}


def _answers(line: dict[str, Any]) -> dict[str, Any]:
    return {f"answer_{name}": answer for name, answer in line["answers"].items()}


def _person(record: Record) -> dict[str, Any]:
    """Return a person's row, with the answers at the end of the study."""
    row = {**_base(record), "state": record.gone or "unfinished", "seconds": record.seconds}
    for line in record.lines:
        if line["what"] == "answers" and line["after"] == "end":
            row |= _answers(line)
    return row


def _parts(record: Record) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each task's first line and the lines up to the next task. A task that was begun anew counts once."""
    starts = [i for i, line in enumerate(record.lines) if line["what"] == "task"]
    for start, end in zip(starts, [*starts[1:], len(record.lines)], strict=True):
        line = record.lines[start]
        if end < len(record.lines) and record.lines[end]["step"] == line["step"]:
            continue
        yield line, record.lines[start + 1 : end]


def _tasks(record: Record) -> Iterator[dict[str, Any]]:
    """Yield a row for each task, with the answers about it and about its team."""
    for place, (task, lines) in enumerate(_parts(record), start=1):
        over = next((line for line in lines if line["what"] == "over"), None)
        upto = lines[: lines.index(over)] if over else lines
        ticks = [line for line in upto if line["what"] == "tick"]
        mine = [line for line in upto if line.get("by") == (record.begun or {}).get("person")]
        said = [line for line in mine if line["what"] == "said"]
        judged = [v["followed"] for line in ticks for v in line["verdicts"]]
        complies = [c for line in ticks for c in line["complies"] if c is not None]
        row = {
            **_base(record),
            "place": place,
            **{name: task[name] for name in ("task", "world", "team", "seed")},
            "how": over["how"] if over else "unfinished",
            "ticks": len(ticks),
            "earned": over["earned"] if over else None,
            "prompts": sum(line["what"] == "prompt" for line in upto),
            "said": len(said),
            "understood": sum(line["given"] for line in said),
            "right": sum(line["right"] is True for line in said),
            "driven": sum(line["what"] == "drive" for line in mine),
            "complied": round(sum(complies) / len(complies), 4) if complies else None,
            "followed": sum(judged),
            "judged": len(judged),
            "seconds": round((over or (upto or [task])[-1])["at"] - task["at"], 2),
        }
        for line in lines:
            if line["what"] == "answers" and line["after"] != "end":
                row |= _answers(line)
        yield row


def _said(record: Record) -> Iterator[dict[str, Any]]:
    """Yield a row for each sentence that was said in the person's kitchens."""
    me = (record.begun or {}).get("person")
    for place, (task, lines) in enumerate(_parts(record), start=1):
        asked: dict[str, Any] | None = None
        for line in lines:
            if line["what"] == "prompt":
                asked = line
            if line["what"] != "said":
                continue
            about = asked if asked is not None and line["prompt"] == asked["prompt"] else None
            yield {
                **{name: _base(record)[name] for name in ("participant", "kitchen")},
                "place": place,
                **{name: task[name] for name in ("task", "world", "team")},
                "by_this_person": line["by"] == me,
                **{name: line[name] for name in _SAID if name in line},
                "ticks_after_prompt": line["tick"] - about["tick"] if about else None,
                "seconds_after_prompt": round(line["at"] - about["at"], 2) if about else None,
            }

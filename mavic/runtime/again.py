"""The events of a log once more: does the team decide the same?"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mavic.runtime import log as logs
from mavic.runtime.reading import Reading
from mavic.runtime.team import Start, open_team


class Compared(NamedTuple):
    """How many decisions were compared, and those that differ, in words."""

    decisions: int
    differences: tuple[str, ...]


class _Remembered:
    """A reader that answers as the log says."""

    line: dict[str, Any]

    def read(self, text: str) -> Reading:
        vector = self.line.get("vector")
        return Reading(
            kind=self.line["kind"],
            unsure=False,
            shares=np.array(self.line["shares"], np.float32),
            vector=None if vector is None else np.array(vector, np.float32),
        )


def again(folder: str | Path, path: str | Path) -> Compared:
    """Give a team the events of a log again, with the same random numbers, and compare its decisions.

    Args:
        folder: the exported team.
        path: the log.
    """
    lines = list(logs.read(path))
    if not lines:
        raise logs.LogError(f"{path}: the log is empty")
    first, time, reader = lines[0], [lines[0]["t"]], _Remembered()
    wanted = deque(line for line in lines if line["event"] == "start")
    count, differences, draws = len(wanted), [], deque(line["draw"] for line in wanted)
    team = open_team(
        folder,
        reader=reader,
        greedy=first["greedy"],
        shield=first["shield"],
        silent_after=None,  # the log says who was silent
        clock=lambda: time[0],
        draw=lambda agent: draws.popleft() if draws else 0.0,
    )
    for line in lines[1:]:
        time[0], event, agent = line["t"], line["event"], line.get("agent", "")
        reader.line = line
        commands: Any = ()
        if event == "begin":
            team.begin()
        elif event == "say":
            words = {"text": line["text"]} if "shares" in line else {"kind": line["kind"]}
            team.say(**words, to=line["to"], until=line["until"], also=line["also"])
        elif event == "end":
            team.tick() if line["by"] == "deadline" else team.end()
        elif event == "silent":
            team.lost(agent)
        elif event == "observed":
            available = line.get("available")
            offered = available and np.array(available)
            commands = team.observed(agent, line["observation"], offered, line.get("holds"))
        elif event in ("ended", "failed"):
            getattr(team, event)(agent)
        for start in (one for one in commands if isinstance(one, Start)):
            old = wanted.popleft() if wanted else {"agent": "", "macro": "nothing", "number": 0}
            if (start.agent, start.macro) != (old["agent"], old["macro"]):
                differences.append(
                    f"decision {start.number}: {start.agent} {start.macro}, in the log {old['agent']} {old['macro']}"
                )
    differences += [f"decision {line['number']} of the log was not made" for line in wanted]
    return Compared(count, tuple(differences))

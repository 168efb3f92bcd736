"""The log of a team on robots as a recording, for the ordinary replay.

The robots' world is not known, so the picture shows only the robots: what each does, and which are silent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mavic.apps.frames import Frame
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.runtime import log as logs

COLOURS = ("blue", "orange", "green", "purple")
SHOWN = ("say", "end", "refused", "start", "cancel", "failed", "silent", "back", "begin")
"""The events that make a frame. Reports alone make none."""


@dataclass
class _State:
    """What a log says of the present."""

    agents: tuple[str, ...]
    macro: dict[str, str] = field(default_factory=dict)
    doing: dict[str, str] = field(default_factory=dict)  # idle, running, cancelling, silent
    complies: dict[str, bool | None] = field(default_factory=dict)
    held: list[dict[str, Any]] = field(default_factory=list)
    given: int = 0
    judged: int = 0
    followed: int = 0


def recording_of(path: str | Path, ticks: int | None = None) -> Recording:
    """Return the recording of a log: one frame for each moment in which something was decided or said.

    Args:
        path: the log.
        ticks: how many frames at most.
    """
    lines = logs.read(path)
    first = next(lines, None)
    if first is None:
        raise logs.LogError(f"{path}: the log is empty")
    state, frames = _State(agents=tuple(first["agents"])), []
    world, moment = first["world"], None
    events: list[dict[str, Any]] = []
    for line in lines:
        if moment is not None and line["t"] != moment and any(e["event"] in SHOWN for e in events):
            frames.append(_frame(state, world, events, moment - first["t"]))
            events = []
            if ticks is not None and len(frames) >= ticks:
                break
        moment = line["t"]
        events.append(line)
    else:
        if events and moment is not None:
            frames.append(_frame(state, world, events, moment - first["t"]))
    if not frames:
        raise logs.LogError(f"{path}: nothing was decided or said")
    return Recording(
        name=f"log of {Path(path).name}",
        world=world,
        agents=state.agents,
        kinds=("none", *first["kinds"]),
        frames=tuple(frames),
    )


def _frame(state: _State, world: str, events: list[dict[str, Any]], time: float) -> Frame:
    """Apply the events of one moment and return what is to be seen after them."""
    verdicts: list[dict[str, Any]] = []
    refused, notes, decided = [], [], set()
    for line in events:
        agent, event = line.get("agent", ""), line["event"]
        if event == "start":
            decided.add(agent)
            state.macro[agent], state.doing[agent] = line["macro"], "running"
            state.complies[agent] = line["complies"]
            for one in state.held:
                if agent in one["to"]:
                    one["decided"] = True
                    one["obeyed"] &= line["complies"] is not False
        elif event == "say":
            if not line["also"]:
                verdicts += _closed(state, state.held)
            state.given += 1
            more = dict(number=state.given, obeyed=True, decided=False, since=line["t"])
            state.held.append({**line, **more})
        elif event == "end":
            verdicts += _closed(state, [one for one in state.held if one["kind"] in line["kinds"]])
        elif event == "refused":
            refused.append(line["text"])
        elif event == "begin":
            verdicts += _closed(state, state.held)
        elif event in ("cancel", "ended", "failed", "silent", "back"):
            words = {"cancel": "cancelling", "silent": "silent"}
            state.doing[agent] = words.get(event, "idle")
        if event in ("failed", "silent", "back"):
            notes.append(f"{agent}: {event} {line.get('why', '')}".rstrip())
    shown = [_instruction(state, one, events[-1]["t"]) for one in state.held]
    frame = Frame(
        time=round(time),
        scene=_scene(state, notes),
        agents=[_agent(state, world, name, name in decided) for name in state.agents],
        instruction=shown[0] if shown else None,
        reward=0.0,
        earned=0.0,
        events=[],
        verdicts=verdicts,
        refused=refused,
        judged=state.judged,
        followed=state.followed,
        values=None,
        over="",
    )
    if len(shown) > 1:
        frame["also"] = shown[1]
    return frame


def _closed(state: _State, over: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Take instructions away and return the verdicts on those under which somebody decided."""
    state.held = [one for one in state.held if one not in over]
    counted = [one for one in over if one["decided"]]
    state.judged += len(counted)
    state.followed += sum(one["obeyed"] for one in counted)
    return [dict(number=o["number"], kind=o["kind"], followed=o["obeyed"]) for o in counted]


def _instruction(state: _State, one: dict[str, Any], now: float) -> Any:
    left = None if one["until"] is None else max(1, round(one["until"] - now))
    return {
        "number": one["number"],
        "text": one["text"],
        "kind": one["kind"],
        "agents": [state.agents.index(name) for name in one["to"]],
        "left": left,
        "held": round(now - one["since"]),
    }


def _agent(state: _State, world: str, name: str, decided: bool) -> Any:
    macro, doing = state.macro.get(name, ""), state.doing.get(name, "idle")
    told = any(name in one["to"] for one in state.held)
    words = api.known(world).macro_word(macro) if doing == "running" else doing
    return {
        "name": name,
        "macro": macro,
        "doing": words,
        "decided": decided,
        "complies": state.complies.get(name) if told and doing == "running" else None,
        "holds": "",
    }


def _scene(state: _State, notes: list[str]) -> dict[str, Any]:
    """Return the robots in a row."""
    sprites = []
    for place, name in enumerate(state.agents):
        silent = state.doing.get(name) == "silent"
        sprites.append(
            dict(
                shape="robot",
                x=1.0 + 2 * place,
                y=1.0,
                width=1.0,
                height=1.0,
                label=str(place),
                colour="grey" if silent else COLOURS[place % len(COLOURS)],
                heading="",
                holds="",
                name=name,
                picture="",
                carries="",
            )
        )
    wide = 2.0 * len(state.agents) + 1
    return dict(width=wide, height=3.0, sprites=sprites, notes=notes, steps=[])

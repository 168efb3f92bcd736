"""What a page shows: where a person is in the study, as a screen."""

from __future__ import annotations

from typing import Any

from mavic.apps import replay
from mavic.apps.participants import balance, messages
from mavic.apps.participants.balance import Step
from mavic.apps.participants.kitchen import Kitchen
from mavic.apps.participants.messages import Screen
from mavic.apps.participants.people import Person
from mavic.apps.participants.plan import Plan, seats_of
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.messages import GUEST, Frames
from mavic.envs import api
from mavic.experiment.talk import names_of
from mavic.storage import files

GOODBYE = {
    "declined": "You do not take part. Only that is kept.",
    "left": "You have left the study. What you did until then is kept.",
    "forgotten": "You have left the study. What you said and did was deleted.",
}


def steps_of(plan: Plan, person: Person) -> tuple[Step, ...]:
    """Return the steps of a person who has begun."""
    return balance.steps(plan, person.kitchen.row or 0)


def next_step(plan: Plan, person: Person) -> int:
    """Return the number of the person's next step. Who goes on alone has only the last questions left."""
    steps, done = steps_of(plan, person), person.record.done
    if not person.record.alone:
        return done
    last = len(steps) - bool(steps and steps[-1].after == "end")
    lines = person.record.lines
    since = next(number for number, line in enumerate(lines) if line["what"] == "alone")
    return last + sum(line["what"] == "answers" for line in lines[since:])


def code_of(plan: Plan, person: Person) -> str:
    """Return the person's completion code."""
    own = files.digest(f"{plan.mark} {person.record.path.name}".encode())[:8].upper()
    return plan.code or own


def prompt_of(kitchen: Kitchen) -> messages.Prompt:
    """Return the message that says what people are asked to say now."""
    prompt = kitchen.prompt
    return messages.Prompt(text=prompt.text if prompt else "", waits=kitchen.waiting)


def screen_of(plan: Plan, catalog: Catalog, person: Person, look: Frames | None) -> Screen:
    """Return what a person's page shows now.

    Args:
        plan: the plan.
        catalog: the teams.
        person: who looks.
        look: the state of the kitchen if the person is in one.
    """
    record = person.record
    if record.gone in GOODBYE:
        return Screen(name="left", title=plan.title, text=GOODBYE[record.gone])
    if record.begun is None:
        return Screen(name="consent", title=plan.title, text=plan.consent)
    steps, number = steps_of(plan, person), next_step(plan, person)
    base: dict[str, Any] = {"title": plan.title, "step": number, "steps": len(steps)}
    if number >= len(steps):
        return Screen(name="end", text=plan.thanks, code=code_of(plan, person), **base)
    step, kitchen = steps[number], person.kitchen.task
    if step.sort == "questions":
        asked = [q.model_dump(exclude={"after"}) for q in plan.question if q.after == step.after]
        about = {"task": f"About this task with {step.called}", "team": f"About {step.called}"}
        heading = about.get(step.after, "At the end")
        return Screen(name="questions", heading=heading, questions=asked, **base)
    task = plan.task[step.task]
    base |= {"heading": task.title, "text": task.text, "team": step.called, "people": plan.people}
    if look is not None and kitchen is not None:
        shown: dict[str, Any] = {
            "opened": kitchen.opened(person.place),
            "frames": kitchen.seen(look),
        }
        return Screen(name="task", look=replay.look(), **shown, **base)
    seats = seats_of(task, catalog, step.team)
    called = names_of(task.world, [*catalog.entry(task.world, step.team).agents, GUEST])
    seat = seats[person.place] if seats else None
    return Screen(
        name="intro",
        job=api.known(task.world).job,
        you="" if seat is None else called[-1 if seat == GUEST else int(seat)],
        again=record.has_started(number),
        waits=person.ready == number,
        **base,
    )

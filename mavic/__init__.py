"""Teams of agents that obey interrupting instructions and still do their task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from mavic.envs.api import Env
    from mavic.evaluation.judge import Agent, Judged
    from mavic.language.reader.endpoint import Endpoint
    from mavic.reporting.report import ReportPaths
    from mavic.rollout.plan import Most, Plan
    from mavic.session.loggers import OnPoint
    from mavic.session.session import Result
    from mavic.teams.team import TeamPolicy

__version__ = "0.3.0"
__all__ = ["evaluate", "judge", "load_policy", "make", "plan", "report", "train"]


def make(world: str, **options: Any) -> Env:
    """Return the environment of a world, such as `mavic.make("box_pushing", size=8)`.

    Args:
        world: the name of a world.
        options: its options, which `mavic worlds` lists.
    """
    from mavic.envs import api

    return api.make(world, **options)


def load_policy(path: str | Path, *, reader: str | Endpoint | None = None) -> TeamPolicy:
    """Return a trained team.

    Args:
        path: a policy file, or the name of a shipped team, such as "box_pushing/mavic".
        reader: who reads sentences. None: the team's own reader. "http://…": an OpenAI-compatible endpoint, which is
            given the kinds and must answer with one of them, "unsure" or "end"; anything else counts as unsure.
    """
    from mavic.teams.file import load

    return load(path, reader)


def plan(
    world: str,
    kind: str | None = None,
    *,
    gamma: float | None = None,
    most: Most | None = None,
    width: int = 50_000,
    **options: Any,
) -> Plan | None:
    """Search for the best plan of a small world without chance, such as `mavic.plan("box_pushing", most=300)`.

    Args:
        world: the name of a world.
        kind: the kind that the plan obeys from the start. None: no instruction; "KIND+KIND": both.
        gamma: the discount. None: that of the world's default preset.
        most: the most that can still be earned, a mean over agents: a number, or a function of a state and gamma. It
            ends the search early.
        width: how many situations are kept in a tick. With more of them the plan may not be the best.
        options: options of the world.

    Returns:
        The plan: its value, whether it is exact, and its macros. None if the kind replaces the task, and if no plan
        obeys it.
    """
    from mavic.envs import api
    from mavic.experiment.axes import Axes
    from mavic.experiment.methods import preset_of
    from mavic.rollout import plan as search

    gamma = preset_of(Axes().preset, world).gamma if gamma is None else gamma
    return search.plan(api.make(world, **options), kind, gamma=gamma, most=most, width=width)


def train(
    world: str,
    *,
    seeds: int | Sequence[int] = 3,
    condition: str | Sequence[str] = "live/by-kind",
    out: str | Path | None = None,
    quick: bool = False,
    brief: bool = False,
    words: bool = False,
    overwrite: bool = False,
    precheck: bool = True,
    initial: str | Path | None = None,
    on_point: OnPoint | Sequence[OnPoint] = (),
    console: Console | None = None,
    **choices: Any,
) -> list[Result]:
    """Train teams and evaluate them.

    All combinations that differ only in numbers train with all their seeds in one compiled program.

    Args:
        world: the name of a world, such as "box_pushing".
        seeds: how many, or which.
        condition: `schedule/rule[/overlap][/extras]`, such as "live/by-kind", or several.
        out: the folder for records, policies and checkpoints. None: write nothing.
        quick: evaluate with a quarter of the episodes.
        brief: evaluate without pairs of prohibitions and without the shield.
        words: also evaluate with unseen phrases.
        overwrite: replace records that were made with other seeds, numbers or options.
        precheck: check the instructions of a world of your own first, as `mavic check` does. An error stops.
        initial: a policy file or shipped team whose weights all seeds start from.
        on_point: called with every `mavic.session.loggers.Point` of the learning curves.
        console: a rich console for progress. None: silence.
        choices: further options of `mavic train`, spelled alike: axes of an experiment, such as
            method=["mavic", "naive"], network="shared", backbone="mac-cac", preset="paper", hear="vectors" or
            options={"size": 8}, and numbers of the preset, such as episodes=20_000.

    Returns:
        One `Result` for each combination.
    """
    from mavic.session import session

    return session.train(
        world,
        seeds=seeds,
        condition=condition,
        out=out,
        quick=quick,
        brief=brief,
        words=words,
        overwrite=overwrite,
        precheck=precheck,
        initial=initial,
        on_point=on_point,
        console=console,
        **choices,
    )


def evaluate(
    policy: str | Path,
    *,
    condition: str | None = None,
    quick: bool = False,
    words: bool = False,
    shield: bool = False,
) -> dict[str, Any]:
    """Play test episodes with a trained team.

    Args:
        policy: a policy file, or the name of a shipped team.
        condition: how the team is instructed. None: as in its training.
        quick: play a quarter of the episodes.
        words: also evaluate with unseen phrases.
        shield: enforce instructions: what they forbid is unavailable.

    Returns:
        The score: base return, compliance, value bias and more, which `docs/definitions.md` explains. Each number is a
        list with one entry, because a policy has one seed.
    """
    from mavic.session import session

    return session.evaluate_policy(
        policy, condition=condition, quick=quick, words=words, shield=shield
    )


def judge(
    agent: Agent,
    world: str,
    *,
    name: str = "agent",
    condition: str = "live/by-kind",
    episodes: int = 64,
    at_once: int = 16,
    out: str | Path | None = None,
    **options: Any,
) -> Judged:
    """Play test episodes with any callable: a heuristic, a torch policy, a language model, a person.

    It meets the episodes, instructions and metrics of trained teams, and its record is an ordinary one.

    Args:
        agent: from what is seen (`mavic.evaluation.judge.Seen`) to a macro for each agent, by its name or number;
            "unsure" asks back.
        world: the name of a world.
        name: what the agent is called in records and tables.
        condition: how it is instructed.
        episodes: played without instructions, and as many with instructions; a quarter of it under each kind.
        at_once: how many episodes are played side by side, 1 for a person.
        out: the folder for the record. None: write nothing.
        options: options of the world.

    Returns:
        The score, and a `summary` of its main numbers.
    """
    from mavic.evaluation import judge

    return judge.judge(
        agent,
        world,
        name=name,
        condition=condition,
        episodes=episodes,
        at_once=at_once,
        out=out,
        **options,
    )


def report(
    folder: str | Path, out: str | Path | None = None, *, console: Console | None = None
) -> ReportPaths:
    """Make all tables and figures from records. This needs the extra `report`: pip install 'mavic[report]'.

    Args:
        folder: the folder with the records.
        out: the folder for tables and figures. None: the same folder.
        console: a rich console for the table. None: silence.

    Returns:
        The paths of what was written.
    """
    from mavic.reporting import report

    return report.report(folder, out, console=console)

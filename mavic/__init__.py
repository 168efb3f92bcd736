"""Teams of agents that obey interrupting instructions and still do their task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from mavic.envs.api import Env
    from mavic.experiments.loggers import OnPoint
    from mavic.experiments.policy_file import TeamPolicy
    from mavic.experiments.study import Result
    from mavic.reporting.report import ReportPaths

__version__ = "0.2.0"
__all__ = ["evaluate", "load_policy", "make", "report", "train"]


def make(world: str, **options: Any) -> Env:
    """Return the environment of a world, such as `mavic.make("box_pushing", size=8)`. `mavic worlds` lists options."""
    from mavic.envs import api

    return api.make(world, **options)


def load_policy(path: str | Path) -> TeamPolicy:
    """Return a trained team: a shipped one by name, such as `box_pushing/mavic`, or one of your own by its file."""
    from mavic.experiments.policy_file import load

    return load(path)


def train(
    world: str,
    *,
    methods: str | Sequence[str] = "mavic",
    backbones: str | Sequence[str] = "mac-iac",
    networks: str | Sequence[str] = "",
    conditions: str | Sequence[str] = "live/by-kind",
    preset: str = "tuned",
    hear: str = "",
    encoder: str = "minilm-l3",
    seeds: int | Sequence[int] = 3,
    options: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    quick: bool = False,
    brief: bool = False,
    words: bool = False,
    overwrite: bool = False,
    initial: str | Path | None = None,
    on_point: OnPoint | Sequence[OnPoint] = (),
    console: Console | None = None,
    **numbers: Any,
) -> list[Result]:
    """Train teams and evaluate them. Return one `Result` for each combination of what is given.

    All combinations that differ only in numbers train with all their seeds in one compiled program.

    - `methods`: names such as "mavic" or ["mavic", "naive"], or "all".
    - `backbones`: who has which actor and critic, such as "mac-iac" or "mac-cac".
    - `networks`: "shared", "protected" or "residual". Empty: by the preset.
    - `conditions`: `schedule/rule[/overlap][/extras]`, such as "live/by-kind".
    - `preset`: "tuned", "paper" or "reference". `numbers` change single numbers of it, such as `episodes=20_000`.
    - `hear`: "kinds" or "vectors". Empty: by the preset.
    - `encoder`: of agents that hear vectors: "minilm-l3", "minilm-l6", "path:DIR", "hf:NAME", or one of your own.
    - `seeds`: how many, or which.
    - `options`: of the world, such as {"size": 8}.
    - `out`: the folder for records, policies and checkpoints. None: nothing is written.
    - `quick`: evaluate with a quarter of the episodes. `brief`: without pairs of prohibitions and without the shield.
    - `words`: also evaluate with unseen phrases.
    - `overwrite`: replace records that were made with other seeds, numbers or options.
    - `initial`: a policy file or shipped team whose weights all seeds start from.
    - `on_point`: called with every `mavic.experiments.loggers.Point` of the learning curves.
    - `console`: a rich console for progress. None: silence.
    """
    from mavic.experiments import study

    return study.train(
        world,
        methods=methods,
        backbones=backbones,
        networks=networks,
        conditions=conditions,
        preset=preset,
        hear=hear,
        encoder=encoder,
        seeds=seeds,
        options=options,
        out=out,
        quick=quick,
        brief=brief,
        words=words,
        overwrite=overwrite,
        initial=initial,
        on_point=on_point,
        console=console,
        numbers=numbers,
    )


def evaluate(
    policy: str | Path,
    *,
    condition: str | None = None,
    quick: bool = False,
    words: bool = False,
    shield: bool = False,
) -> dict[str, Any]:
    """Return the score of a policy file or a shipped team: base return, compliance, value bias and more.

    `docs/definitions.md` explains the numbers. Each is a list with one entry, because a policy has one seed.
    `condition` says how the team is instructed (default: as in its training). `quick` plays a quarter of the episodes,
    `words` also evaluates with unseen phrases, and with `shield` instructions are enforced.
    """
    from mavic.experiments import study

    return study.evaluate_policy(
        policy, condition=condition, quick=quick, words=words, shield=shield
    )


def report(
    folder: str | Path, out: str | Path | None = None, *, console: Console | None = None
) -> ReportPaths:
    """Make all tables and figures from the records in `folder`, in `out` (default: the same folder).

    Return the paths. This needs the extra `report`: pip install 'mavic[report]'.
    """
    from mavic.reporting import report

    return report.report(folder, out, console=console)

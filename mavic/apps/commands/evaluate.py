"""`mavic evaluate`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Evaluate a policy file: base return, compliance and value bias.

    Example: mavic evaluate box_pushing/mavic --condition live/by-kind
    """

    policy: Positional[Path]
    """The policy's file, with or without its ending, or a shipped team such as box_pushing/mavic."""
    condition: str | None = None
    """How the team is instructed: schedule/rule[/overlap][/extras] (default: the condition in the policy file)."""
    quick: bool = False
    """Evaluate with a quarter of the episodes."""
    words: bool = False
    """Also evaluate with phrases that the team was not trained on: held-out ones, novel ones and the paper's own."""
    shield: bool = False
    """Enforce instructions: what they forbid is not available to the agents they address."""
    json: bool = False
    """Print the whole score as one JSON object."""

    def run(self) -> None:
        """Carry out the command."""
        import json

        from mavic.experiment import records
        from mavic.experiment.config import ExperimentConfig
        from mavic.session import session
        from mavic.teams import facts as policy_facts

        if self.shield and self.words:
            raise UserError(
                "--words is evaluated without the shield: give one of --words, --shield"
            )
        score = session.evaluate_policy(
            self.policy,
            condition=self.condition,
            quick=self.quick,
            words=self.words,
            shield=self.shield,
        )
        if self.json:
            print(json.dumps(records.plain(score)))
            return
        hear = ExperimentConfig.of(policy_facts.read_facts(self.policy)["config"]).hear
        for line in _lines(score, hear):
            console.OUT.print(line)


def _lines(score: dict[str, Any], hear: str) -> Iterator[str]:
    """Yield the lines that describe the score of one seed of a team that hears vectors or kinds."""
    base, obeyed = score["base"], score["compliance"]
    share = _share(base["discounted"][0], score["optimum"], "optimum")
    yield (
        f"base return {base['discounted'][0]:.2f}{share}, solved {base['solved'][0]:.1%}, "
        f"{base['length'][0]:.1f} ticks ({base['episodes']} episodes)"
    )
    if math.isfinite(obeyed["per_instruction"][0]):
        yield (
            f"compliance {obeyed['per_instruction'][0]:.2%} of instructions, "
            f"{obeyed['per_decision'][0]:.2%} of decisions, {obeyed['per_step'][0]:.2%} of steps; greedy "
            f"{score['compliance_greedy']['per_instruction'][0]:.2%}; the task was solved in "
            f"{obeyed['solved'][0]:.1%} of these episodes"
        )
    else:
        yield "no instruction was given, so compliance is not known"
    for kind, given in obeyed["given"].items():
        if given[0]:
            yield f"  {kind}: {obeyed['followed'][kind][0]:.0f} of {given[0]:.0f}"
    for kind, part in score["under"].items():
        if not math.isfinite(part["task"][0]):
            continue
        share = _share(part["task"][0], score["optima"][kind], "best obedient plan")
        yield (
            f"under {kind} from start to end: task return {part['task'][0]:.2f}{share}, "
            f"solved {part['solved'][0]:.1%}, obeyed {part['obeyed'][0]:.1%}"
        )
    for pair, part in score.get("pairs", {}).items():
        yield (
            f"under {pair.replace('+', ' and ')}: task return {part['task'][0]:.2f}, "
            f"solved {part['solved'][0]:.1%}, both obeyed {part['obeyed'][0]:.1%}"
        )
    yield f"value bias (leak) {score['leak']['none'][0]:+.2%}"
    for name, words in score.get("words", {}).items():
        own = f"heard as their own vectors: {words['own_vector'][0]:.2%}; "
        yield (
            f"{name} words: {words['understood']} of {words['phrases']} phrases understood, "
            f"{words['per_instruction'][0]:.2%} of instructions in them followed "
            f"({own if hear == 'vectors' else ''}unsure ones too: {words['own_vector_anyway'][0]:.2%})"
        )


def _share(value: float, best: float | None, of: str) -> str:
    return f" ({value / best:.2%} of the {of})" if best else ""

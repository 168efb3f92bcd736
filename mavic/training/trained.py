"""A group after training, and what is made of it: teams, policy files and the lines of records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import Task
from mavic.instruct import reward
from mavic.learn.update import StaticConfig, TrainState
from mavic.learn.views import VIEWS
from mavic.teams import file as policy_files
from mavic.teams.networks import Networks
from mavic.teams.team import TeamPolicy, Weights
from mavic.training import divergence, population
from mavic.training.groups import Group
from mavic.training.population import Choice
from mavic.training.runs import Run, make_run


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A group after training. Runs are ordered by trained configuration, then by seed."""

    group: Group
    task: Task
    static: StaticConfig
    state: TrainState
    curve: list[dict[str, Any]]
    steps_per_second: float
    choices: tuple[Choice, ...] = ()
    """What was dropped of the populations, if there were any."""

    def places(self, config: ExperimentConfig) -> list[int]:
        """Return the indices of a configuration's seeds among the runs."""
        start = self.group.trained().index(config.as_trained()) * len(self.group.seeds)
        return list(range(start, start + len(self.group.seeds)))

    def teams_of(self, configs: Sequence[ExperimentConfig]) -> tuple[Run, TrainState]:
        """Return the runs and states of some configurations, ordered by configuration, then by seed."""
        group = self.group
        runs = [make_run(c, group.preset, self.task, seed) for c in configs for seed in group.seeds]
        places = np.array([place for config in configs for place in self.places(config)])
        return Run.stack(runs), jax.tree.map(lambda x: x[places], self.state)

    def state_of(self, config: ExperimentConfig, seed: int) -> TrainState:
        """Return the state of one seed of a configuration."""
        place = self.places(config)[self.group.seeds.index(seed)]
        return jax.tree.map(lambda x: x[place], self.state)

    def diverged(self, config: ExperimentConfig) -> list[int | None]:
        """Return for each seed of a configuration the point at which its training diverged, or None.

        Random macros need no training, so they cannot diverge.
        """
        seeds = len(self.group.seeds)
        if METHODS[config.method].random:
            return [None] * seeds
        points = divergence.first_points(self.curve, len(self.group.trained()) * seeds)
        return [points[place] for place in self.places(config)]

    def finite_seeds(self, config: ExperimentConfig) -> list[int]:
        """Return the seeds of a configuration whose training did not diverge."""
        pairs = zip(self.group.seeds, self.diverged(config), strict=True)
        return [seed for seed, point in pairs if point is None]

    def team(self, config: ExperimentConfig, seed: int) -> TeamPolicy:
        """Return the team of one seed of a configuration."""
        one = self.state_of(config, seed)
        weights = Weights(actor=one.actor, critic=one.critic, scale=one.scale)
        return TeamPolicy(weights, records.plain(self._facts(config, seed)))

    def save_team(self, path: Path, config: ExperimentConfig, seed: int, **more: Any) -> Path:
        """Write the team of one seed of a configuration to a policy file. Return the file's path.

        Args:
            path: the file, with an ending or without.
            config: the configuration.
            seed: its seed.
            more: further facts for the team's description.
        """
        facts = {**self._facts(config, seed), **more}
        return policy_files.save(path, self.state_of(config, seed), facts)

    def median_seed(self, score: dict[str, Any]) -> int:
        """Return the seed with the median base return of a score: the lower one of the middle two.

        The first of equal seeds counts. Seeds that diverged have no return and do not count.
        """
        returns = np.asarray(score["base"]["discounted"], float)
        order = np.argsort(returns, kind="stable")  # nan comes last
        return self.group.seeds[order[(np.isfinite(returns).sum() - 1) // 2]]

    def record_lines(
        self, config: ExperimentConfig, score: dict[str, Any] | None
    ) -> list[dict[str, Any]]:
        """Return the lines of a configuration's record: run, curve, and its score if there is one."""
        part, group = self.places(config), self.group
        curve = [
            {
                "type": "curve",
                **{k: v if k in divergence.SHARED else np.asarray(v)[part] for k, v in p.items()},
            }
            for p in self.curve
        ]
        if METHODS[config.method].random:  # it does not learn: this is vanilla's curve
            curve = []
        run = records.run_line(
            config, group.preset, group.seeds, steps_per_second=self.steps_per_second
        )
        if self.choices:
            run["population"] = self._population(config)
        if group.initial:
            run |= {"initial": group.initial, "initial_sha256": group.initial_sha256}
        return [run, *curve, *([score] if score else [])]

    def _population(self, config: ExperimentConfig) -> dict[str, Any]:
        """Return what became of a configuration's populations, for the record. Lists are by seed, then by member."""
        part, points = self.places(config), len(self.curve)
        trainings = population.cost(self.group.population, points)
        choices = [
            {
                "point": choice.point,
                "episodes": int(self.curve[choice.point - 1]["episodes"]),
                "members": [choice.members[place] for place in part],
                **{name: [rows[place] for place in part] for name, rows in choice.judged.items()},
                "kept": [choice.kept[place] for place in part],
            }
            for choice in self.choices
        ]
        return {
            "members": self.group.population,
            "trainings": trainings,
            "episodes": round(trainings * self.curve[-1]["episodes"]),
            "seconds": sum(point["seconds"] for point in self.curve),
            "choices": choices,
        }

    def _facts(self, config: ExperimentConfig, seed: int) -> dict[str, Any]:
        """Return the description of a team that is stored in its policy file."""
        task, static = self.task, self.static
        return {
            "world": config.world,
            "agents": list(task.env.agents),
            "macros": [[m.name for m in enum] for enum in task.env.macros],
            "macro_counts": [len(enum) for enum in task.env.macros],
            "kinds": list(task.file.names()),
            "examples": [kind.train[0] for kind in task.file.kinds],
            "addressed": _addressed_of(task),
            "encoder": task.lexicon.encoder,
            "encoder_hash": task.lexicon.encoder_hash,
            **Networks(actor=static.network, critic=static.critic).facts(),
            "observation": task.observation_size,
            "needs": VIEWS[static.network.shape.view].needs,
            "config": dataclasses.asdict(config),
            "preset": dataclasses.asdict(self.group.preset),
            "seed": seed,
            "module": api.module_of(config.world),
            "versions": records.versions(),
        }


def trained_of(path: str | Path, condition: str | None = None) -> Trained:
    """Return the team of a policy file as a group of one configuration and one seed, for evaluation.

    Args:
        path: the policy file, or the name of a shipped team.
        condition: how it is instructed. None: as in its training.
    """
    team = policy_files.load(path)
    config, task, preset = team.origin()
    if condition is not None:
        config = config.with_condition(condition)
    group = Group(configs=(config,), seeds=(team.facts["seed"],), preset=preset)
    one = jax.tree.map(lambda x: x[None], team.weights)
    return Trained(
        group=group,
        task=task,
        static=task.static_config(preset, config.network, config.backbone),
        state=TrainState(
            actor=one.actor,
            critic=one.critic,
            scale=one.scale,
            target=None,
            actor_optimizer=None,
            critic_optimizer=None,
            episodes=jnp.array([preset.episodes]),
        ),
        curve=[],
        steps_per_second=0.0,
    )


def _addressed_of(task: Task) -> list[list[str]]:
    """Return the names of the agents that each kind addresses."""
    rows = np.asarray(reward.rules_of(task.env, task.file).addressed)[1:]
    return [[name for name, to in zip(task.env.agents, row, strict=True) if to] for row in rows]

"""The recorded updates of the reference learners: `golden.sample.updates_folder` says where they are.

What a file holds is read from the file, so a further file is tested without a change here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from golden.sample import files, load, updates_folder
from mavic.experiment.methods import hyperparams_of, static_config_of
from mavic.learn import update
from mavic.learn.update import HyperParams, StaticConfig, TrainState
from mavic.preset import Preset
from mavic.types import Timestep, replace

ALGORITHMS = {
    "MacIAC": "mac-iac",
    "MacCAC": "mac-cac",
    "NaiveMacIACC": "mac-naive-iacc",
    "MacIAICC": "mac-iaicc",
}
VECTORS = jnp.zeros((1, 1))  # silence alone
NOBODY_SEES = 1e3  # stands for observations that no agent takes in
LAYERS = {"first": "fc1", "second": "fc2", "third": "fc3", "head": "fc4"}
GATES = {"wi": "weight_ih_l0", "wh": "weight_hh_l0", "bi": "bias_ih_l0", "bh": "bias_hh_l0"}


@dataclass(frozen=True)
class RecordedUpdates:
    """One file: consecutive updates of one learner."""

    path: Path

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Every array of the file."""
        return load(self.path)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The settings of the recorded training."""
        return json.loads(str(self.arrays["meta"]))

    @property
    def backbone(self) -> str:
        """Our name of the recorded algorithm."""
        return ALGORITHMS[self.meta["algorithm"]]

    @property
    def count(self) -> int:
        """The number of recorded updates."""
        return self.meta["updates_recorded"]

    def names(self, role: str) -> list[str]:
        """Return the names of all actors or critics in their order: agents' numbers, or `joint`."""
        return sorted({key.split("/")[1] for key in self.arrays if key.startswith(f"{role}/")})

    def get(self, number: int, key: str) -> np.ndarray:
        """Return an array of one update."""
        return self.arrays[f"u{number}/{key}"]

    def preset(self) -> Preset:
        """Return the recorded learner's numbers."""
        meta = self.meta
        assert not meta["hysteresis"] and not meta["obs_last_action"] and not meta["grad_clip"]
        return Preset(
            batch=meta["train_freq"],
            gamma=meta["gamma"],
            actor_lr=meta["actor_lr"],
            critic_lr=meta["critic_lr"],
            n_steps=max(1, meta["n_step_TD"]),
            epsilon_start=meta["eps_start"],
            epsilon_end=(meta["eps_end"],) * 2,
            epsilon_episodes=meta["eps_stable_at"],
            target_network=True,
            target_update_episodes=meta["c_target_update_freq"],
            hidden=meta["width"],
            drop_unfinished=True,
            baseline="after",
        )

    def static_config(self) -> StaticConfig:
        """Return the static part of our learner."""
        return static_config_of(
            self.preset(),
            "shared",
            self.backbone,
            observation=max(self.meta["obs_sizes"]),
            macro_counts=tuple(self.meta["n_actions"]),
            embedding=1,
            kinds=2,
        )

    def hyper(self) -> HyperParams:
        """Return our learner's numbers."""
        return hyperparams_of(self.preset())

    def ticks(self, number: int) -> Timestep:
        """Return the raw batch of one update as ticks [T, E, N]. All batches of a file have the same T."""
        longest = max(self.get(u, "batch/action").shape[1] for u in range(self.count))

        def get(key: str) -> np.ndarray:
            found = np.moveaxis(self.get(number, f"batch/{key}"), 0, 1)
            return np.pad(found, [(0, longest - len(found))] + [(0, 0)] * (found.ndim - 1))

        agents, width = range(self.meta["n_agent"]), max(self.meta["obs_sizes"])
        macros = np.asarray(self.meta["n_actions"])
        ended = get("mac_done").astype(bool)
        clock = np.arange(longest)[:, None]
        lengths = self.get(number, "batch/epi_len")[None]
        alive, over = clock < lengths, clock == lengths - 1
        terminal = (get("terminate") > 0) & over

        def seen(name: str) -> np.ndarray:
            each = [get(f"{name}/{i}") for i in agents]
            wide = [np.pad(x, [(0, 0)] * 2 + [(0, width - x.shape[-1])]) for x in each]
            return np.stack(wide, -2).astype(np.float32)

        fresh = np.concatenate([np.ones_like(ended[:1]), ended[:-1]])
        nobody = np.zeros(ended.shape, np.int32)
        flags = np.zeros(alive.shape, bool)
        return jax.tree.map(
            jnp.asarray,
            Timestep(
                observation=seen("obs"),
                available=np.broadcast_to(
                    np.arange(max(macros)) < macros[:, None], (*ended.shape, max(macros))
                ),
                forbidden=np.zeros((*ended.shape, max(macros)), bool),
                context=nobody,
                last_macro=nobody - 1,
                macro=get("action").astype(np.int32),
                fresh=fresh,
                kind=nobody,
                phrase=nobody,
                reward=np.repeat(get("tick_reward")[..., None], len(agents), -1).astype(np.float32),
                task_reward=get("tick_reward").astype(np.float32),
                complied=np.ones_like(ended),
                ended=(ended | over[..., None]) & alive[..., None],
                unfinished=over[..., None] & ~ended,
                switched=flags,
                terminal=terminal,
                bootstraps_from_self=np.zeros_like(ended),
                truncated=over & ~terminal,
                events=np.zeros((*alive.shape, 1), np.float32),
                closed=np.zeros(alive.shape, np.int32),
                followed=flags,
                next_observation=np.where(ended[..., None], seen("next_obs"), NOBODY_SEES),
                time=np.broadcast_to(clock, alive.shape).astype(np.int32),
                alive=alive,
            ),
        )

    def row_names(self, number: int) -> list[str]:
        """Return whose rows an update has: agents' numbers, or `joint`."""
        keys = (key.split("/") for key in self.arrays if key.startswith(f"u{number}/rows/"))
        return sorted({key[2] for key in keys})

    def layers(self, prefix: str, name: str, state: int, moment: str = "") -> Any:
        """Return the tensors of one network in our layout, without the axes of copies and parts."""
        start = "/".join(part for part in (prefix, name, moment) if part)

        def get(tensor: str) -> np.ndarray:
            return self.arrays[f"{start}/{tensor}"][state]

        layers = {
            ours: {"w": get(f"{theirs}.weight").T, "b": get(f"{theirs}.bias")}
            for ours, theirs in LAYERS.items()
        }
        layers["gru"] = {ours: get(f"gru.{theirs}").T for ours, theirs in GATES.items()}
        return layers

    def tensors(
        self, prefix: str, name: str, state: int, moment: str = ""
    ) -> dict[str, np.ndarray]:
        """Return the same by name."""
        layers = self.layers(prefix, name, state, moment)
        return {f"{layer}.{leaf}": x for layer, own in layers.items() for leaf, x in own.items()}

    def inputs(self, role: str, name: str) -> np.ndarray:
        """Return the rows of our first layer that the recorded inputs of a network have."""
        width, sizes = max(self.meta["obs_sizes"]), self.meta["obs_sizes"]
        team = name == "joint" or (role == "critic" and self.backbone == "mac-iaicc")
        if not team:
            return np.arange(sizes[int(name)])
        return np.concatenate([i * width + np.arange(size) for i, size in enumerate(sizes)])

    def into(self, like: Any, prefix: str, role: str, state: int, moment: str = "") -> Any:
        """Return parameters like ours with recorded numbers. What the reference does not have is zero."""
        like = jax.tree.map(lambda x: np.zeros(x.shape, np.float32), like)
        for i, name in enumerate(self.names(role)):
            for layer, leaves in self.layers(prefix, name, state, moment).items():
                for leaf, numbers in leaves.items():
                    index: tuple = (i, 0, *(slice(n) for n in numbers.shape))
                    if (layer, leaf) == ("first", "w"):
                        index = (i, 0, self.inputs(role, name))
                    like[layer][leaf][index] = numbers
        return jax.tree.map(jnp.asarray, like)

    def outof(self, tree: Any, role: str, name: str) -> dict[str, np.ndarray]:
        """Return the tensors of one of our networks that the reference has, by name."""
        i, like = self.names(role).index(name), self.layers(role, name, 0)
        found = {}
        for layer, leaves in like.items():
            for leaf, numbers in leaves.items():
                ours = np.asarray(tree[layer][leaf])[i, 0]
                if (layer, leaf) == ("first", "w"):
                    ours = ours[self.inputs(role, name)]
                found[f"{layer}.{leaf}"] = ours[tuple(slice(n) for n in numbers.shape)]
        return found

    def state(self, number: int) -> TrainState:
        """Return our learner's state before an update."""
        fresh = blank(self.static_config())

        def optimizer(role: str, like: Any) -> Any:
            adam, rest = getattr(fresh, f"{role}_optimizer")
            names = self.names(role)
            steps = [self.arrays[f"adam/{role}/{name}/step"][number] for name in names]
            moment = {
                ours: self.into(like, f"adam/{role}", role, number, theirs)
                for ours, theirs in (("mu", "exp_avg"), ("nu", "exp_avg_sq"))
            }
            return adam._replace(count=jnp.asarray(steps, jnp.int32), **moment), rest

        return replace(
            fresh,
            actor=self.into(fresh.actor, "actor", "actor", number),
            critic=self.into(fresh.critic, "critic", "critic", number),
            target=self.into(fresh.critic, "critic_tgt", "critic", number),
            actor_optimizer=optimizer("actor", fresh.actor),
            critic_optimizer=optimizer("critic", fresh.critic),
            episodes=jnp.int32(self.get(number, "episodes_before")),
        )


def blank(static: StaticConfig) -> TrainState:
    """Return a state of zeros in our layout, with the statistics of an untrained critic."""
    shapes = jax.eval_shape(lambda: update.init(jax.random.key(0), static))
    zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    ones = np.full(zeros.scale.weight.shape, 1e-6, np.float32)  # of values in units of 1
    return replace(zeros, scale=replace(zeros.scale, square=ones, weight=ones))


def all_named(start: str) -> dict[str, RecordedUpdates]:
    """Return the recordings whose names begin so: `mac` are updates, `collection` is a collection of episodes."""
    found = files(updates_folder()).items()
    return {name: RecordedUpdates(path) for name, path in found if name.startswith(start)}


def by_file(start: str) -> pytest.MarkDecorator:
    """Parametrize a test by the recordings whose names begin so."""
    found = all_named(start)
    assert found, f"no recordings in {updates_folder()} begin with {start}"
    return pytest.mark.parametrize("recorded", found.values(), ids=found.keys(), scope="module")

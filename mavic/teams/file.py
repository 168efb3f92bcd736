"""Policy files: a trained team's weights in safetensors, and a JSON file beside it that describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_weights
from safetensors.numpy import save as weights_bytes

from mavic.language.encoder import EncoderError, encoder_hash
from mavic.language.reader.endpoint import Endpoint
from mavic.learn.networks import Network
from mavic.learn.popart import Scale
from mavic.learn.update import TrainState
from mavic.storage import files
from mavic.storage.trees import flatten, unflatten
from mavic.teams import shipped
from mavic.teams.facts import FORMAT, UNREADABLE, PolicyError, read_facts
from mavic.teams.networks import Networks
from mavic.teams.team import TeamPolicy, Weights


def save(path: str | Path, state: TrainState | Weights, facts: dict[str, Any]) -> Path:
    """Write the team of one run and return its path.

    The description has the hash of the weights: `load` refuses weights that do not belong to it.

    Args:
        path: the policy file, with or without its ending.
        state: the weights.
        facts: the description of the team.
    """
    path = shipped.weights_of(path)
    named = flatten(Weights(actor=state.actor, critic=state.critic, scale=state.scale))
    if wrong := [name for name, leaf in named.items() if not np.isfinite(leaf).all()]:
        raise PolicyError(f"{path}: not written, {wrong[0]} holds numbers that are not finite")
    weights = weights_bytes(named)
    files.write_bytes(path, weights)
    _write_facts(path, {**facts, "weights_sha256": files.digest(weights)})
    return path


def _write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Write the description beside the weights, with a hash of itself."""
    content = json.loads(json.dumps({"format": FORMAT, **facts}))
    content.pop("sha256", None)
    text = json.dumps({**content, "sha256": files.digest_of(content)}, indent=1) + "\n"
    files.write_text(shipped.notes_of(path), text)


def load(path: str | Path, reader: str | Endpoint | None = None) -> TeamPolicy:
    """Return the team of a policy file or of a shipped team's name.

    Args:
        path: the file, with an ending or without, or the name.
        reader: who reads sentences: None for the team's own reader, or the address of an OpenAI-compatible endpoint.
    """
    bare = shipped.find(path)
    path, notes = shipped.weights_of(bare), shipped.notes_of(bare)
    for needed in (path, notes):
        if not needed.is_file():
            raise PolicyError(shipped.no_such_file(needed))
    facts = read_facts(path)
    try:
        expected = encoder_hash(facts["encoder"])
    except (ValueError, EncoderError) as error:
        raise PolicyError(f"{notes}: {error}") from None
    if facts["encoder_hash"] != expected:
        raise PolicyError(
            f"{notes}: trained with encoder {facts['encoder']} of hash {facts['encoder_hash'][:12]}, "
            f"here it has hash {expected[:12]}, so its vectors mean something else; use the encoder that the team "
            "was trained with, or train it anew"
        )
    weights = _weights(path, facts)
    try:
        return TeamPolicy(weights, facts, str(notes), reader)
    except PolicyError:
        raise
    except UNREADABLE as error:
        raise PolicyError(f"{notes}: not a policy's description ({error!r})") from None


def weights_digest(path: str | Path) -> str:
    """Return the SHA-256 of the weights of a policy file or of a shipped team."""
    return files.digest(_weights_bytes(shipped.weights_of(shipped.find(path))))


def _weights_bytes(path: Path) -> bytes:
    try:
        return files.read_bytes(path, files.LARGEST_WEIGHTS)
    except files.TooLargeError as error:
        raise PolicyError(str(error)) from None
    except FileNotFoundError:
        raise PolicyError(shipped.no_such_file(path)) from None
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror or error})") from None


def _weights(path: Path, facts: dict[str, Any]) -> Weights:
    """Return the weights of a policy. Their hash must be the one in the description."""
    data = _weights_bytes(path)
    if files.digest(data) != facts["weights_sha256"]:
        raise PolicyError(
            f"{path}: damaged, or of another team than {shipped.notes_of(path).name} describes "
            "(its hash differs)"
        )
    try:
        blank = jax.eval_shape(lambda: _blank(Networks.of(facts)))
        found = unflatten(parse_weights(data), blank)
    except (*UNREADABLE, SafetensorError) as error:
        raise PolicyError(f"{path}: does not hold this network's weights ({error})") from None
    if not (found.scale.weight > 0).all():  # values are divided by it
        raise PolicyError(f"{path}: the weight of the scale of values must be above 0")
    return found


def _blank(team: Networks) -> Weights:
    """Return weights of the right shapes, to compare a file with."""
    key, (actor, critic) = jax.random.key(0), team

    def stack(network: Network, tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.stack([x] * network.shape.count), tree)

    return Weights(
        actor=stack(actor, actor.init(key, actor.shape, "actor")),
        critic=stack(critic, critic.init(key, critic.shape, "critic")),
        scale=stack(critic, Scale.of(1.0)),
    )

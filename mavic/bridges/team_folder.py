"""A whole team as a folder that `mavic.runtime` runs without JAX: actors, reader, encoder, names and rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mavic.bridges.onnx import model_of
from mavic.envs.api import predicates_of
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.records import versions
from mavic.instruct.reward import rules_of
from mavic.language import encoder as encoders
from mavic.language.reader.read import head_of
from mavic.runtime import folder as exported
from mavic.storage import files
from mavic.teams.facts import PolicyError
from mavic.teams.team import TeamPolicy


def export(team: TeamPolicy, path: str | Path, *, reader: bool = True) -> Path:
    """Write a team into a folder, with the hash of every file.

    Args:
        team: a team in which each agent has its own actor, a GRU.
        path: the folder, which is made if it is not there.
        reader: write the reader and its encoder too. Without them the team takes kinds and training phrases.

    Returns:
        The folder.
    """
    path = Path(path)
    written = {exported.ACTORS: model_of(team, hears="vectors").SerializeToString()}
    if reader:
        written |= _reader_of(team, path)
    hashes = {name: files.digest(content) for name, content in written.items()}
    facts = _facts_of(team, hashes)
    for name, content in written.items():
        files.write_bytes(path / name, content)
    for name in (exported.HEAD, exported.ENCODER, exported.VOCABULARY):
        if name not in written:
            (path / name).unlink(missing_ok=True)
    facts["sha256"] = files.digest_of(facts)
    files.write_text(path / exported.FACTS, json.dumps(facts, indent=1) + "\n")
    return path


def _facts_of(team: TeamPolicy, hashes: dict[str, str]) -> dict[str, Any]:
    config, task, _ = team.origin()
    rules = rules_of(task.env, task.file, rule=ExperimentConfig.of(team.facts["config"]).rule)
    silence = np.zeros((1, team.shape.embedding), np.float32)
    heard = np.concatenate([silence, team.vectors_heard()])
    arrays = {
        name: np.asarray(getattr(rules, name))
        for name in ("allowed", "lists_allowed", "addressed", "effect")
    }
    by_predicate = rules.predicate is not None
    none = np.zeros(len(rules.names), np.int32)
    arrays["predicate"] = np.asarray(rules.predicate) if by_predicate else none
    arrays["negated"] = np.asarray(rules.negated) if by_predicate else none > 0
    return {
        "format": exported.FORMAT,
        "world": team.world,
        "method": config.method,
        "seed": team.facts["seed"],
        "weights_sha256": team.facts["weights_sha256"],
        "agents": list(team.agents),
        "macros": team.facts["macros"],
        "kinds": list(team.kinds),
        "phrases": {kind: list(texts) for kind, texts in task.lexicon.training_phrases().items()},
        "hear": team.hear,
        "heard": heard.astype(float).tolist(),
        "observation": team.observation,
        "needs": team.needs,
        "memory": [team.shape.parts, team.shape.hidden],
        "predicates": list(predicates_of(task.env)) if by_predicate else [],
        "rules": {name: array.tolist() for name, array in arrays.items()},
        "versions": versions(),
        "files": hashes,
    }


def _reader_of(team: TeamPolicy, path: Path) -> dict[str, bytes]:
    """Return the files of the reader by their names."""
    lexicon = team.origin()[1].lexicon
    head = head_of(lexicon)
    name = next(
        (n for n in encoders.BUILT_IN if encoders.encoder_hash(n) == head.encoder_hash), None
    )
    if name is None or (team.hear == "vectors" and lexicon.encoder != name):
        raise PolicyError(
            f"the encoder {lexicon.encoder!r} cannot be exported; leave the reader out: --without-reader"
        )
    draft = path / exported.HEAD
    head.save(draft)
    return {
        exported.HEAD: draft.read_bytes(),
        exported.ENCODER: encoders.weights_file(name).read_bytes(),
        exported.VOCABULARY: encoders.vocabulary_file().read_bytes(),
    }

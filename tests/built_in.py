"""The files and lexicons of the built-in worlds, for tests of several folders."""

from __future__ import annotations

import functools
from pathlib import Path

from mavic.envs import api
from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.lexicon import Lexicon
from mavic.language.reader.phrase_file import PhraseFile

WORLDS = api.BUILT_IN


def instruction_path(world: str) -> Path:
    path = api.world(world).instructions
    assert path is not None
    return path


@functools.cache
def instructions(world: str) -> InstructionFile:
    return InstructionFile.read(instruction_path(world))


@functools.cache
def phrases(world: str) -> PhraseFile:
    path = api.world(world).phrases
    assert path is not None
    return PhraseFile.read(path, instructions(world).names())


def lexicon(world: str, encoder: str = encoders.DEFAULT) -> Lexicon:
    return Lexicon.make(instructions(world), encoder)

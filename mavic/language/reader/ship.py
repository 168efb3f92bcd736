"""Make what is shipped, vectors, heads and states of all worlds: `python -m mavic.language.reader.ship`."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from mavic.instruct import spec as instructions
from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.reader import head as heads
from mavic.language.reader import understanding
from mavic.language.reader.phrases import (
    DEVELOPMENT,
    NONE,
    TESTS,
    Example,
    has,
    read_tests,
    training_set,
)
from mavic.language.reader.spelling import mend
from mavic.language.text import name as text_name


def instructions_of(world: str) -> list[str]:
    """Every phrase of a world's instruction file."""
    file = instructions.read(lexicons.instruction_path(world))
    return [phrase for kind in file.kinds for phrase in kind.train + kind.held_out]


def texts_of(world: str) -> list[str]:
    """Every phrase of a world that is read as it stands: instructions, test, development files."""
    folder = lexicons.world_folder(world)
    kinds = instructions.read(folder / "instructions.toml").names()
    texts = instructions_of(world)
    for name in filter(partial(has, folder), TESTS + DEVELOPMENT):
        texts += [example.text for example in read_tests(folder, name, kinds)]
    return texts


def examples_of(world: str) -> list[Example]:
    """A world's whole training set for the head."""
    folder = lexicons.world_folder(world)
    file = instructions.read(folder / "instructions.toml")
    return training_set({kind.name: list(kind.train) for kind in file.kinds}, world, folder)


def ship_vectors(world: str, encoder: str) -> int:
    """Write the vectors of a world under an encoder; returns how many."""
    by_name = {text_name(text): text for text in texts_of(world)}
    names = sorted(by_name)
    opened = encoders.open_encoder(encoder)
    np.savez_compressed(
        lexicons.shipped_path(world, encoder),
        names=np.array(names),
        vectors=opened.encode([by_name[name] for name in names]),
        encoder_hash=np.array(opened.hash),
    )
    lexicons.shipped.cache_clear()
    return len(names)


def ship_states(world: str) -> int:
    """Write the states of a world's instructions, mended as its head reads them; how many."""
    words = heads.load(understanding.head_path(world)).words
    by_name = {text_name(text): text for text in (mend(t, words) for t in instructions_of(world))}
    names = sorted(by_name)
    opened = encoders.open_encoder()
    states = opened.states([by_name[name] for name in names])
    np.savez_compressed(
        lexicons.states_path(world),
        names=np.array(names),
        lengths=np.array([len(s) for s in states]),
        states=np.concatenate(states).astype(np.float16),
        encoder_hash=np.array(opened.hash),
    )
    lexicons.shipped_states.cache_clear()
    return len(names)


def ship_head(world: str) -> heads.Head:
    """Train and write the head of a world, on the default encoder's vectors."""
    file = instructions.read(lexicons.instruction_path(world))
    names = (NONE, *file.names())
    head = heads.fit(examples_of(world), names, encoders.open_encoder())
    heads.save(head, understanding.head_path(world))
    heads.load.cache_clear()
    return head


def main() -> None:
    """Ship the worlds and encoders named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", nargs="*", default=list(encoders.BUILT_IN))
    parser.add_argument("--world", nargs="*", default=list(lexicons.WORLDS))
    parser.add_argument("--only", choices=("vectors", "heads"))
    chosen = parser.parse_args()
    for world in chosen.world:
        if chosen.only != "vectors":
            head = ship_head(world)
            print(
                f"{world}: head of {len(head.words)} words, "
                f"temperature {head.temperature:.2f}, threshold {head.threshold:.2f}",
                flush=True,
            )
            print(f"{world}: states of {ship_states(world)} instructions", flush=True)
        for encoder in chosen.encoder if chosen.only != "heads" else ():
            print(f"{world} {encoder}: {ship_vectors(world, encoder)} vectors", flush=True)


if __name__ == "__main__":
    main()

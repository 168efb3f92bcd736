"""Makes the files in `mavic/language/data`: heads, states and vectors of the worlds whose folders are named.

    python -m tools.ship_reader mavic/envs/box_pushing mavic/envs/warehouse

    python -m tools.ship_reader --does

A folder holds `instructions.toml` and `phrases.toml`. A new head needs minutes and is calibrated anew. `--does` makes
the head that tells what a sentence does, for instruction files of one's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.reader import fit
from mavic.language.reader.ablation import TEST_AUTHOR
from mavic.language.reader.model import Head
from mavic.language.reader.own_head import DO, DOES, DONT, STOP
from mavic.language.reader.phrase_file import END, NONE, SENTENCE_CATEGORIES, PhraseFile
from mavic.language.reader.spelling import correct
from mavic.language.text import name as text_name
from mavic.language.vectors import shipped_path
from tools import act_data
from tools.reader_data import training_set_of

SHARES = {
    NONE: 0.26,
    DO: 0.28,
    DONT: 0.2,
    STOP: 0.06,
    END: 0.2,
}  # of what sentences do, in the batches


def exact_texts(file: InstructionFile, phrases: PhraseFile) -> list[str]:
    """Return the texts that teams hear in training or evaluation. Their vectors are shipped as float32.

    Args:
        file: The world's instruction file.
        phrases: The world's phrase file.

    Returns:
        The texts, instructions first.
    """
    heard = phrases.sentences("blind", "novel") + phrases.sentences("published", "novel")
    return _instruction_phrases(file) + [example.text for example in heard]


def half_texts(phrases: PhraseFile) -> list[str]:
    """Return the texts of measurements. Their vectors are shipped as float16, so that measuring needs no weights."""
    measured = [e for e in phrases.sentences("blind") if e.category in SENTENCE_CATEGORIES]
    measured += phrases.sentences("development", "novel", TEST_AUTHOR)
    return [example.text for example in measured]


def _instruction_phrases(file: InstructionFile) -> list[str]:
    """Return the training and held-out phrases of an instruction file."""
    return [phrase for kind in file.kinds for phrase in kind.train + kind.held_out]


def _ship_vectors(file: InstructionFile, phrases: PhraseFile, encoder: str) -> int:
    """Write the vectors of a world under an encoder. Return how many."""
    exact = _by_name(exact_texts(file, phrases))
    half = {name: t for name, t in _by_name(half_texts(phrases)).items() if name not in exact}
    opened = encoders.open_encoder(encoder)
    np.savez_compressed(
        shipped_path(file.world, encoder),
        names=np.array(list(exact)),
        vectors=opened.encode(list(exact.values())).astype(np.float32),
        half_names=np.array(list(half)),
        half_vectors=opened.encode(list(half.values())).astype(np.float16),
        encoder_hash=np.array(opened.hash),
    )
    return len(exact) + len(half)


def _ship_states(file: InstructionFile, head: Head) -> int:
    """Write the states of a world's instruction phrases, corrected as its head reads them. Return how many."""
    by_name = _by_name(correct(text, head.words) for text in _instruction_phrases(file))
    opened = encoders.open_encoder()
    states = opened.states(list(by_name.values()))
    np.savez_compressed(
        shipped_path(file.world, "states"),
        names=np.array(list(by_name)),
        lengths=np.array([len(s) for s in states]),
        states=np.concatenate(states).astype(np.float16),
        encoder_hash=np.array(opened.hash),
    )
    return len(by_name)


def _ship_head(file: InstructionFile, phrases: PhraseFile) -> Head:
    """Train and write the head of a world on the default encoder's states."""
    examples = training_set_of(file, phrases)
    head = fit.fit(examples, (NONE, *file.names(), END), encoders.open_encoder())
    head.save(shipped_path(file.world, "head"))
    return head


def _ship_does() -> None:
    """Train and write the head that tells what a sentence does, for all worlds."""
    examples = act_data.training_set()
    words = act_data.known_words(examples)
    examples = [replace(example, text=correct(example.text, words)) for example in examples]
    opened = encoders.open_encoder()
    head = fit.fit(examples, DOES, opened, fit.DOES, words, SHARES)
    head.save(shipped_path("any", "does"))
    print(f"what sentences do: {len(examples)} examples, {len(words)} words", flush=True)


def _by_name(texts: Iterable[str]) -> dict[str, str]:
    """Return texts by the hash of their folded form, sorted by it."""
    return dict(sorted({text_name(text): text for text in texts}.items()))


def main() -> None:
    """Make the files of the worlds and encoders that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="*", type=Path, help="folder of a world")
    parser.add_argument("--encoder", nargs="*", default=list(encoders.BUILT_IN))
    parser.add_argument("--only", choices=("vectors", "heads"))
    parser.add_argument("--does", action="store_true")
    chosen = parser.parse_args()
    if chosen.does:
        _ship_does()
    for folder in chosen.folder:
        file = InstructionFile.read(folder / "instructions.toml")
        phrases = PhraseFile.read(folder / "phrases.toml", file.names())
        if chosen.only != "vectors":
            head = _ship_head(file, phrases)
            print(
                f"{file.world}: head of {len(head.words)} words, "
                f"temperature {head.temperature:.2f}, threshold {head.threshold:.2f}",
                flush=True,
            )
            print(
                f"{file.world}: states of {_ship_states(file, head)} instruction phrases",
                flush=True,
            )
        for encoder in chosen.encoder if chosen.only != "heads" else ():
            count = _ship_vectors(file, phrases, encoder)
            print(f"{file.world} {encoder}: {count} vectors", flush=True)


if __name__ == "__main__":
    main()

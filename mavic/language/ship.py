"""Make what is shipped, the vectors of all built-in phrases: `python -m mavic.language.ship`."""

from __future__ import annotations

import argparse

import numpy as np

from mavic import instructions
from mavic.language import encoder as encoders
from mavic.language import lexicon
from mavic.language.text import name as text_name


def texts_of(world: str) -> list[str]:
    """Every built-in phrase of a world."""
    file = instructions.read(lexicon.instruction_path(world))
    return [phrase for kind in file.kinds for phrase in kind.train + kind.held_out]


def ship(world: str, encoder: str) -> int:
    """Write the vectors of a world under an encoder; returns how many."""
    by_name = {text_name(text): text for text in texts_of(world)}
    names = sorted(by_name)
    opened = encoders.open_encoder(encoder)
    np.savez_compressed(
        lexicon.shipped_path(world, encoder),
        names=np.array(names),
        vectors=opened.encode([by_name[name] for name in names]),
        encoder_hash=np.array(opened.hash),
    )
    return len(names)


def main() -> None:
    """Ship every world that has an instruction file, under the encoders named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", nargs="*", default=list(encoders.BUILT_IN))
    parser.add_argument("--world", nargs="*", default=list(lexicon.WORLDS))
    chosen = parser.parse_args()
    for encoder in chosen.encoder:
        for world in chosen.world:
            if lexicon.instruction_path(world).is_file():
                print(f"{world} {encoder}: {ship(world, encoder)} vectors")


if __name__ == "__main__":
    main()

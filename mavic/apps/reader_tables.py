"""Tables about the reader of sentences for the terminal: shares of right answers, and what encoders tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich import box
from rich.table import Table

from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.language.encoder import EncoderError
from mavic.language.reader import ablation as ablations
from mavic.language.reader import measure
from mavic.language.reader.phrase_file import PhraseFile

# What the report shows, in its order: a set, an author ("" for all) and the title of the table.
REPORTED = (
    ("blind", "", "blind test phrases, never used for any choice"),
    ("development", "sixth", "development sets of the sixth author, trained on"),
    ("development", "third", "development sets of the third author, once a test, now trained on"),
    ("development", "second", "development sets of the second author, once a test, now trained on"),
    ("development", "first", "development sets of the first author, trained on"),
)


def report_tables(worlds: Sequence[str] | None = None) -> Iterator[Table]:
    """Yield tables of how often the reader is right, for every world (or those named) that has a phrase file."""
    files = {world: _files_of(world) for world in worlds or api.names() if api.world(world).phrases}
    for set, author, title in REPORTED:
        for world, (file, phrases) in files.items():
            if phrases.sentences(set, author=author):
                shares, _ = measure.measure(file, phrases, set, author)
                yield _share_table(f"{world}: {title}", f"mavic/envs/{world}", shares)


def _files_of(world: str) -> tuple[InstructionFile, PhraseFile]:
    """Return the instruction file and the phrase file of a world; a world without phrases is a `ValueError`."""
    path = api.world(world).phrases
    if path is None:
        raise ValueError(f"world {world!r} has no phrase file")
    file = InstructionFile.read(instructions_of(world))
    return file, PhraseFile.read(path, file.names())


def _share_table(title: str, folder: str, shares: Sequence[measure.Share]) -> Table:
    sources = "; ".join(dict.fromkeys(share.source for share in shares))
    table = _table(title, "measure", "of", "share", "95 %", "target")
    table.caption = f"phrases of {folder}: {sources}"
    for share in (share for share in shares if share.total):
        table.add_row(
            share.measure,
            f"{share.hits}/{share.total}",
            f"{share.share:.1%}",
            f"{share.low:.1%} to {share.high:.1%}",
            _target(share),
        )
    return table


def _target(share: measure.Share) -> str:
    if share.target is None:
        return ""
    return f"{share.target:.0%} " + ("[green]met[/]" if share.met else "[red]missed[/]")


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, box=box.SIMPLE, title_justify="left", caption_justify="left")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table


def ablation_tables(world: str) -> Iterator[Table | str]:
    """Yield a table of accuracies, overall and between mirrored kinds; then a table by kind for each set of phrases.

    Then come lines that say how to install the variants whose weights are missing.
    """
    file, phrase_file = _files_of(world)
    rows: list[ablations.Ablation] = []
    missing = []
    for variant in ablations.VARIANTS:
        try:
            rows += ablations.ablation(file, phrase_file, (variant,))
        except EncoderError as error:
            missing.append(f"left out: {variant}: {error}")
    variants = dict.fromkeys(row.variant for row in rows)
    letters = dict(zip(variants, ascii_uppercase, strict=False))
    overall = _table(
        f"{world}: a linear classifier trained on the training phrases alone",
        "variant",
        "phrases",
        "accuracy",
        "left-right",
    )
    for row in rows:
        overall.add_row(
            f"{letters[row.variant]} {row.variant}",
            f"{row.phrases} ({row.total})",
            f"{row.accuracy:.1%}",
            f"{row.left_right:.1%} ({row.left_right_total})" if row.left_right_total else "",
        )
    yield overall
    for phrases in dict.fromkeys(row.phrases for row in rows):
        chosen = [row for row in rows if row.phrases == phrases]
        by_kind = _table(f"{world}: % right by kind, {phrases}", "kind", *letters.values())
        for kind in chosen[0].per_kind:
            by_kind.add_row(kind, *(f"{100 * row.per_kind[kind]:.0f}" for row in chosen))
        yield by_kind
    yield from missing

"""Tables of words for the terminal: targets reached on test phrases, what encoders tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich import box
from rich.table import Table

from mavic.language import lexicon
from mavic.language.encoder import EncoderError
from mavic.language.reader import measure
from mavic.language.reader.phrases import JUDGED, has

TITLES = {
    JUDGED: "test phrases, never used for any choice",
    "final": "development sets of the third author, trained on",
    "test": "development sets of the second author, trained on",
    "dev": "development sets of the first author, trained on",
}


def targets(prefix: str) -> Iterator[Table]:
    """A table a world of its shares on an author's test or development sets, where it has them."""
    for world in lexicon.WORLDS:
        if not has(lexicon.world_folder(world), f"{prefix}_novel"):
            continue
        shares, _ = measure.report_words(world, prefix=prefix)
        files = " ".join(dict.fromkeys(share.file for share in shares))
        table = _table(f"{world}: {TITLES[prefix]}", "measure", "of", "share", "95 %", "target")
        table.caption = f"phrases of mavic/envs/{world}: {files}"
        for share in shares:
            table.add_row(
                share.measure,
                f"{share.hits}/{share.total}",
                f"{share.share:.1%}",
                f"{share.low:.1%} to {share.high:.1%}",
                _target(share),
            )
        yield table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, box=box.SIMPLE, title_justify="left", caption_justify="left")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _target(share: measure.Share) -> str:
    if share.target is None:
        return ""
    return f"{share.target:.0%} " + ("[green]met[/]" if share.met else "[red]missed[/]")


def ablation(world: str) -> Iterator[measure.Ablation | str]:
    """The rows of every variant; for one whose weights are missing, what to type."""
    lexicon.world_folder(world)
    for variant in measure.VARIANTS:
        try:
            yield from measure.ablation(world, (variant,))
        except EncoderError as error:
            yield f"{variant}: {error}"


def ablation_tables(world: str, rows: Sequence[measure.Ablation]) -> Iterator[Table]:
    """Accuracy in all and left-right, then accuracy by kind on each set of phrases."""
    variants = dict.fromkeys(row.variant for row in rows)
    letters = dict(zip(variants, ascii_uppercase, strict=False))
    whole = _table(
        f"{world}: a linear reader trained on the training phrases alone",
        "variant",
        "phrases",
        "accuracy",
        "left-right",
    )
    for row in rows:
        whole.add_row(
            f"{letters[row.variant]} {row.variant}",
            f"{row.phrases} ({row.total})",
            f"{row.accuracy:.1%}",
            f"{row.left_right:.1%} ({row.left_right_total})" if row.left_right_total else "",
        )
    yield whole
    for phrases in dict.fromkeys(row.phrases for row in rows):
        chosen = [row for row in rows if row.phrases == phrases]
        by_kind = _table(f"{world}: % right by kind, {phrases}", "kind", *letters.values())
        for kind in chosen[0].per_kind:
            by_kind.add_row(kind, *(f"{100 * row.per_kind[kind]:.0f}" for row in chosen))
        yield by_kind


def report_tables() -> Iterator[Table]:
    """Return the tables of all test and development sets of all worlds."""
    for prefix in TITLES:
        yield from targets(prefix)

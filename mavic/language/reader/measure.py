"""How often the reader's answers are right, with targets for sentences that were never used for any choice.

A sentence about an act is heard as meant if the team does, without asking back, what the author means: it follows a
kind, ends the current instruction, or goes on as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.lexicon import Lexicon
from mavic.language.reader.phrase_file import (
    ACT_CATEGORIES,
    NONE,
    Example,
    PhraseFile,
    held_out_examples,
)
from mavic.language.reader.read import Understanding, understand_all

# The shares of the blind sentences that each world must reach.
TARGETS = {
    "infeasible flagged": 0.95,
    "near-domain flagged": 0.80,
    "novel kept": 0.95,
    "novel right of kept": 0.93,
    "acts heard as meant": 0.90,
}


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share of sentences with its 95 % Wilson interval."""

    world: str
    encoder: str
    measure: str
    source: str
    """Where the sentences stand: the file and, in a phrase file, the set, the author and the category."""
    hits: int
    total: int
    low: float
    high: float
    target: float | None

    @property
    def share(self) -> float:
        """Hits divided by the total; 0 if there are no sentences."""
        return self.hits / self.total if self.total else 0.0

    @property
    def met(self) -> bool | None:
        """Whether the share reaches its target; None without a target."""
        return None if self.target is None else self.share >= self.target


@dataclass(frozen=True, kw_only=True)
class _Miss:
    """A sentence that was not understood as its author meant it."""

    text: str
    meant: str
    understood: str
    """The kind or "end", or "none" when unsure."""
    probability: float


def _wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share; (0, 1) for a total of 0."""
    from scipy.stats import binomtest  # comes with the extra `language`

    if not total:
        return 0.0, 1.0
    interval = binomtest(hits, total).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def measure(
    file: InstructionFile,
    phrases: PhraseFile,
    set: str = "blind",
    author: str = "",
    encoder: str = encoders.DEFAULT,
) -> tuple[tuple[Share, ...], tuple[_Miss, ...]]:
    """Measure how a world's sentences are understood.

    Args:
        file: The world's instruction file.
        phrases: The world's phrase file.
        set: The set of sentences. Only `blind` has targets: the reader is trained on `development`.
        author: Only the sentences of this author; "" for all.
        encoder: The encoder of the lexicon.

    Returns:
        The shares of right answers, and the sentences that were missed.
    """
    lexicon = Lexicon.make(file, encoder)
    where = ", ".join(filter(None, (phrases.path.name, set, author)))
    shares: list[Share] = []
    misses: list[_Miss] = []

    def add(measure: str, source: str, results: Sequence[bool]) -> None:
        low, high = _wilson(sum(results), len(results))
        shares.append(
            Share(
                world=file.world,
                encoder=encoder,
                measure=measure,
                source=source,
                hits=sum(results),
                total=len(results),
                low=low,
                high=high,
                target=TARGETS.get(measure) if set == "blind" and results else None,
            )
        )

    def answers(examples: list[Example], acts: bool = False) -> list[Understanding]:
        found = understand_all(lexicon, [example.text for example in examples])
        for example, answer in zip(examples, found, strict=True):
            understood = answer.obeyed if acts else answer.asked()
            if understood not in (example.kind, *example.also):
                misses.append(
                    _Miss(
                        text=example.text,
                        meant=" or ".join((example.kind, *example.also)),
                        understood=understood,
                        probability=answer.probability,
                    )
                )
        return found

    def sentences(category: str) -> tuple[str, list[Example]]:
        return f"{where}, {category}", phrases.sentences(set, category, author)

    for category, measure in (("infeasible", "infeasible"), ("near", "near-domain")):
        source, examples = sentences(category)
        add(f"{measure} flagged", source, [answer.unsure for answer in answers(examples)])
    feasible = {
        "novel": sentences("novel"),
        "held-out": ("instructions.toml", held_out_examples(file)),
        "instead": sentences("instead"),
    }
    for measure, (source, examples) in feasible.items():
        pairs = list(zip(examples, answers(examples), strict=True))
        add(f"{measure} kept", source, [not answer.unsure for _, answer in pairs])
        kept = [answer.kind == example.kind for example, answer in pairs if not answer.unsure]
        add(f"{measure} right of kept", source, kept)
    # the heads read the default encoder whatever the lexicon's is, so one measurement of these sentences is enough
    about = ACT_CATEGORIES if encoder == encoders.DEFAULT else ()
    by_category = {name: sentences(name) for name in about}
    pairs_of = {
        name: (source, list(zip(examples, answers(examples, acts=True), strict=True)))
        for name, (source, examples) in by_category.items()
        if examples
    }
    heard = {
        name: [answer.obeyed in (e.kind, *e.also) for e, answer in pairs]
        for name, (_, pairs) in pairs_of.items()
    }
    if not heard:
        return tuple(shares), tuple(misses)
    for name, results in heard.items():
        add(f"{name} heard as meant", pairs_of[name][0], results)
    every = [pair for _, pairs in pairs_of.values() for pair in pairs]
    nothing = [answer.nothing for e, answer in every if e.kind == NONE]
    wrongly = [answer.obeyed not in (NONE, e.kind, *e.also) for e, answer in every]
    add("acts heard as meant", f"{where}, acts", [r for results in heard.values() for r in results])
    add("acts wrongly obeyed", f"{where}, acts", wrongly)
    add("remarks known as such", f"{where}, acts", nothing)
    return tuple(shares), tuple(misses)

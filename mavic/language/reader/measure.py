"""How far the words go: the targets of understanding, and what each encoder can tell apart.

Everything here reads the test files and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mavic.instruct import spec as instructions
from mavic.language import bert
from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.reader.phrases import JUDGED, Example, read_tests
from mavic.language.reader.spelling import words_of
from mavic.language.reader.understanding import Understanding, understand_all

Z95 = 1.959964
# What each world must reach (share of the test phrases), by measure.
TARGETS = {
    "infeasible flagged": 0.95,
    "near-domain flagged": 0.80,
    "novel kept": 0.95,
    "novel right of kept": 0.93,
}


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share of test phrases with its 95 % Wilson interval."""

    world: str
    encoder: str
    measure: str
    file: str  # the phrase file it was measured on
    hits: int
    total: int
    low: float
    high: float
    target: float | None

    @property
    def share(self) -> float:
        """Hits out of all; 0 where there is none."""
        return self.hits / self.total if self.total else 0.0

    @property
    def met(self) -> bool | None:
        """Whether the share reaches its target."""
        return None if self.target is None else self.share >= self.target


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A test phrase that was not understood as it was meant."""

    text: str
    meant: str
    understood: str  # "none" when flagged unsure
    probability: float


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share."""
    if not total:
        return 0.0, 1.0
    share, z2 = hits / total, Z95**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def report_words(
    world: str, encoder: str = encoders.DEFAULT, prefix: str = JUDGED
) -> tuple[tuple[Share, ...], tuple[Miss, ...]]:
    """The table of targets of a world, and the phrases that were missed.

    Another `prefix` takes that author's development sets, which the head was calibrated and then
    trained on, and so have no target.
    """
    lexicon = lexicons.load(world, encoder)
    folder = lexicons.world_folder(world)
    shares: list[Share] = []
    misses: list[Miss] = []

    def add(measure: str, file: str, results: Sequence[bool]) -> None:
        low, high = wilson(sum(results), len(results))
        shares.append(
            Share(
                world=world,
                encoder=encoder,
                measure=measure,
                file=file,
                hits=sum(results),
                total=len(results),
                low=low,
                high=high,
                target=TARGETS.get(measure) if prefix == JUDGED else None,
            )
        )

    def answers(examples: list[Example]) -> list[Understanding]:
        made = understand_all(lexicon, [example.text for example in examples])
        for example, answer in zip(examples, made, strict=True):
            if answer.asked() != example.kind:
                misses.append(
                    Miss(
                        text=example.text,
                        meant=example.kind,
                        understood=answer.asked(),
                        probability=answer.probability,
                    )
                )
        return made

    def read(name: str) -> tuple[str, list[Example]]:
        file = f"{prefix}_{name}"
        return f"phrases/{file}.toml", read_tests(folder, file, lexicon.names[1:])

    for name, measure in (("infeasible", "infeasible"), ("near", "near-domain")):
        file, examples = read(name)
        add(f"{measure} flagged", file, [answer.unsure for answer in answers(examples)])
    feasible = {
        "novel": read("novel"),
        "held-out": ("instructions.toml", held_out(world)),
        "instead": read("instead"),
    }
    for measure, (file, examples) in feasible.items():
        pairs = list(zip(examples, answers(examples), strict=True))
        add(f"{measure} kept", file, [not answer.unsure for _, answer in pairs])
        kept = [answer.kind == example.kind for example, answer in pairs if not answer.unsure]
        add(f"{measure} right of kept", file, kept)
    return tuple(shares), tuple(misses)


def held_out(world: str) -> list[Example]:
    """The held-out phrases of a world's instruction file."""
    file = instructions.read(lexicons.instruction_path(world))
    return [
        Example(text=text, kind=kind.name, group=text)
        for kind in file.kinds
        for text in kind.held_out
    ]


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """How a plain linear reader of some vectors does, trained on the training phrases alone."""

    world: str
    variant: str
    phrases: str  # "held-out" or "novel"
    total: int
    trained: float  # accuracy on the training phrases themselves
    accuracy: float
    left_right: float  # between the two of a mirrored pair of kinds
    left_right_total: int
    per_kind: dict[str, float]


def ablation(world: str, variants: Sequence[str] | None = None) -> tuple[Ablation, ...]:
    """Accuracy by encoder, pooling and scaling; a variant whose weights are missing raises."""
    file = instructions.read(lexicons.instruction_path(world))
    names = file.names()
    train = [
        Example(text=text, kind=kind.name, group=text) for kind in file.kinds for text in kind.train
    ]
    tests = {
        "held-out": held_out(world),
        "novel": read_tests(lexicons.world_folder(world), "test_novel", names),
    }
    made = []
    for variant in variants or tuple(VARIANTS):
        encode = VARIANTS[variant]([example.text for example in train])
        inputs = encode([example.text for example in train])
        labels = np.array([names.index(example.kind) for example in train])
        weights, bias = linear_reader(inputs, labels, len(names))
        trained = float(((inputs @ weights + bias).argmax(1) == labels).mean())
        for phrases, examples in tests.items():
            scores = encode([example.text for example in examples]) @ weights + bias
            made.append(_score(world, variant, phrases, trained, names, examples, scores))
    return tuple(made)


def mirror(kind: str, names: Sequence[str]) -> str | None:
    """The kind that differs in its side or number alone, such as left and right, 0 and 1."""
    swaps = {"left": "right", "right": "left", "0": "1", "1": "0"}
    if f"{kind.rsplit('-', 1)[0]}-2" in names and kind[-1:] in "12":
        swaps = {"1": "2", "2": "1"}
    other = "-".join(swaps.get(part, part) for part in kind.split("-"))
    return other if other != kind and other in names else None


def _score(
    world: str,
    variant: str,
    phrases: str,
    trained: float,
    names: tuple[str, ...],
    examples: list[Example],
    scores: np.ndarray,
) -> Ablation:
    meant = np.array([names.index(example.kind) for example in examples])
    right = scores.argmax(1) == meant
    sides = [
        bool(scores[i, meant[i]] > scores[i, names.index(other)])
        for i, example in enumerate(examples)
        if (other := mirror(example.kind, names)) is not None
    ]
    return Ablation(
        world=world,
        variant=variant,
        phrases=phrases,
        total=len(examples),
        trained=trained,
        accuracy=float(right.mean()),
        left_right=float(np.mean(sides)) if sides else float("nan"),
        left_right_total=len(sides),
        per_kind={
            name: float(right[meant == k].mean()) for k, name in enumerate(names) if k in meant
        },
    )


def linear_reader(
    inputs: np.ndarray, labels: np.ndarray, count: int, steps: int = 300, rate: float = 1e-3
) -> tuple[np.ndarray, np.ndarray]:
    """Softmax regression by Adam for a fixed time at a policy's rate: the inputs' scale shows."""
    weights = np.zeros((inputs.shape[1] + 1, count))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    x = np.concatenate([inputs, np.ones((len(inputs), 1))], 1)
    wanted = np.eye(count)[labels]
    for step in range(1, steps + 1):
        scores = x @ weights
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        gradient = x.T @ (shares - wanted) / len(x)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        weights -= rate * change
    return weights[:-1], weights[-1]


Encode = Callable[[Sequence[str]], np.ndarray]


def _frozen(name: str, pooling: str = "mean", scaled: bool = True) -> Callable[..., Encode]:
    def prepare(_: Sequence[str]) -> Encode:
        if pooling == "mean":
            divisor = 1.0 if scaled else math.sqrt(encoders.BUILT_IN[name].dimension)
            return lambda texts: lexicons.vectors(texts, name) / divisor
        opened = encoders.open_encoder(name, pooling)
        return lambda texts: np.stack(
            [encoders.pool(states, pooling, scaled) for states in opened.states(texts)]
        )

    return prepare


def _bag_of_words(train: Sequence[str]) -> Encode:
    """One entry a word of the training phrases."""
    known = sorted({word for text in train for word in words_of(text)[0]})

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.array(
            [[word in set(words_of(text)[0]) for word in known] for text in texts], float
        )

    return encode


def _random_bert(_: Sequence[str]) -> Encode:
    """The default encoder's shape with untrained weights."""
    config, weights = bert.random(0, vocabulary=30522, width=384, layers=3, heads=12)
    model = bert.assemble(config, weights, "random")
    opened = encoders.Encoder(
        id="random",
        hash="random",
        dimension=384,
        pooling="mean",
        tokenizer=encoders.tokenizer(),
        hidden=lambda tokens, mask: bert.hidden(model, tokens, mask),
    )
    return opened.encode


VARIANTS: dict[str, Callable[[Sequence[str]], Encode]] = {
    "minilm-l3 mean scaled": _frozen("minilm-l3"),
    "minilm-l3 mean raw": _frozen("minilm-l3", scaled=False),
    "minilm-l3 first scaled": _frozen("minilm-l3", "first"),
    "minilm-l3 first raw": _frozen("minilm-l3", "first", scaled=False),
    "minilm-l6 mean scaled": _frozen("minilm-l6"),
    "bag of words": _bag_of_words,
    "random bert mean scaled": _random_bert,
}
WITHOUT_WEIGHTS = (
    "minilm-l3 mean scaled",
    "minilm-l3 mean raw",
    "minilm-l6 mean scaled",
    "bag of words",
)

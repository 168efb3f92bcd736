"""Score lines and records that are made up, with numbers that are easy to follow by hand."""

import dataclasses
from pathlib import Path

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.records import Record, read, write
from mavic.reporting.rows import Row, table

KINDS = ("go-small-boxes", "push", "stay")
VERSIONS = {"mavic": "0.1.0", "python": "3.11.9", "jax": "0.10.2", "device": "cpu"}


def config_of(**fields):
    """A configuration on the protected network that hears vectors, unless it is said otherwise."""
    return ExperimentConfig(**{"network": "protected", "hear": "vectors", **fields})


def score_of(
    base,
    compliance,
    leak,
    *,
    optimum=300.0,
    given=1000,
    kinds=KINDS,
    greedy=None,
    episodes=96_000,
    shield=False,
):
    """A score line: every kind is given equally often and followed alike."""
    seeds = len(base)

    def task(values):
        return {
            "episodes": 1024,
            "discounted": list(values),
            "undiscounted": [v + 5 for v in values],
            "solved": [0.75] * seeds,
            "length": [6.0 + s for s in range(seeds)],
        }

    def live(rates):
        return {
            "episodes": 512,
            "discounted": [v / 2 for v in base],
            "solved": [0.875] * seeds,
            "per_instruction": list(rates),
            "per_decision": [1 - (1 - r) / 10 for r in rates],
            "per_step": [1 - (1 - r) / 4 for r in rates],
            "given": {kind: [given] * seeds for kind in kinds},
            "followed": {kind: [given * r for r in rates] for kind in kinds},
        }

    def under(share):
        """Only the first kind leaves the task on; it has a twin."""
        first = {
            "task": [share * v / 4 for v in base],
            "solved": [0.5] * seeds,
            "obeyed": [0.25] * seeds,
            "twin": [0.125] * seeds,
            "twin_uninstructed": [0.0625] * seeds,
        }
        return {kinds[0]: first, **dict.fromkeys(kinds[1:], dict.fromkeys(first, [None] * seeds))}

    return {
        "type": "score",
        "episodes": episodes,
        "optimum": optimum,
        "base": task(base),
        "base_greedy": task([v + 1 for v in base]),
        "compliance": live(compliance),
        "compliance_greedy": live(greedy or compliance),
        "leak": {"none": list(leak), **{kind: [2 * x for x in leak] for kind in kinds}},
        "optima": {kinds[0]: None if optimum is None else optimum / 2, **dict.fromkeys(kinds[1:])},
        "under": under(1.0),
        **(
            {
                "shield": {
                    "compliance": live([1.0] * seeds),
                    "compliance_greedy": live([1.0] * seeds),
                    "under": under(0.5),
                }
            }
            if shield
            else {}
        ),
    }


def curve_of(base, compliance, points=4, episodes=96_000):
    """Curve lines that rise to the final numbers."""
    return [
        {
            "type": "curve",
            "episodes": episodes * i // points,
            "base": [b * i / points for b in base],
            "compliance": [c * i / points for c in compliance],
            "value": [[b, 0.0] for b in base],
            "seconds": 2.5,
            "steps_per_second": 1e5,
        }
        for i in range(1, points + 1)
    ]


def lines_of(config, base, compliance, leak, *, finished=True, preset=None, **more):
    """A record as lines."""
    run = {
        "type": "run",
        "config": dataclasses.asdict(config),
        "preset": preset or {"episodes": 96_000, "gamma": 0.995},
        "seeds": list(range(len(base))),
        "versions": VERSIONS,
    }
    return [
        run,
        *curve_of(base, compliance),
        *([score_of(base, compliance, leak, **more)] if finished else []),
    ]


def save(folder: Path, config: ExperimentConfig, base, compliance, leak, **more) -> Path:
    path = folder / f"{config.name()}.jsonl"
    write(path, lines_of(config, base, compliance, leak, **more))
    return path


def record_of(tmp_path, config, base, compliance, leak, **more) -> Record:
    return read(save(tmp_path, config, base, compliance, leak, **more))


def only_row(tmp_path, base, compliance=None, leak=None, **more) -> Row:
    compliance = compliance or [1.0] * len(base)
    leak = leak or [0.0] * len(base)
    (row,) = table([record_of(tmp_path, config_of(), base, compliance, leak, **more)])
    return row


def study(folder: Path) -> None:
    """A small study: two networks, one record unfinished."""
    for network, drop in (("protected", 0.0), ("shared", 0.5)):
        for method, base, rate in (
            ("mavic", [291, 292, 290], 0.99),
            ("naive", [19, 150, 280], 0.4),
            ("vanilla", [292, 291, 292], 0.2),
        ):
            rates = [rate - drop * rate - 0.01 * s for s in range(3)]
            save(
                folder,
                config_of(method=method, network=network),
                base,
                rates,
                [0.01, 0.02, 0.03],
            )
    save(
        folder,
        config_of(method="switch"),
        [1, 2, 3],
        [0.5, 0.5, 0.5],
        [0.0, 0.1, 0.2],
        finished=False,
    )

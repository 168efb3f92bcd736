"""Captions of tables: templates, and the facts about a group of rows that fill them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from mavic.evaluation.collapse import HELP
from mavic.evaluation.metrics import METRICS, Metric
from mavic.experiment.axes import CONDITIONS
from mavic.experiment.records import plain
from mavic.reporting import styles
from mavic.reporting.formats import number
from mavic.reporting.rows import Row, grouped

SETUP = "{world}: {facts}. {seeds}; {training} training episodes each."
SPREAD = (
    "± is the standard deviation over seeds (n − 1); [ ] is the 95 % percentile-bootstrap interval of the mean "
    "over seeds."
)
VERSIONS = "Made with {versions}."
MAIN = (
    "Policies have their final parameters and are sampled without exploration. "
    "Base return: {base}; {base_episodes} episodes per seed. {share} "
    "Compliance: {compliance}; an instruction is followed if {followed_means}; {given} instructions per seed. "
    "Worst: the worst seed. Greedy: every decision takes the most likely macro. "
    "{leak_title}: {leak}; Δ: the difference from vanilla in percentage points, with its interval "
    "(same: it contains 0). {under} {shield} {deaf} {dual} {paper}"
)
PAPER = "Paper: base return and compliance ± σ as the paper reports them, 5 seeds{note}."
SHARE = "Of optimum: {caption}, {optimum} (≥: the worst seed)."
UNDER_MAIN = (
    "Under: one kind that leaves the task on holds from start to end; {share}, mean over kinds and seeds; worst: the "
    "worst kind of the worst seed; solved, obeyed: the share of these episodes, worst kind and seed. "
    "Live: {live} (≥: the worst seed), and how many of these episodes were solved."
)
SHIELD = "Shield: the same teams, evaluated while what the instruction forbids was unavailable."
NO_OPTIMUM = "The best possible return is not known."
DEAF = "Hears nothing: {methods} hear no instructions; their compliance is chance."
DEAF_ONE = "Hears nothing: {methods} hears no instructions; its compliance is chance."
DUAL = "Dual: naive targets on the protected network, the paper's ablation."
NONE = "none"
UNEQUAL = "Presets differ: {}."
TASK = "Episodes without instructions. {metrics} Episodes: those that every seed played."
COMPLIANCE = (
    "Episodes with instructions. {metrics} Given: instructions of all seeds together. "
    "Episodes: those that every seed played."
)
KINDS = (
    "Instructions followed / given by kind, in %: mean over seeds (worst seed). "
    "{given} instructions per seed, {given_by_kind} per kind."
)
UNDER = (
    "One instruction is given at the start of an episode and holds until the episode ends or the instruction is "
    "fulfilled. Only kinds that leave the task on are listed. Policies are sampled without exploration. "
    "{lines}, each as the mean over seeds (worst seed). Best: the return of the best plan that obeys the kind."
)
PAIRS = (
    "Two prohibitions are given at the start of an episode and hold to its end, each to all agents that it is meant "
    "for. No team was trained with two at once. Policies are sampled without exploration. {lines}, each as the mean "
    "over seeds (worst seed). Best: the return of the best plan that obeys both, where it is known."
)
COLLAPSED = (
    "Collapsed: the task earns less than half of what it earns without the kind; see {help}."
)
TWIN = "Twin, for mirrored kinds: {twin} (without an instruction)."
UNSEEN = (
    "Instructions in phrases that were not in training. Understood: phrases of which the reader is sure; the others "
    "ask for nothing. Followed: instructions followed / given in understood phrases, {heard}"
)
UNSEEN_HEARD = {  # by what a team hears
    "vectors": "each heard as the nearest training phrase of its kind. Own vector: the same, but each phrase is heard "
    "as its own vector. Unsure too: all phrases, understood or not, each heard as its own vector.",
    "kinds": "each heard as the reader's probability of each kind. Unsure too: all phrases, understood or not, heard "
    "in the same way.",
}


def _with_facts(rows: Sequence[Row], *sentences: str) -> str:
    """Return sentences as one paragraph, between the group's facts and the versions. Empty sentences are dropped."""
    versions = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in rows]
    made = VERSIONS.format(versions="; ".join(dict.fromkeys(versions)))
    return " ".join(" ".join([_setup(rows), *sentences, made]).split())


def caption(table: str, rows: Sequence[Row], shown: Sequence[Metric] = ()) -> str:
    """Return the caption of a table.

    Args:
        table: Its name in `tables.TABLES`.
        rows: The rows of its group.
        shown: The metrics that it shows, for tables that explain them one by one.
    """
    return _with_facts(rows, *_SENTENCES[table](rows, shown))


def _main(rows: Sequence[Row], _: Sequence[Metric]) -> tuple[str, ...]:
    world, optimum = rows[0].world, rows[0].optimum
    share = NO_OPTIMUM
    if optimum is not None:
        share = SHARE.format(caption=METRICS["share"].caption, optimum=number(optimum))
    deaf = list(dict.fromkeys(row.label for row in rows if not (row.method.hears or row.shield)))
    hears_nothing = (DEAF if len(deaf) > 1 else DEAF_ONE).format(methods=" and ".join(deaf))
    planned = any(row.kinds("under_share") for row in rows)
    under = UNDER_MAIN.format(
        share=METRICS["under_share" if planned else "under_of_base"].caption,
        live=METRICS["live_share"].caption,
    )
    paper = PAPER.format(note=f" ({world.paper_note})" if world.paper_note else "")
    text = MAIN.format(
        base=METRICS["base"].caption,
        base_episodes=_range(row.evaluation_episodes["base"] for row in rows),
        share=share,
        compliance=METRICS["compliance"].caption,
        followed_means=world.followed_means or "nothing disallowed was done while it held",
        given=_range(given for row in rows for given in row.given_by_seed),
        leak_title=METRICS["leak"].title,
        leak=METRICS["leak"].caption,
        under=f"{under} {_collapsed(rows)}" if any(row.kinds("under_task") for row in rows) else "",
        shield=SHIELD if any(row.shield for row in rows) else "",
        deaf=hears_nothing if deaf else "",
        dual=DUAL if any(styles.is_dual(row.config) for row in rows) else "",
        paper=paper if any(row.paper for row in rows) else "",
    )
    return text, SPREAD, _unequal_presets(rows)


def _kinds(rows: Sequence[Row], _: Sequence[Metric]) -> tuple[str, ...]:
    text = KINDS.format(
        given=_range(given for row in rows for given in row.given_by_seed),
        given_by_kind=_range(n for row in rows for counts in row.given.values() for n in counts),
    )
    return (text,)


def _under(rows: Sequence[Row], shown: Sequence[Metric]) -> tuple[str, ...]:
    twins = any(row.kinds("under_twin") for row in rows)
    twin = TWIN.format(twin=METRICS["under_twin"].caption) if twins else ""
    return UNDER.format(lines=_lines(shown)), twin, _collapsed(rows)


def _collapsed(rows: Sequence[Row]) -> str:
    """Return what a collapse is, if a row has one."""
    return COLLAPSED.format(help=HELP) if any(row.collapsed for row in rows) else ""


def _unseen(rows: Sequence[Row], _: Sequence[Metric]) -> tuple[str, ...]:
    return UNSEEN.format(heard=UNSEEN_HEARD[rows[0].config.hear]), SPREAD


def _lines(metrics: Iterable[Metric]) -> str:
    return "; ".join(f"{metric.line}: {metric.caption}" for metric in metrics)


def _explained(metrics: Iterable[Metric]) -> str:
    return " ".join(f"{metric.title}: {metric.caption}." for metric in metrics)


_SENTENCES: dict[str, Callable[[Sequence[Row], Sequence[Metric]], tuple[str, ...]]] = {
    "main": _main,
    "task": lambda rows, shown: (TASK.format(metrics=_explained(shown)), SPREAD),
    "compliance": lambda rows, shown: (COMPLIANCE.format(metrics=_explained(shown)), SPREAD),
    "kinds": _kinds,
    "under": _under,
    "pairs": lambda rows, shown: (PAIRS.format(lines=_lines(shown)),),
    "unseen": _unseen,
}


def _setup(rows: Sequence[Row]) -> str:
    """Return the sentence on the configuration, seeds and training of a group, which every table has."""
    config, world = rows[0].config, rows[0].world
    facts = [
        f"{config.preset} preset",
        *(f"{name} backbone" for name in config.backbone_name()),
        f"{config.network} network",
        f"{config.schedule} schedule",
        "rule by kind" if config.rule == "by-kind" else f"rule {config.rule} for all kinds",
    ]
    switches = {
        "overlap": "instructions may overlap",
        "extras": "extra kinds included",
        "one_agent": "one agent addressed",
    }
    facts += [text for name, text in switches.items() if getattr(config, name)]
    facts += [f"{name} {value}" for name, value in config.options.items()]
    facts += [
        f"{name} {part.write(getattr(config, name)).replace('+', ', ')}"
        for name, part in CONDITIONS.parts.items()
        if getattr(config, name) != part.default
    ]
    seeds = _by_label(rows, lambda row: _seeds(row.seeds) + _left_out(row.diverged))
    return SETUP.format(
        world=world.title or world.name,
        facts=", ".join(facts),
        seeds="; ".join(seeds),
        training=_range(row.episodes for row in rows),
    )


def _by_label(rows: Sequence[Row], text: Callable[[Row], str]) -> list[str]:
    """Return a text once if it is the same for all rows; otherwise each with the labels of its rows."""
    found = grouped(rows, text)
    if len(found) == 1:
        return list(found)
    return [f"{', '.join(row.label for row in same)}: {said}" for said, same in found.items()]


def _left_out(seeds: Sequence[int]) -> str:
    """Return a clause on the seeds that diverged."""
    return (
        f", {len(seeds)} more diverged and left out ({', '.join(map(str, seeds))})" if seeds else ""
    )


def _seeds(seeds: Sequence[int]) -> str:
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 2 and list(seeds) == list(range(first, last + 1)):
        return f"{len(seeds)} seeds ({first}–{last})"
    return f"{len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'} ({', '.join(map(str, seeds))})"


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"


def _unequal_presets(rows: Sequence[Row]) -> str:
    """Return a sentence with the preset numbers in which methods differ (D10); empty if they agree."""

    names = dict.fromkeys(name for row in rows for name in row.preset)
    unequal = [
        f"{name} ({'; '.join(f'{row.label} {plain(row.preset.get(name, NONE))}' for row in rows)})"
        for name in names
        if len({json.dumps(row.preset.get(name)) for row in rows}) > 1
    ]
    return UNEQUAL.format(", ".join(unequal)) if unequal else ""

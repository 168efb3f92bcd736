"""Instruction files (TOML): kinds of instruction, what they pay, and the phrases in which people give them.

`mavic.instruct.reward` compiles the kinds to arrays, and `mavic.language.lexicon` encodes the phrases. The error for a
wrong file names the file, the key and what is allowed. A file looks like this:

    world = "box_pushing"

    [kinds.dont-push]
    meaning = "Do not push anything"
    rule = "replace"              # replace: ±pay each tick instead of the task's reward; add: task reward and a penalty
    forbid = ["PUSH"]             # or allow = [...]; or by agent: forbid = { robot_0 = ["PUSH"] }
    train = ["do not push", "..."]
    held_out = ["..."]

Optional keys of a kind:

    when = "..."                  # a predicate of the environment: forbidden (allowed) only where it holds of a choice
    unless = "..."                # the same of choices of which it does not hold; ["*"] lists all macros
    agents = ["robot_0"]          # who is addressed (default: all agents)
    penalty = -50                 # rule add: once for each forbidden macro chosen
    paper_penalty = -50           # the same where every kind has the rule add, as in the paper (default: penalty)
    bonus = 0                     # rule add: once for each allowed macro chosen
    paper_bonus = 10              # the same where every kind has the rule add, as in the paper (default: bonus)
    pay = 1                       # rule replace: each tick
    given_if = "..."              # a precondition of the environment that must hold when the instruction is given
    effect = "..."                # what the environment does differently while the instruction holds
    resolved_by = { event = 1 }   # an event that fulfils (1) or breaks (-1) the instruction and ends it
    credit = 0                    # what fulfilling pays and breaking costs
    extra = true                  # given only when extra kinds are asked for
    twin = "..."                  # the kind that forbids the same elsewhere: what it forbids can be used instead
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from mavic.hints import suggest
from mavic.ranges import Range, RangeError, check_value


class _Rule(NamedTuple):
    """How a kind pays."""

    task: bool
    """The task's reward goes on."""
    each_tick: bool
    """Plus or minus `pay` each tick, by whether the running macro is allowed."""
    each_choice: bool
    """`penalty` once for each forbidden macro chosen, `bonus` once for each allowed one."""


RULES = {
    "add": _Rule(task=True, each_tick=False, each_choice=True),
    "replace": _Rule(task=False, each_tick=True, each_choice=False),
}
Payment = Annotated[float, Range(-1e6, 1e6)]
Macros = tuple[str, ...] | dict[str, tuple[str, ...]]  # for all agents, or by agent

KEYS: dict[str, type | tuple[type, ...]] = {
    "meaning": str,
    "rule": str,
    "allow": (list, dict),
    "forbid": (list, dict),
    "when": str,
    "unless": str,
    "agents": list,
    "penalty": (int, float),
    "paper_penalty": (int, float),
    "bonus": (int, float),
    "paper_bonus": (int, float),
    "pay": (int, float),
    "given_if": str,
    "effect": str,
    "resolved_by": dict,
    "credit": (int, float),
    "extra": bool,
    "twin": str,
    "train": list,
    "held_out": list,
}


class InstructionFileError(ValueError):
    """The instruction file is wrong. The message names the file, the key and what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of instruction: what it asks for, what it pays, and its phrases."""

    name: str
    meaning: str
    rule: str
    allow: Macros | None
    forbid: Macros | None
    when: str | None = None
    unless: str | None = None
    agents: tuple[str, ...] | None = None
    penalty: float = -50.0
    paper_penalty: float = -50.0
    bonus: float = 0.0
    paper_bonus: float = 0.0
    pay: float = 1.0
    given_if: str | None = None
    effect: str | None = None
    resolved_by: dict[str, int] = field(default_factory=dict)
    credit: float = 0.0
    extra: bool = False
    twin: str | None = None
    train: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InstructionFile:
    """A parsed file. The number of a kind in arrays is its position in `kinds` plus one; 0 is no instruction."""

    world: str
    kinds: tuple[Kind, ...]
    source: str

    def names(self) -> tuple[str, ...]:
        """Return the names of the kinds, without "none"."""
        return tuple(kind.name for kind in self.kinds)

    @classmethod
    def read(cls, path: str | Path) -> InstructionFile:
        """Return the parsed and checked file. Anything wrong is an `InstructionFileError`."""
        path = Path(path)
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InstructionFileError(f"{path}: no such file") from None
        except UnicodeDecodeError as error:
            raise InstructionFileError(
                f"{path}: not UTF-8 text ({error.reason} at byte {error.start})"
            ) from None
        except OSError as error:
            raise InstructionFileError(
                f"{path}: cannot be read ({error.strerror or error})"
            ) from None
        except RecursionError:
            raise InstructionFileError(
                f"{path}: not TOML that can be read: nested too deeply"
            ) from None
        except ValueError as error:  # not TOML, or a number of more digits than Python reads
            raise InstructionFileError(f"{path}: not TOML: {error}") from None
        return cls.parse(raw, str(path))

    @classmethod
    def parse(cls, raw: dict[str, Any], source: str) -> InstructionFile:
        """Return parsed TOML as a checked file. `source` is what error messages call the file."""

        def refuse(key: str, why: str) -> InstructionFileError:
            return InstructionFileError(f"{source}: {key}: {why}")

        for key in raw:
            if key not in ("world", "kinds"):
                raise refuse(key, f"unknown key; {suggest(key, ('world', 'kinds'))}")
        if not isinstance(raw.get("world"), str):
            raise refuse("world", 'missing; write world = "box_pushing" or your own world\'s id')
        tables = raw.get("kinds")
        if not isinstance(tables, dict) or not tables:
            raise refuse("kinds", "missing; write at least one table [kinds.some-name]")
        seen: dict[str, str] = {}
        kinds = []
        for name, table in tables.items():
            where = f"kinds.{name}"
            if name == "none" or not any(map(str.isalnum, name)):
                raise refuse(
                    where,
                    "a kind needs a name with a letter or digit, and “none” is no instruction",
                )
            if not isinstance(table, dict):
                raise refuse(where, "must be a table")
            kinds.append(_kind(name, table, where, refuse))
            for phrase in kinds[-1].train + kinds[-1].held_out:
                folded = " ".join(phrase.lower().split())
                if folded in seen:
                    raise refuse(
                        where, f"the phrase {phrase!r} stands twice (also in {seen[folded]})"
                    )
                seen[folded] = where
        for kind in kinds:
            if kind.twin is not None and kind.twin not in tables:
                why = f"{kind.twin!r} is unknown; {suggest(kind.twin, tuple(tables))}"
                raise refuse(f"kinds.{kind.name}.twin", why)
        return cls(world=raw["world"], kinds=tuple(kinds), source=source)


def _kind(name: str, table: dict[str, Any], where: str, refuse: Any) -> Kind:
    for key, value in table.items():
        if key not in KEYS:
            raise refuse(f"{where}.{key}", f"unknown key; {suggest(key, tuple(KEYS))}")
        if not isinstance(value, KEYS[key]) or (isinstance(value, bool) and KEYS[key] is not bool):
            raise refuse(f"{where}.{key}", f"has the wrong type {type(value).__name__}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            _check_payment(value, f"{where}.{key}", refuse)
    rule = table.get("rule")
    if rule not in RULES:
        raise refuse(f"{where}.rule", f"{rule!r} is unknown; {suggest(str(rule), tuple(RULES))}")
    if ("allow" in table) == ("forbid" in table):
        raise refuse(where, "needs exactly one of allow and forbid")
    if "when" in table and "unless" in table:
        raise refuse(where, "has both when and unless; one predicate decides")
    if "agents" in table and not _are_names(table["agents"]):
        raise refuse(f"{where}.agents", "must be a list of agents' names that is not empty")
    phrases = {}
    for key in ("train", "held_out"):
        texts = table.get(key, [])
        if not all(isinstance(text, str) and any(map(str.isalnum, text)) for text in texts):
            raise refuse(f"{where}.{key}", "every phrase must be a text with a letter or digit")
        phrases[key] = tuple(texts)
    if not phrases["train"]:
        raise refuse(f"{where}.train", "the kind is empty; give at least one phrase")
    for event, sign in table.get("resolved_by", {}).items():
        if isinstance(sign, bool) or sign not in (1, -1):
            raise refuse(f"{where}.resolved_by.{event}", "must be 1 (fulfils) or -1 (breaks)")
    return Kind(
        name=name,
        meaning=table.get("meaning", name),
        rule=rule,
        allow=_macros(table.get("allow"), f"{where}.allow", refuse),
        forbid=_macros(table.get("forbid"), f"{where}.forbid", refuse),
        when=table.get("when"),
        unless=table.get("unless"),
        agents=tuple(table["agents"]) if "agents" in table else None,
        penalty=float(table.get("penalty", -50.0)),
        paper_penalty=float(table.get("paper_penalty", table.get("penalty", -50.0))),
        bonus=float(table.get("bonus", 0.0)),
        paper_bonus=float(table.get("paper_bonus", table.get("bonus", 0.0))),
        pay=float(table.get("pay", 1.0)),
        given_if=table.get("given_if"),
        effect=table.get("effect"),
        resolved_by=dict(table.get("resolved_by", {})),
        credit=float(table.get("credit", 0.0)),
        extra=table.get("extra", False),
        twin=table.get("twin"),
        **phrases,
    )


def _check_payment(value: float, where: str, refuse: Any) -> None:
    try:
        check_value(value, Payment, "it")
    except RangeError as error:
        raise refuse(where, str(error).removeprefix("it ")) from None


def _macros(value: Any, where: str, refuse: Any) -> Macros | None:
    if value is None:
        return None
    by_agent = value if isinstance(value, dict) else {"": value}
    if not by_agent or not all(_are_names(names) for names in by_agent.values()):
        raise refuse(where, "must be a list of macro names that is not empty")
    made = {agent: tuple(names) for agent, names in by_agent.items()}
    return made if isinstance(value, dict) else made[""]


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(n, str) for n in value)

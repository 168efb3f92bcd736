"""An instruction file compiled to arrays (`Rules`), which agents comply, and what they are paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.api import Env, macro_count, predicates_of
from mavic.hints import look_up, suggest
from mavic.instruct.spec import RULES, InstructionFile, InstructionFileError, Kind, Macros
from mavic.types import Array, Bool, Float, Instruction, Int, Rules, assert_rank

EVERY = "*"  # in a list of macros: all of them
BY_KIND = "by-kind"  # every kind has the rule that its file names


def rules_of(
    env: Env,
    file: InstructionFile | str | Path,
    *,
    rule: str = "by-kind",
    only: tuple[str, ...] | None = None,
    extras: bool = False,
    penalty: float | None = None,
    bonus: float | None = None,
) -> Rules:
    """Return a file's kinds as arrays for an environment.

    Args:
        env: The environment.
        file: The instruction file or its path.
        rule: "by-kind" (as the file says), or a row of `mavic.instruct.spec.RULES` for every kind. "add" has the
            paper's penalty and bonus.
        only: The kinds that the schedule gives; None: all that are not `extra`.
        extras: Without `only`, the schedule gives the extra kinds too.
        penalty: What disobeying costs, 0 or more; it replaces the penalty of every kind.
        bonus: Replaces the bonus of every kind.
    """
    if not isinstance(file, InstructionFile):
        file = InstructionFile.read(file)
    look_up({BY_KIND: None, **RULES}, rule, "rule")
    if file.world != env.name:
        raise InstructionFileError(
            f"{file.source}: world: the file is for {file.world!r}, this world is {env.name!r}"
        )
    for name in only or ():
        if name not in file.names():
            raise ValueError(f"kind {name!r} is unknown; {suggest(name, file.names())}")
    kinds, agents, macros = len(file.kinds) + 1, len(env.agents), macro_count(env)
    allowed = np.ones((kinds, agents, macros), bool)
    addressed = np.zeros((kinds, agents), bool)
    outcome = np.zeros((kinds, len(env.events)), np.float32)
    precondition, effect = np.zeros(kinds, np.int32), np.zeros(kinds, np.int32)
    predicate = np.zeros(kinds, np.int32)
    for number, kind in enumerate(file.kinds, start=1):
        where = f"{file.source}: kinds.{kind.name}"
        for name in kind.agents or env.agents:
            addressed[number, _index(name, env.agents, f"{where}.agents")] = True
        if kind.allow is not None:
            allowed[number] = _named(kind.allow, env, f"{where}.allow", unnamed=True)
        if kind.forbid is not None:
            allowed[number] = ~_named(kind.forbid, env, f"{where}.forbid", unnamed=False)
        if (depends_on := kind.when or kind.unless) is not None:
            key = "when" if kind.when else "unless"
            predicate[number] = 1 + _index(depends_on, predicates_of(env), f"{where}.{key}")
        if kind.forbid is None or not predicate[number]:
            _check_possible(allowed[number], addressed[number], env, where)
        for event, sign in kind.resolved_by.items():
            outcome[number, _index(event, env.events, f"{where}.resolved_by")] = sign
        if kind.given_if is not None:
            precondition[number] = 1 + _index(kind.given_if, env.preconditions, f"{where}.given_if")
        if kind.effect is not None:
            effect[number] = 1 + _index(kind.effect, env.effects, f"{where}.effect")
    given_names = only or [kind.name for kind in file.kinds if extras or not kind.extra]
    as_paper = rule == "add"

    def column(dtype: type, value: Callable[[Kind], float]) -> Array:
        """Return [C], a number of each kind; 0 for no instruction."""
        return jnp.asarray(np.array([0, *map(value, file.kinds)], dtype))

    def rule_of(kind: Kind) -> Any:
        return RULES[kind.rule if rule == BY_KIND else rule]

    def penalty_of(kind: Kind) -> float:
        own = kind.paper_penalty if as_paper else kind.penalty
        return (own if penalty is None else -penalty) * rule_of(kind).each_choice

    def bonus_of(kind: Kind) -> float:
        own = kind.paper_bonus if as_paper else kind.bonus
        return (own if bonus is None else bonus) * rule_of(kind).each_choice

    return Rules(
        allowed=jnp.asarray(allowed),
        lists_allowed=column(bool, lambda kind: kind.allow is not None),
        addressed=jnp.asarray(addressed),
        replaces=column(bool, lambda kind: not rule_of(kind).task),
        pay=column(np.float32, lambda kind: kind.pay * rule_of(kind).each_tick),
        penalty=column(np.float32, penalty_of),
        bonus=column(np.float32, bonus_of),
        outcome=jnp.asarray(outcome),
        credit=column(np.float32, lambda kind: kind.credit),
        precondition=jnp.asarray(precondition),
        effect=jnp.asarray(effect),
        given=column(bool, lambda kind: kind.name in given_names),
        weight=weights_of(file, {}),
        names=("none", *file.names()),
        predicate=jnp.asarray(predicate) if predicate.any() else None,
        negated=column(bool, lambda kind: kind.unless is not None) if predicate.any() else None,
    )


def weights_of(file: InstructionFile, weights: Mapping[str, float]) -> Array:
    """Return [C], how often each kind of `file` is given compared with the others; 1 unless `weights` names it."""
    for name in weights:
        if name not in file.names():
            raise ValueError(f"kind {name!r} is unknown; {suggest(name, file.names())}")
    return jnp.asarray([1.0, *(weights.get(name, 1.0) for name in file.names())], jnp.float32)


def _check_possible(allowed: np.ndarray, addressed: np.ndarray, env: Env, where: str) -> None:
    """Refuse a kind that leaves an agent it addresses no macro."""
    for agent, macros, row, is_meant in zip(
        env.agents, env.macros, allowed, addressed, strict=True
    ):
        if is_meant and not row[: len(macros)].any():
            raise InstructionFileError(
                f"{where}: it forbids every macro of {agent}; allow one, or leave {agent} out of agents"
            )


def _index(name: str, names: tuple[str, ...], where: str) -> int:
    if name not in names:
        known = suggest(name, names) if names else "this world has none"
        raise InstructionFileError(f"{where}: {name!r} is unknown; {known}")
    return names.index(name)


def _named(macros: Macros, env: Env, where: str, unnamed: bool) -> np.ndarray:
    """Return bool [N, M], the listed macros. If the list is by agent, agents that it leaves out get `unnamed`."""
    listed = np.zeros((len(env.agents), macro_count(env)), bool)
    by_agent = macros if isinstance(macros, dict) else None
    for agent in by_agent or ():
        _index(agent, env.agents, where)
    for number, agent in enumerate(env.agents):
        own = tuple(macro.name for macro in env.macros[number])
        named = macros if by_agent is None else by_agent.get(agent, ())
        if EVERY in named:
            listed[number, : len(own)] = True
        elif by_agent is None:
            shared = {macro.name for enum in env.macros for macro in enum}
            for name in macros:
                if name in own:
                    listed[number, own.index(name)] = True
                elif name not in shared:
                    _index(name, own, where)
        elif agent in by_agent:
            for name in by_agent[agent]:
                listed[number, _index(name, own, f"{where}.{agent}")] = True
        else:
            listed[number] = unnamed
    return listed


def comply(
    instruction: Instruction,
    macro: Int[Array, " N"],
    effective_macro: Int[Array, " N"],
    rules: Rules,
    holds: Bool[Array, "N M Q"] | None = None,
) -> Bool[Array, " N"]:
    """Return bool [N], whether each agent's macro is allowed. It is true for agents that are not addressed.

    A macro may do the work of another one. A kind that lists allowed macros is met if one of the two is allowed. A
    kind that lists forbidden macros is met if both are allowed.

    Args:
        instruction: The instruction.
        macro: [N] the macro that each agent runs.
        effective_macro: [N] the macro whose work was done, as the environment reports it (`Tick.effective_macro`).
        rules: What each kind allows.
        holds: [N, M, Q] the predicates that held of each choice when it was made. None: every predicate counts as held.
    """
    assert_rank("N", kind=instruction.kind, macro=macro, effective_macro=effective_macro)
    kind = instruction.kind
    by_name = _permitted(kind, macro, rules, holds)
    by_work = _permitted(kind, effective_macro, rules, holds)
    return jnp.where(rules.lists_allowed[kind], by_name | by_work, by_name & by_work)


def _permitted(kind: Array, macro: Array, rules: Rules, holds: Array | None) -> Array:
    """Return bool [N], whether a kind lists the macro as allowed, given the predicate on which that depends."""
    agents = jnp.arange(macro.shape[0])
    listed = rules.allowed[kind, agents, macro]
    if rules.predicate is None or rules.negated is None or holds is None:
        return listed
    predicate = rules.predicate[kind]
    held = holds[agents, macro, jnp.maximum(predicate - 1, 0)] ^ rules.negated[kind]
    concerned = (predicate == 0) | held
    return jnp.where(rules.lists_allowed[kind], listed & concerned, listed | ~concerned)


def allowed_macros(
    instruction: Instruction,
    effective_macros: Int[Array, "N M"],
    rules: Rules,
    holds: Bool[Array, "N M Q"] | None = None,
) -> Bool[Array, "N M"]:
    """Return bool [N, M], what `comply` returns for every macro that an agent can choose now.

    Args:
        instruction: The instruction.
        effective_macros: [N, M] the macro whose work each choice would do (`mavic.envs.api.effective_macros`).
        rules: What each kind allows.
        holds: [N, M, Q] the predicates that hold of each choice; as in `comply`.
    """
    assert_rank("N", kind=instruction.kind)
    assert_rank("N M", effective_macros=effective_macros)
    macros = jnp.broadcast_to(jnp.arange(effective_macros.shape[1]), effective_macros.shape)
    by_macro = jax.vmap(comply, in_axes=(None, 1, 1, None, None), out_axes=1)
    return by_macro(instruction, macros, effective_macros, rules, holds)


def predicates_in(env: Env, state: Any, rules: Rules) -> Array | None:
    """Return bool [N, M, Q], the predicates that hold of each choice in a state; None if no kind depends on one.

    Args:
        env: The environment.
        state: Its state.
        rules: The kinds.
    """
    return None if rules.predicate is None else env.holds(state)  # type: ignore[attr-defined]


def sometimes_allowed(rules: Rules) -> np.ndarray:
    """Return bool [C, N, M], the macros that each kind allows in some state."""
    allowed = np.asarray(rules.allowed)
    if rules.predicate is None:
        return allowed
    depends = (np.asarray(rules.predicate) > 0) & ~np.asarray(rules.lists_allowed)
    return allowed | depends[:, None, None]


def enforce(offered: Bool[Array, "N M"], allowed: Bool[Array, "N M"]) -> Bool[Array, "N M"]:
    """Return the `offered` macros [N, M] that are also `allowed` [N, M].

    If no macro is left to an agent, all its offered macros stay available.
    """
    left = offered & allowed
    return jnp.where(left.any(-1, keepdims=True), left, offered)


def verdict(
    kind: Int[Array, "*agents"], events: Float[Array, " V"], rules: Rules
) -> Float[Array, "*agents"]:
    """Return 1 if an event fulfils the kind, -1 if one breaks it, else 0. If both occur at once, fulfilment wins.

    Args:
        kind: A kind, or one for each agent.
        events: How often each event happened in this tick.
        rules: Which events resolve each kind.
    """
    assert_rank("V", events=events)
    outcome = rules.outcome[kind]
    met = outcome * jnp.broadcast_to(events > 0, outcome.shape)
    return jnp.where((met > 0).any(-1), 1.0, jnp.where((met < 0).any(-1), -1.0, 0.0))


def pay(
    held: tuple[Instruction, ...],
    task: Float[Array, " N"],
    complied: tuple[Bool[Array, " N"], ...],
    fresh: Bool[Array, " N"],
    events: Float[Array, " V"],
    rules: Rules,
) -> Float[Array, " N"]:
    """Return the reward [N] under the instructions that hold in this tick (D13).

    Two instructions pay what each pays by itself, and the task's reward is added if neither replaces it.

    Args:
        held: One or two instructions.
        task: The task's reward.
        complied: For each instruction, whether each agent's macro is allowed.
        fresh: Which agents chose a macro in this tick.
        events: How often each event happened in this tick.
        rules: What each kind pays.
    """
    if len(held) == 1:
        return _pay(held[0], task, complied[0], fresh, events, rules)
    zeros = jnp.zeros_like(task)
    (one, also), (met, also_met) = held, complied
    replaced = rules.replaces[one.kind] | rules.replaces[also.kind]
    own = _pay(one, zeros, met, fresh, events, rules)
    other = _pay(also, zeros, also_met, fresh, events, rules)
    return jnp.where(replaced, 0.0, task) + own + other


def _pay(
    instruction: Instruction,
    task: Array,
    complied: Array,
    fresh: Array,
    events: Array,
    rules: Rules,
) -> Array:
    assert_rank("N", kind=instruction.kind, task=task, complied=complied, fresh=fresh)
    kind = instruction.kind
    once = jnp.where(complied, rules.bonus[kind], rules.penalty[kind]) * fresh
    each_tick = jnp.where(complied, rules.pay[kind], -rules.pay[kind])
    reward = jnp.where(rules.replaces[kind], 0.0, task) + (each_tick + once)  # kind 0 pays nothing
    return reward + rules.credit[kind] * verdict(kind, events, rules)

"""Small mistakes in Python code: one expression of a module is replaced by a wrong one.

Besides what mutation tools know (`<` for `<=`, signs, swapped branches) there are the mistakes of array code: another
axis, off by one row, a mask dropped, the value of another context, arguments swapped. No package had these for JAX.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
}  # fmt: skip
TWINS = [  # functions and fields of which one is easily taken for the other
    ("maximum", "minimum"), ("max", "min"), ("any", "all"), ("argmax", "argmin"), ("sum", "mean"),
    ("cummax", "cummin"), ("ones", "zeros"), ("ones_like", "zeros_like"),
    ("observation", "next_observation"), ("v_same_instruction", "v_next_instruction"), ("begun", "ended"),
    ("available", "forbidden"), ("first", "last"), ("terminal", "truncated"), ("reward", "task_reward"),
    ("train_env", "test_env"), ("actor", "critic"), ("followed", "closed"), ("numerator", "denominator"),
    ("kind", "phrase"), ("penalty", "bonus"), ("hold_min", "hold_max"), ("macro", "last_macro"),
    ("actor_lr", "critic_lr"), ("actor_hysteresis", "critic_hysteresis"), ("low", "high"), ("valid", "switched"),
]  # fmt: skip
TWIN = {**dict(TWINS), **{other: one for one, other in TWINS}}
REDUCES = (
    "sum",
    "mean",
    "any",
    "all",
    "max",
    "min",
    "argmax",
    "argmin",
    "cumsum",
    "stack",
    "concatenate",
    "roll",
)
SKIPPED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.AnnAssign)
CHECKS = (
    "assert_rank",
    "RangeError",
    "ValueError",
    "print",
    "look_up",
    "suggest",
    "static",
    "record",
    "cast",
)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One expression of a file, and what stands there instead."""

    file: str
    line: int
    what: str
    start: int  # offsets in the file's text
    end: int
    old: str
    new: str
    inside: str  # the line's text, so that the name survives changes elsewhere

    @property
    def name(self) -> str:
        """Return a name that stays the same while the mutated line does."""
        told = f"{self.file}|{self.inside.strip()}|{self.old}|{self.new}|{self.what}"
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def apply(self, text: str) -> str:
        """Return the file's text with the mistake."""
        return text[: self.start] + self.new + text[self.end :]


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Yield all mutants of a module.

    Args:
        file: its path, for their names.
        text: its source.
    """
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in _expressions(ast.parse(text)):
        start = offset(node.lineno, node.col_offset)
        end = offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        for what, changed in _changes(node):
            yield Mutant(
                file=file, line=node.lineno, what=what, start=start, end=end, old=text[start:end],
                new=f"({ast.unparse(changed)})", inside=lines[node.lineno - 1],
            )  # fmt: skip


def _expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that compute something: not texts, annotations, checks or messages."""
    for field, child in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(
            tree, ast.Call
        ):
            continue
        for one in child if isinstance(child, list) else [child]:
            if not isinstance(one, ast.AST) or isinstance(one, SKIPPED) or _is_check(one):
                continue
            if isinstance(one, ast.expr):
                yield one
            yield from _expressions(one)


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in CHECKS


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the wrong expressions that may stand in place of one, with what is wrong."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARE:
            yield "another comparison", _with(node, ops=[COMPARE[type(op)]()])
        case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
            yield "another sign or operation", _with(node, op=ARITHMETIC[type(op)]())
            if isinstance(op, ast.BitAnd | ast.Mult):
                yield "a mask or factor dropped", left
                yield "a mask or factor dropped", right
        case ast.UnaryOp(op=ast.Invert() | ast.Not() | ast.USub(), operand=inside):
            if not isinstance(inside, ast.Constant):
                yield "a negation dropped", inside
        case ast.BoolOp(op=op):
            yield "and for or", _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.IfExp(body=body, orelse=other):
            yield "branches swapped", _with(node, body=other, orelse=body)
        case ast.Subscript(slice=ast.Slice(lower=ast.Constant(value=int(row)))):
            yield "off by one row", _sliced(node, lower=row + 1)
            yield "off by one row", _sliced(node, lower=row - 1 if row > 0 else None)
        case ast.Subscript(slice=ast.Slice(upper=ast.UnaryOp(operand=ast.Constant(value=int())))):
            yield "off by one row", _sliced(node, upper=None)
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in TWIN:
            yield "another of two alike", _with(node, attr=TWIN[name])
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    given, name = node.args, _called(node)
    if name == "where" and len(given) == 3:
        yield "arguments swapped", _with(node, args=[given[0], given[2], given[1]])
    elif _may_swap(name, given):
        yield "arguments swapped", _with(node, args=given[::-1])
    if name == "roll" and len(given) > 1:
        yield (
            "off by one row",
            _with(node, args=[given[0], ast.UnaryOp(ast.USub(), given[1]), *given[2:]]),
        )
    if name in REDUCES:
        for place, one in enumerate(given):
            if isinstance(one, ast.Constant) and type(one.value) is int:
                other = ast.Constant(1 - one.value if one.value in (0, 1) else 0)
                yield "another axis", _with(node, args=[*given[:place], other, *given[place + 1 :]])
            if (
                isinstance(one, ast.UnaryOp)
                and isinstance(one.operand, ast.Constant)
                and place + 1 == len(given)
            ):
                yield "another axis", _with(node, args=[*given[:place], ast.Constant(0)])
        for place, named in enumerate(node.keywords):
            if named.arg == "axis":
                zero = isinstance(named.value, ast.Constant) and named.value.value == 0
                other = ast.Constant(-1 if zero else 0)
                kept = [
                    *node.keywords[:place],
                    ast.keyword("axis", other),
                    *node.keywords[place + 1 :],
                ]
                yield "another axis", _with(node, keywords=kept)


def _may_swap(name: str, given: list[ast.expr]) -> bool:
    """Return whether two swapped arguments are a mistake that somebody could make."""
    others = ("isinstance", "getattr", "partial", "zip", "replace", *REDUCES)
    plain = not any(isinstance(one, ast.Starred | ast.Constant) for one in given)
    return len(given) == 2 and name not in others and plain


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _sliced(node: ast.Subscript, **ends: int | None) -> ast.expr:
    """Return a subscript whose slice begins or ends elsewhere."""
    plain = {name: None if row is None else ast.Constant(row) for name, row in ends.items()}
    kept = {name: getattr(node.slice, name) for name in ("lower", "upper", "step")}
    return _with(node, slice=ast.Slice(**{**kept, **plain}))

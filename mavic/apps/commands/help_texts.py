"""Help texts of options: the docstring below each field of a dataclass, as one paragraph."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import tyro


def help_texts(cls: type) -> dict[str, str]:
    """Return the docstring of each field that the class itself declares, with its lines joined."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    found[field.target.id] = " ".join(words.split())
    return found


def with_help(hint: Any, text: str) -> Any:
    """Return a type for tyro that carries its help text. Its option has no prefix, even inside a nested record."""
    return Annotated[hint, tyro.conf.arg(help=text, prefix_name=False)]


def join_lines(command: type) -> None:
    """Give every option of a command its help text as one paragraph. tyro would keep the line breaks of the source."""
    for cls in command.__mro__:
        if not cls.__module__.startswith("mavic.") or "_joined" in vars(cls):
            continue
        hints = get_type_hints(cls, include_extras=True)
        texts = help_texts(cls)
        cls.__annotations__ |= {name: with_help(hints[name], texts[name]) for name in texts}
        cls._joined = True  # type: ignore[attr-defined]

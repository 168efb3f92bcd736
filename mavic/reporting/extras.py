"""Packages that only reports need; they come with the extra `report`."""

from __future__ import annotations

import importlib
from typing import Any


class _MissingExtraError(ImportError):
    """A package of the extra `report` is not installed. The message says what to type."""


def require(module: str) -> Any:
    """Import a module of the extra `report`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        raise _MissingExtraError(
            f"tables and figures need {package}: pip install 'mavic[report]'"
        ) from error

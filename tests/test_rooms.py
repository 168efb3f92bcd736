"""The rooms of the package: what is private stays inside, and each room says what it is for."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted((ROOT / "mavic").glob("*/__init__.py"))


def room_of(module: str) -> str:
    """The room of a module: a folder or module of mavic, or another package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "mavic" else parts[0]


def private_imports(path: Path) -> list[str]:
    """Names with an underscore that a file imports from another room, or uses of a module of another room."""
    own = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    tree, found, modules = ast.parse(path.read_text(encoding="utf-8")), [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mavic"):
            for alias in node.names:
                if room_of(f"{node.module}.{alias.name}") != own:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    parts = (*node.module.split("."), alias.name)
                    found += [name for name in parts if name[0] == "_" and name[:2] != "__"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if private and node.value.id in modules:
                found += [f"{modules[node.value.id]}.{node.attr}"]
    return found


@pytest.mark.parametrize("folder", ["mavic", "tools"])
def test_what_is_private_stays_in_its_room(folder):
    found = {
        str(path.relative_to(ROOT)): names
        for path in (ROOT / folder).rglob("*.py")
        if (names := private_imports(path))
    }
    assert found == {}


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_a_room_says_what_it_is_for_and_names_its_modules(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert len(text.splitlines()) >= 3
    parts = {one.stem for one in path.parent.glob("*.py")} - {"__init__"}
    parts |= {one.parent.name for one in path.parent.glob("*/__init__.py")}
    assert {name for name in parts if not name.startswith("_") and name not in text} == set()

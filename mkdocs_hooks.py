"""The docs site, beyond the pages in docs/: figures, notebooks, recorded episodes and the generated reference.

Pages name figures and files by their places in the repository, so that they also read well there. On the site a figure
from outside docs/ is copied beside the pages, and any other link that leads out of docs/ becomes plain text. What is
made here and is no page in docs/ is listed in SOURCES.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args

ROOT = Path(__file__).parent
DOCS = ROOT / "docs"
EPISODES = ROOT / ".cache" / "playground"  # what `mavic play --export` wrote
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
NOTEBOOKS = ("train_and_break_a_team", "your_own_world")
SOURCES = {  # pages that are made here, and the files of the repository to which pages in docs/ link in their place
    **PAGES,
    **{f"notebooks/{name}.md": f"examples/notebooks/{name}.ipynb" for name in NOTEBOOKS},
    "index.html": "mavic/apps/playground/export.py",
    "presets.md": "mavic/preset.py",
    "commands.md": "mavic/apps/cli.py",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
PICTURES = (".png", ".gif", ".svg")


def placed(page: str, target: str) -> str | None:
    """Return the file of the repository that a link of a page means; None for addresses elsewhere.

    Args:
        page: The page, from docs/ on, such as "worlds/overcooked.md".
        target: Where its link leads.
    """
    if re.match(r"[a-z]+:", target):
        return None
    path = os.path.normpath(PurePosixPath("docs") / PurePosixPath(page).parent / target)
    return path.replace(os.sep, "/")


def figures(page: str, text: str) -> Iterator[str]:
    """Yield the files of a page's figures, from the root of the repository on."""
    for is_figure, _, target, _ in LINK.findall(text):
        path = placed(page, target) if is_figure else None
        if path is not None:
            yield path


def as_shown(page: str, text: str) -> str:
    """Return the text of a page as the site has it: figures lie beside the pages, nothing leads out of docs/."""
    up = "../" * (len(PurePosixPath(page).parts) - 1)

    def moved(found: re.Match[str]) -> str:
        mark, said, target, part = found.groups()
        path = placed(page, target)
        if path is None or path.startswith("docs/"):
            return found[0]
        if path.endswith(PICTURES):
            return f"{mark}[{said}]({up}{path})"
        for made, source in SOURCES.items():
            if path == source:
                return f"[{said}]({up}{made}{part or ''})"
        return said

    return LINK.sub(moved, text)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page's text for the site."""
    return as_shown(page.file.src_uri, markdown)


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Add what is no page in docs/: figures, pages from elsewhere, notebooks, episodes, the reference."""
    from mkdocs.structure.files import File

    def add(name: str, **source: Any) -> None:
        files.append(File.generated(config, name, **source))

    pages = [file for file in files.documentation_pages()]
    shown = {path for file in pages for path in figures(file.src_uri, file.content_string)}
    linked = {
        path
        for file in pages
        for _, _, target, _ in LINK.findall(file.content_string)
        if (path := placed(file.src_uri, target)) and path.endswith(PICTURES)
    }
    for path in sorted(shown | linked):
        if not path.startswith("docs/"):
            add(path, abs_src_path=str(ROOT / path))
    for name, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        add(name, content=text.replace("](docs/", "]("))
    for name in NOTEBOOKS:
        add(f"notebooks/{name}.md", content=_notebook(name))
    for path in _episodes():
        name = path.relative_to(EPISODES).as_posix()
        if name == "index.html":
            add(name, content=first_page(path.read_text(encoding="utf-8")))
        else:
            add(name, abs_src_path=str(path))
    add("commands.md", content=_commands())
    add("presets.md", content=_presets())
    return files


def first_page(text: str) -> str:
    """Return the first of the recorded episodes as the site's first page: it leads to the guide."""
    return text.replace("</header>", '<a href="install/">Documentation</a></header>', 1)


def _notebook(name: str) -> str:
    """Return a notebook as a page."""
    from nbconvert import MarkdownExporter

    text, _ = MarkdownExporter().from_filename(str(ROOT / "examples/notebooks" / f"{name}.ipynb"))
    return text


def _episodes() -> list[Path]:
    """Return the pages of recorded episodes. They are made once; `make docs` removes them first."""
    if not (EPISODES / "index.html").is_file():
        subprocess.run([sys.executable, "-m", "mavic", "play", "--export", EPISODES], check=True)
    return sorted(path for path in EPISODES.rglob("*") if path.is_file())


def _commands() -> str:
    """Return the help texts of all commands as a page."""
    from mavic.apps import cli

    parts = ["# Command line\n\nWhat `mavic COMMAND --help` prints.\n"]
    for command in (one.__name__.lower() for one in get_args(cli.COMMANDS)):
        told = subprocess.run(
            [sys.executable, "-m", "mavic", command, "--help"],
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
        parts.append(f"## mavic {command}\n\n```text\n{told.strip()}\n```\n")
    return "\n".join(parts)


def _presets() -> str:
    """Return the numbers of all presets as a page."""
    from tools import presets

    return presets.page()

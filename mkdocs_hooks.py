"""For the docs site: links to files outside docs/ become plain text, because these files are not on the site."""

import re
from typing import Any

OUTSIDE = re.compile(r"!?\[([^\]]+)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text without links that lead out of docs/."""
    return OUTSIDE.sub(r"\1", markdown)

"""Markdown that several pages write."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from equicaps.errors import UsageError


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, ending with a line feed."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def filled(page: Path, blocks: Mapping[str, str]) -> str:
    """The page's text with everything between ``<!-- NAME: ... -->`` and ``<!-- end of NAME -->`` replaced."""
    text = page.read_text(encoding="utf-8")
    for name, content in blocks.items():
        start, end = rf"<!-- {name}: [^\n]*-->", f"<!-- end of {name} -->"
        block = re.compile(rf"({start}\n).*?({end})", re.DOTALL)
        if len(re.findall(f"{start}|{end}", text)) != 2 or not block.search(text):
            raise UsageError(
                f"{page} must hold '<!-- {name}: ... -->' and then '{end}' on lines of their own, each once: put them "
                "where the table goes."
            )
        text = block.sub(lambda found, content=content: f"{found[1]}\n{content}\n{found[2]}", text)  # type: ignore[misc] # bound at once
    return text

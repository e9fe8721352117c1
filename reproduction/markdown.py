"""Tables in Markdown, and the parts of a page that are written by a program."""

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
        found = block.search(text)
        if found is None or len(re.findall(f"{start}|{end}", text)) != 2:
            raise UsageError(
                f"{page} must contain '<!-- {name}: ... -->' and then '{end}', each once and on a line of its own: put "
                "them where the table belongs."
            )
        text = f"{text[: found.start()]}{found[1]}\n{content}\n{found[2]}{text[found.end() :]}"
    return text

"""Do the tests notice mistakes? Each mutant has one in a copy of the repository, where some of its tests must fail.

Run: ``python tests/mutants.py [WORD ...]``. It tries all mutants, or those whose name or file contains one of the words
given, and brings the table ``tests/mutants.md`` up to date. The mutants are listed in ``tests/mutations``.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from mutations import MUTANTS
from mutations.mutant import Mutant

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.md"
SKIPPED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "_build")
AT_ONCE = 2
TIMEOUT = 900
"""Seconds; a mutant that runs for longer counts as noticed."""
PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=", "-rfE")
"""Without the project's own options, whose ``-rs`` would leave out which test failed."""


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the repository."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "equicaps"
        shutil.copytree(ROOT, copy, ignore=SKIPPED)
        yield copy


def python(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy, whichever equicaps is installed."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(copy / "src"), str(copy))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # importing them takes longer than many a test
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )


def run_tests(copy: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    return python(copy, *PYTEST, *(f"tests/{name}" for name in tests))


def problem(mutants: Sequence[Mutant]) -> str | None:
    """Why mutants would die for the wrong reason: the unchanged copy must be what is tested, and must pass."""
    with copied() as copy:
        where = python(copy, "-c", "import equicaps; print(equicaps.__file__)").stdout.strip()
        if not Path(where).is_relative_to(copy):
            return f"not the copy would be tested, but {where}"
        done = run_tests(copy, dict.fromkeys(name for mutant in mutants for name in mutant.tests))
        return None if done.returncode == 0 else f"the unchanged copy does not pass:\n{done.stdout}{done.stderr}"


def verdict(mutant: Mutant) -> tuple[str, str]:
    """Whether the tests noticed the mutant, and which was the first to fail."""
    with copied() as copy:
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.before) != 1:
            return "STALE", f"{mutant.before} occurs {text.count(mutant.before)} times"
        path.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
        try:
            done = run_tests(copy, mutant.tests)
        except subprocess.TimeoutExpired:
            return "killed", f"still running after {TIMEOUT} seconds"
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        if done.returncode == 1 and failed:
            return "killed", failed[1]
        return "SURVIVED" if done.returncode == 0 else "BROKEN", f"pytest ended with {done.returncode}"


def rows_of(table: Path) -> dict[str, str]:
    """The rows of the table by the names of their mutants."""
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}


def write_table(rows: dict[str, str]) -> str:
    """Write the table, without the rows of mutants that are gone or have moved, and return its summary."""
    kept = [row for mutant in MUTANTS if f"| `{mutant.file}` |" in (row := rows.get(mutant.name, ""))]
    killed = sum("| killed |" in row for row in kept)
    summary = f"{killed} of {len(kept)} killed, {len(MUTANTS) - len(kept)} not tried yet"
    lines = ["# Mutants", "", f"{summary}. Written by `make mutants`; see `tests/mutants.py`.", "",
             "| mutant | file | verdict | first test to fail |", "|---|---|---|---|", *kept]  # fmt: skip
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return summary


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name + mutant.file for word in words)]
    if not chosen:
        print(f"no mutant's name or file contains {' or '.join(words)}")
        return 2
    if found := problem(chosen):
        print(found)
        return 1
    rows, killed = {}, 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for mutant, (word, detail) in zip(chosen, pool.map(verdict, chosen), strict=True):
            print(f"{word:<8} {mutant.name}: {detail}", flush=True)
            rows[mutant.name] = f"| {mutant.name} | `{mutant.file}` | {word} | `{detail}` |"
            killed += word == "killed"
    print(write_table(rows_of(TABLE) | rows))
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Write the table of groups.md from the group classes; with --check, only check that it is up to date."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from equicaps import groups
from equicaps.groups import GL, SE2, SE3, SO2, SO3, Group, Product, Scale, Translation

PAGE = Path(__file__).with_name("groups.md")
BEGIN = "<!-- table: written by docs/make_groups.py -->"
END = "<!-- end of table -->"
EXAMPLES: dict[str, Group] = {
    "SO2()": SO2(),
    "SO3()": SO3(),
    "Translation(2)": Translation(2),
    "Scale()": Scale(),
    "GL(2)": GL(2),
    "SE2()": SE2(),
    "SE3()": SE3(),
    "Product(SO2(), Translation(2))": Product(SO2(), Translation(2)),
}
COLUMNS: dict[str, Callable[[Group], object]] = {
    "group": repr,
    "coordinates (`dim`)": lambda group: group.dim,
    "`algebra_dim`": lambda group: group.algebra_dim,
    "acts on": lambda group: f"R^{group.point_dim}",
    "mean M": lambda group: _first_line(group.mean),
    "distance δ": lambda group: _first_line(group.distance),
    "M closed?": lambda group: _yes_or_no(group.mean_is_closed),
    "δ symmetric?": lambda group: _yes_or_no(group.distance_is_symmetric),
    "undefined pose": lambda group: _undefined_pose(group),
}


def table(examples: dict[str, Group] = EXAMPLES) -> str:
    """The Markdown table with a row for every group that equicaps.groups exports."""
    exported = {cls for name in groups.__all__ if inspect.isclass(cls := getattr(groups, name)) and cls is not Group}
    missing = sorted(cls.__name__ for cls in exported - {type(group) for group in examples.values()})
    if missing:
        raise SystemExit(f"docs/make_groups.py: add an example of {', '.join(missing)} to EXAMPLES.")
    rows = [["built by", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    rows += [[f"`{call}`", *(_cell(read(group)) for read in COLUMNS.values())] for call, group in examples.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def updated(page: str) -> str:
    """The page with a fresh table between the two markers."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"docs/make_groups.py: {PAGE} must contain each marker once:\n  {BEGIN}\n  {END}")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def is_current(page: str) -> bool:
    """Whether writing the table would leave the page unchanged."""
    return updated(page) == page


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the table is out of date")
    page = PAGE.read_text(encoding="utf-8")
    if not parser.parse_args(arguments).check:
        PAGE.write_text(updated(page), encoding="utf-8")
    elif not is_current(page):
        raise SystemExit("docs/groups.md is out of date; run `python docs/make_groups.py`.")


def _first_line(method: Callable[..., object]) -> str:
    return (inspect.getdoc(method) or "").partition("\n")[0].rstrip(".")


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _undefined_pose(group: Group) -> str:
    zero = torch.zeros(group.dim)
    if group.presence(zero) == 1:
        return "known by its activation only"
    faded = group.fade(group.random(generator=torch.Generator().manual_seed(0)), torch.zeros(()))
    where = "zero vector" if (faded == 0).all() else "zero rotation"
    return where if group.mean_is_closed else f"{where}, and every mean outside the group"


def _cell(value: object) -> str:
    return str(value).replace("|", r"\|")


if __name__ == "__main__":
    main()

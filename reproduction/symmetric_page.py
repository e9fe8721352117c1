"""``docs/own_data.md``: its table of symmetric things, from ``results/symmetric.json``."""

from reproduction.markdown import markdown_table
from reproduction.results import Record

HEAD = (
    "drawn",
    "looks the same after",
    "period that was found",
    "stated error, mean",
    "measured error, median",
    "nine of ten within",
    "within their stated error",
    "classified correctly",
)


def table(record: Record) -> str:
    """A row for each class, and below what was trained, and how."""
    rows = [[name, *_period(row), *_errors(row), f"{row['accuracy']:.1f} %"] for name, row in record["rows"].items()]
    figures = record["figures"]
    return (
        f"{markdown_table(HEAD, rows)}\n"
        f"{record['images_of_each_class']:,} training images of each class, {record['cpu_minutes']:.1f} CPU-minutes "
        f"({record['steps']:,} steps), seed {record['seed']}, commit {record['commit']}; "
        f"{record['fresh_images_of_each_class']:,} fresh images of each class. The training itself reports an accuracy "
        f"of {figures['accuracy']:.1f} % and a median pose error of {figures['pose_error_median']:.1f}° on "
        f"{figures['images']:,} test images: {figures.get('images_modulo_period', 0):,} modulo the period of their "
        f"class, {figures.get('images_of_round_classes', 0):,} left out, because their class is round.\n"
    )


def _period(row: Record) -> list[str]:
    return ["any rotation" if value == 0 else f"{value:g}°" for value in (row["true_period"], row["period"])]


def _errors(row: Record) -> list[str]:
    """Dashes for a round class; the few angles of images that are taken for another class say nothing about it."""
    if row["period"] == 0:
        return ["–"] * 4
    percent = f"{row['within_stated']:.1f} %" if "within_stated" in row else "–"
    degrees = (f"{row[name]:.1f}°" if name in row else "–" for name in ("stated", "median", "nine_of_ten"))
    return [*degrees, percent]

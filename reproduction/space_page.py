"""``docs/space.md``: its table of ModelNet10, from ``results/points.json``."""

from collections.abc import Callable

from reproduction.markdown import markdown_table
from reproduction.results import Record

WORDS = {"points": "`points`, steerable capsules", "points-paper": "`points-paper`, the paper's construction"}


def _errors(of_class: dict[str, float] | None) -> str:
    if of_class is None:
        return "–"
    return f"{of_class['pose_error_median']:.1f}° ({of_class['vertical_error_median']:.1f}°)"


def table(record: Record) -> str:
    """One column for each network."""
    found = record["validation"]
    rows: list[tuple[str, Callable[[Record], str]]] = [
        ("shapes of the training set that were held back", lambda one: f"{one['test_shapes']:,}"),
        ("parameters", lambda one: f"{one['parameters']:,}"),
        ("views seen", lambda one: f"{one['images_seen']:,}"),
        ("CPU-minutes of training", lambda one: f"{one['cpu_minutes']:.1f}"),
        ("accuracy under random rotations, 1024 points", lambda one: f"{one['audit']['accuracy']:.1f} %"),
        ("predictions changed by rotations", lambda one: f"{one['audit']['exact']['predictions_changed']}"),
        ("largest change of a score", lambda one: f"{one['audit']['exact']['scores']:.0e}"),
        ("pose error, median", lambda one: f"{one['audit']['pose_error_median']:.1f}°"),
        ("accuracy with a tenth of the points replaced by noise", lambda one: f"{one['accuracy_with_noise']:.1f} %"),
        ("shapes per CPU-second", lambda one: f"{one['shapes_per_cpu_second']:.0f}"),
    ]
    counts = next(iter(found.values()))["accuracy_by_points"]
    body = [[what, *(show(one) for one in found.values())] for what, show in rows]
    body += [
        [
            f"accuracy with {count} other points",
            *(f"{one['accuracy_by_points'][count]:.1f} %" for one in found.values()),
        ]
        for count in counts
    ]
    classes = [one["pose_errors_by_class"] for one in found.values()]
    names = list(dict.fromkeys(name for by_class in classes for name in by_class))
    body += [[f"pose error, median (of the vertical axis), {name}", *(_errors(one.get(name)) for one in classes)]
             for name in names]  # fmt: skip
    return markdown_table(("", *(WORDS[name] for name in found)), body)

"""``docs/reproduction.md``: how fast the paper's network is, and how often its trainings looked at test images."""

from collections.abc import Sequence

from reproduction.ledger import Look
from reproduction.markdown import markdown_table
from reproduction.results import Record
from reproduction.trainings import TRAININGS

KINDS = {"training": "training", "inference": "prediction"}
NETWORKS = {"paper": "`paper`", "capsules_only": "`capsules_only`"}


def speed(record: Record) -> str:
    """Images per CPU-second of the plain CNN, and how many times as many the paper's network processes."""
    rows = [
        [f"{what}, {images}", f"{found['plain CNN'][kind]:.0f}",
         *(f"{found[name][kind]:.0f}, {found[name][f'{kind}_ratio']:.2f} times as many" for name in NETWORKS)]
        for images, found in record["rows"].items()
        for kind, what in KINDS.items()
    ]  # fmt: skip
    return markdown_table(["images per CPU-second", "plain CNN of the benchmark", *NETWORKS.values()], rows)


def looks(ledger: Sequence[Look]) -> str:
    """How often each training of the paper's network was measured on test images, with the commits that trained it."""
    rows = []
    for name, training in TRAININGS.items():
        commits = [look["trained_by"] for look in ledger if look["run"] == name]
        if commits and not training.preset.startswith("steerable"):
            rows.append([f"`{name}`", str(len(commits)), ", ".join(commits)])
    return markdown_table(["training", "looks at test images", "trained by commit"], rows)

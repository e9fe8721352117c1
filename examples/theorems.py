"""Route poses of every group through two capsule layers and check Theorems 1 and 2.

The input poses are moved by a random group element. The output poses must move by the same element, and the
activations must not change. The control column is the error of the false claim that the poses do not move. Exits with 1
if a theorem does not hold.
"""

import sys

import torch
from rich.console import Console
from rich.table import Table

from equicaps.functional import Routing
from equicaps.groups import GL, SE2, SE3, SO2, SO3, Group, Product, Scale, Translation
from equicaps.nn import GroupCapsules
from equicaps.testing import EquivarianceError, equivariance_error

GROUPS = (SO2(), SO3(), Translation(3), GL(3), SE2(), SE3(), Scale(), Product(SO2(), Translation(2)))
ALLOWED = {torch.float32: 1e-5, torch.float64: 1e-12}
CONTROL = 0.1


class TwoLayers(torch.nn.Module):
    """Two capsule layers, 16 → 12 → 10."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.lower = GroupCapsules(group, in_capsules=16, out_capsules=12)
        self.upper = GroupCapsules(group, in_capsules=12, out_capsules=10)

    def forward(self, poses: torch.Tensor, activations: torch.Tensor) -> Routing:
        middle = self.lower(poses, activations)
        return self.upper(middle.poses, middle.activations)


def measure(group: Group, dtype: torch.dtype, objects: int = 64) -> EquivarianceError:
    """The equivariance errors on objects at random poses whose parts are scattered around them."""
    torch.manual_seed(0)
    network = TwoLayers(group).to(dtype)
    scatter = group.exp(torch.randn(objects, 16, group.algebra_dim, dtype=dtype) / 4)
    poses = group.compose(group.random(objects, 1, dtype=dtype), scatter)
    return equivariance_error(network, group, poses, torch.rand(objects, 16, dtype=dtype))


def main() -> int:
    table = Table(title="Two capsule layers, 16 → 12 → 10, moved by a random element of the group")
    table.add_column("group")
    table.add_column("dtype")
    table.add_column("poses\ng ∘ L(P) = L(g ∘ P)", justify="right")
    table.add_column("activations\nL(P) = L(g ∘ P)", justify="right")
    table.add_column("control: poses\nL(P) = L(g ∘ P)?", justify="right")
    table.add_column("")
    failures = 0
    for group in GROUPS:
        for dtype, allowed in ALLOWED.items():
            error = measure(group, dtype)
            holds = error.poses <= allowed and error.activations <= allowed and error.control > CONTROL
            failures += not holds
            figures = (f"{error.poses:.1e}", f"{error.activations:.1e}", f"{error.control:.2f}")
            table.add_row(repr(group), str(dtype).removeprefix("torch."), *figures, "holds" if holds else "FAILS")
    Console(width=100).print(table)
    print(f"Largest allowed error: {ALLOWED[torch.float32]:.0e} in float32, {ALLOWED[torch.float64]:.0e} in float64,")
    print(f"relative to the largest coordinate. The control tests a false claim: its error must exceed {CONTROL}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""A group of your own in forty lines: the Heisenberg group, first checked, then used in a capsule layer.

Elements (x, y, z) stand for the matrices [[1, x, z], [0, 1, y], [0, 0, 1]]. Run: python examples/your_own_group.py
"""

import torch

from equicaps.groups import Group
from equicaps.nn import GroupCapsules
from equicaps.numerics import weighted_mean
from equicaps.testing import LawViolationError, check_group, equivariance_error


# --8<-- the group
class Heisenberg(Group):
    dim = algebra_dim = point_dim = 3

    def identity(self, *shape, dtype=None, device=None):
        return torch.zeros(*shape, 3, dtype=dtype, device=device)

    def compose(self, g, h):
        return g + h + _vertical(g[..., 0] * h[..., 1])

    def inverse(self, g):
        return -g + _vertical(g[..., 0] * g[..., 1])

    def act(self, g, points):  # matrix times point
        (x, y, z), (a, b, c) = g.unbind(-1), points.unbind(-1)
        return torch.stack((a + x * b + z * c, b + y * c, c.expand_as(z * c)), dim=-1)

    def mean(self, elements, weights):  # equivariant, because left multiplication is affine in (x, y, z)
        return weighted_mean(elements, weights)

    def distance(self, g, h):
        return torch.linalg.vector_norm(self.log(self.compose(self.inverse(g), h)), dim=-1)

    def exp(self, algebra):
        return algebra + _vertical(algebra[..., 0] * algebra[..., 1] / 2)

    def log(self, g):
        return g - _vertical(g[..., 0] * g[..., 1] / 2)

    def random(self, *shape, generator=None, dtype=None, device=None):
        return torch.randn(*shape, 3, generator=generator, dtype=dtype, device=device)

    def contains(self, g):
        return g.isfinite().all(-1)


# --8<-- end


def _vertical(z: torch.Tensor) -> torch.Tensor:
    return torch.stack((torch.zeros_like(z), torch.zeros_like(z), z), dim=-1)


class Careless(Heisenberg):
    def inverse(self, g):  # wrong: x and y do not commute
        return -g


def main() -> None:
    group = Heisenberg()
    print(check_group(group))
    torch.manual_seed(0)
    layer = GroupCapsules(group, in_capsules=8, out_capsules=4)
    error = equivariance_error(layer, group, group.random(16, 8), torch.rand(16, 8))
    print(f"\ncapsule layer: poses {error.poses:.0e}, activations {error.activations:.0e}, control {error.control:.1f}")
    try:
        check_group(Careless())
    except LawViolationError as violation:
        print("\nThe same group with a mistake in `inverse`:")
        print("\n".join(line for line in str(violation).splitlines() if "FAIL" in line))


if __name__ == "__main__":
    main()

import pytest
import torch

from equicaps.functional import spline_basis

TABLE = {  # by hand, from the pieces of the cardinal B-splines; five control points over [-1, 1]
    (1, -1.0): [1, 0, 0, 0, 0],
    (1, -0.75): [1 / 2, 1 / 2, 0, 0, 0],
    (1, 0.0): [0, 0, 1, 0, 0],
    (1, 0.875): [0, 0, 0, 1 / 4, 3 / 4],
    (2, -1.0): [1 / 2, 1 / 2, 0, 0, 0],
    (2, 0.0): [0, 1 / 8, 3 / 4, 1 / 8, 0],
    (2, 1.0): [0, 0, 0, 1 / 2, 1 / 2],
    (3, -1.0): [1 / 6, 4 / 6, 1 / 6, 0, 0],
    (3, 0.0): [0, 1 / 6, 4 / 6, 1 / 6, 0],
    (3, 0.5): [0, 1 / 48, 23 / 48, 23 / 48, 1 / 48],
}
degrees = pytest.mark.parametrize("degree", [1, 2, 3])


def cox_de_boor(x, k, degree, knots):
    """The textbook recursion."""
    if degree == 0:
        return float(knots[k] <= x < knots[k + 1])
    left = (x - knots[k]) / (knots[k + degree] - knots[k]) * cox_de_boor(x, k, degree - 1, knots)
    right = (knots[k + degree + 1] - x) / (knots[k + degree + 1] - knots[k + 1])
    return left + right * cox_de_boor(x, k + 1, degree - 1, knots)


@pytest.mark.parametrize(("degree", "x"), TABLE)
def test_values_equal_the_table(degree, x, dtype):
    basis = spline_basis(torch.tensor(x, dtype=dtype), degree, 5)
    torch.testing.assert_close(basis, torch.tensor(TABLE[degree, x], dtype=dtype))


@degrees
@pytest.mark.parametrize("size", [4, 5, 7])
def test_values_equal_the_recursion_as_plain_loops(degree, size, dtype, tolerance):
    """Cox and de Boor, uniform knots, none repeated."""
    step = 2 * 1.5 / (size - degree)
    knots = [-1.5 + step * (k - degree) for k in range(size + degree + 1)]
    for x in torch.linspace(-1.5, 1.49, 23).tolist():
        expected = [cox_de_boor(x, k, degree, knots) for k in range(size)]
        actual = spline_basis(torch.tensor(x, dtype=dtype), degree, size, 1.5)
        torch.testing.assert_close(actual, torch.tensor(expected, dtype=dtype), **tolerance)


@degrees
def test_sums_to_one_and_mirrors(degree, shape, dtype):
    x = 2 * torch.rand(*shape, 9, dtype=dtype) - 1
    basis = spline_basis(x, degree, 5)
    torch.testing.assert_close(basis.sum(-1), torch.ones_like(x))
    assert torch.equal(spline_basis(-x, degree, 5), basis.flip(-1))
    assert not torch.equal(spline_basis(-x, degree, 5), basis)


@degrees
def test_rounding_over_the_edge_changes_nothing(degree, dtype):
    """Section 9 of the design: the authors' code picks a wrong control point there."""
    inside = spline_basis(torch.tensor([-1.0, 1.0], dtype=dtype), degree, 5)
    outside = spline_basis(torch.tensor([-1.0, 1.0], dtype=dtype) * (1 + 1e-6), degree, 5)
    assert torch.equal(inside, outside)


@pytest.mark.parametrize(("degree", "size", "message"), [(0, 5, "degree"), (4, 5, "degree"), (3, 3, "size")])
def test_bad_choices_are_explained(degree, size, message):
    with pytest.raises(ValueError, match=f"`{message}` must"):
        spline_basis(torch.zeros(1), degree, size)

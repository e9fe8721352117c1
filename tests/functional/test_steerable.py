"""Steerable capsules against a brute-force sum over the group."""

import cmath
import math

import pytest
import torch

from equicaps.functional import Capsules
from equicaps.functional.steerable import convolve, features_at, low_pass, moments, steerable_basis, vote_strength
from equicaps.groups import SO2


def capsules_on_grid(batch, count, height, width, dtype=torch.float64):
    poses = SO2().random(batch, count, height, width, dtype=dtype)
    return Capsules(poses, torch.rand(batch, count, height, width, dtype=dtype))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_moments_are_features_times_powers_of_the_pose(order):
    """X_n = f pⁿ, as complex numbers."""
    capsules = capsules_on_grid(2, 3, 4, 5)
    maps = moments(capsules, order).unflatten(1, (-1, 3))
    z = torch.view_as_complex(capsules.poses.contiguous())
    torch.testing.assert_close(maps[:, 0], capsules.activations)
    for n in range(1, order + 1):
        expected = capsules.activations * z**n
        torch.testing.assert_close(torch.complex(maps[:, 2 * n - 1], maps[:, 2 * n]), expected)
    assert maps.shape[1] == 2 * order + 1


def test_low_pass_halves_and_commutes_with_quarter_turns(dtype):
    maps = torch.rand(2, 3, 8, 12, dtype=dtype)
    turned = low_pass(torch.rot90(maps, 1, (-2, -1)))
    torch.testing.assert_close(turned, torch.rot90(low_pass(maps), 1, (-2, -1)))
    assert low_pass(maps).shape == (2, 3, 4, 6)
    interior = low_pass(torch.ones(1, 1, 8, 8, dtype=dtype))[0, 0, 1:-1, 1:-1]
    torch.testing.assert_close(interior, torch.ones_like(interior))


WINDOWS = [((8, 8), 3, 1, 1), ((9, 5), 3, 2, 0), ((4, 4), 4, 1, 0), ((4, 4), 4, 2, 2), ((1, 1), 1, 1, 0)]
"""Grid, kernel, stride, padding; the third and the last are one window."""


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("grid", "size", "stride", "padding"), WINDOWS)
def test_convolve_is_conv2d(grid, size, stride, padding, columns, batch, dtype, tolerance):
    """Values and gradients, contiguous."""
    maps = torch.randn(batch, columns, *grid, dtype=dtype, requires_grad=True)
    kernel = torch.randn(5, columns, size, size, dtype=dtype, requires_grad=True)
    actual = convolve(maps, kernel, stride, padding)
    expected = torch.nn.functional.conv2d(maps, kernel, stride=stride, padding=padding)
    assert actual.is_contiguous()
    torch.testing.assert_close(actual, expected, **tolerance)
    head = torch.randn_like(expected)
    for one, other in zip(*(torch.autograd.grad(y, (maps, kernel), head) for y in (actual, expected)), strict=True):
        torch.testing.assert_close(one, other, **tolerance)


@pytest.mark.parametrize(("grid", "size", "stride", "padding"), WINDOWS)
def test_convolve_follows_autocast_and_can_be_mapped(grid, size, stride, padding):
    """As conv2d does: products in half precision, and gradients of every image by torch.func."""
    maps, kernel = torch.randn(4, 3, *grid), torch.randn(5, 3, size, size)
    with torch.autocast("cpu", torch.bfloat16):
        assert convolve(maps, kernel, stride, padding).dtype == torch.bfloat16
    grad = torch.func.grad(lambda weights, image: convolve(image[None], weights, stride, padding).square().sum())
    each = torch.func.vmap(grad, in_dims=(None, 0))(kernel, maps)
    torch.testing.assert_close(each.sum(0), grad_of_all(kernel, maps, stride, padding), rtol=1e-4, atol=1e-3)


def grad_of_all(kernel, maps, stride, padding):
    kernel = kernel.clone().requires_grad_()
    torch.nn.functional.conv2d(maps, kernel, stride=stride, padding=padding).square().sum().backward()
    return kernel.grad


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("orders", [(0, 1), (1, 2), (2, 3)])
def test_basis_kernels_are_distinct_and_steerable(size, orders):
    """K(R⁻¹u) = T_M⁻¹ K(u) T_N: a rotated window is a phase, which acts on rows and columns separately."""
    in_order, out_order = orders
    basis = steerable_basis(size, in_order, out_order)
    rank = torch.linalg.matrix_rank(basis.flatten(1))
    assert rank == len(basis)
    turn_out, turn_in = quarter_turn(out_order), quarter_turn(in_order)
    turned = torch.rot90(basis, 1, (-2, -1))
    expected = torch.einsum("ar,pabxy,bc->prcxy", turn_out, basis, turn_in)
    torch.testing.assert_close(turned, expected)
    if size > 1:
        assert not torch.allclose(turned, basis)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("orders", [(0, 1), (1, 2), (2, 3)])
def test_real_weights_are_all_that_mirroring_allows(size, orders):
    """K(S u) = S_M K(u) S_N, where S conjugates: about the x axis, so that rows of the window change places.

    Of the kernels with complex weights, those with κ = 1 obey, and those with κ = i change their sign.
    """
    conjugate_out, conjugate_in = (torch.tensor([1.0, *[1.0, -1.0] * order]).double() for order in orders[::-1])
    signs = conjugate_out[:, None, None, None] * conjugate_in[:, None, None]
    real, complete = (steerable_basis(size, *orders, mirror) for mirror in ("ignore", "distinguish"))
    torch.testing.assert_close(real.flip(-2), real * signs)
    change = (complete.flip(-2) - complete * signs).flatten(1).norm(dim=1)
    assert (change < 1e-12).sum() == len(real)
    assert len(real) < len(complete) or (size, orders[0]) == (1, 0)  # a pixel says nothing about directions
    torch.testing.assert_close(complete[change < 1e-12], real)
    opposed = complete[change >= 1e-12]
    torch.testing.assert_close(opposed.flip(-2), -opposed * signs)


def quarter_turn(order):
    """The real matrix that multiplies order n by iⁿ."""
    matrix = torch.zeros(2 * order + 1, 2 * order + 1, dtype=torch.float64)
    matrix[0, 0] = 1
    for n in range(1, order + 1):
        c, s = round(math.cos(n * math.pi / 2)), round(math.sin(n * math.pi / 2))
        matrix[2 * n - 1 : 2 * n + 1, 2 * n - 1 : 2 * n + 1] = torch.tensor([[c, -s], [s, c]])
    return matrix


@pytest.mark.parametrize("size", [3, 4])
def test_is_the_group_convolution_of_theorem_3_at_the_capsules_poses(size):
    """For the sparse signal Σ_c f_c δ(x, p_c): f_j = Σ_{u,c} f_c(x+u) ψ(p_j⁻¹u, p_j⁻¹p_c), summed by brute force.

    ψ_jc(u, q) = Re Σ_{mn} κ_mn(|u|) e^{i(m-n)θ_u} qⁿ is a kernel on the whole group of turns and shifts. κ is read off
    the basis at each offset, so that only the group law, not the implementation, is used on the right.
    """
    in_order, out_order, count = 1, 2, 2
    basis = steerable_basis(size, in_order, out_order)
    weight = torch.randn(1, count, len(basis), dtype=torch.float64)
    kernel = torch.einsum("jcp,pabxy->ajbcxy", weight, basis).flatten(0, 1).flatten(1, 2)
    capsules = capsules_on_grid(1, count, size, size)
    responses = torch.nn.functional.conv2d(moments(capsules, in_order), kernel)
    pose = SO2().random(1, 1, 1, 1, dtype=torch.float64)
    ours = features_at(pose, responses).item()

    p = complex(*pose.flatten().tolist())
    total, half = 0.0, (size - 1) / 2
    for c in range(count):
        block = torch.einsum("p,pabxy->abxy", weight[0, c], basis)  # rows and columns at every offset
        for row in range(size):
            for column in range(size):
                u = complex(column - half, half - row)
                q = complex(*capsules.poses[0, c, row, column].tolist())
                f = capsules.activations[0, c, row, column].item()
                total += f * psi(block[:, :, row, column], u, p, q, in_order, out_order)
    assert ours == pytest.approx(total, abs=1e-10)


def psi(block, u, p, q, in_order, out_order):
    """ψ(p⁻¹u, p⁻¹q): replace the phase e^{i(m-n)θ_u} of the grid's kernel by the rotated one."""
    theta, relative = cmath.phase(u), q / p
    turned_theta = cmath.phase(u / p)
    value = 0.0
    for m in range(out_order + 1):
        rows = [0] if m == 0 else [2 * m - 1, 2 * m]
        z = [complex(*(block[r, 0].item() for r in rows)) if m else complex(block[0, 0].item(), 0)]
        couplings = {0: z[0]}
        for n in range(1, in_order + 1):
            a = complex(*(block[r, 2 * n - 1].item() for r in rows)) if m else complex(block[0, 2 * n - 1].item(), 0)
            b = complex(*(block[r, 2 * n].item() for r in rows)) if m else complex(block[0, 2 * n].item(), 0)
            couplings[n], couplings[-n] = (a - 1j * b) / 2, (a + 1j * b) / 2
        for n, coupling in couplings.items():
            kappa = coupling * cmath.exp(-1j * (m - n) * theta)
            value += (kappa * cmath.exp(1j * (m - n) * turned_theta) * relative**n).real
    return value


def test_vote_strength_bounds_every_response():
    """|Y_1| ≤ Σ |κ| f, with equality for a single vote of one order."""
    basis = steerable_basis(3, 1, 1)
    weight = torch.randn(4, 2, len(basis), dtype=torch.float64)
    kernel = torch.einsum("jcp,pabxy->ajbcxy", weight, basis)
    strength = vote_strength(kernel[1:3])
    capsules = capsules_on_grid(5, 2, 3, 3)
    responses = torch.nn.functional.conv2d(moments(capsules, 1), kernel.flatten(0, 1).flatten(1, 2))
    length = responses[:, 4:].unflatten(1, (2, 4)).norm(dim=1)
    bound = torch.nn.functional.conv2d(capsules.activations, strength)
    assert (length <= bound + 1e-12).all()
    assert (length > 0.05 * bound).any()

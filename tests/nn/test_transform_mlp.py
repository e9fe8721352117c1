import pytest
import torch

from equicaps.groups import GL, SE2, SO2, Scale
from equicaps.nn import SpatialCapsules2d, TransformLinear, TransformMLP

PAPER = [(1, 16), (16, 32), (32, 32), (32, 64), (64, 10)]


@pytest.mark.parametrize(("kernel", "expected"), [(TransformLinear(), 144_970), (TransformMLP(), 144_410)])
def test_the_papers_five_layers_have_145k_parameters(kernel, expected):
    """Section 6.1 says 145k; the linear form has the authors' number exactly."""
    layers = [SpatialCapsules2d(SO2(), n, m, kernel=kernel) for n, m in PAPER]
    assert sum(parameter.numel() for layer in layers for parameter in layer.parameters()) == expected


@pytest.mark.parametrize("group", [SO2(), SE2(), Scale(2), GL(2)], ids=repr)
@pytest.mark.parametrize("kernel", [TransformMLP(8), TransformLinear(8)], ids=["mlp", "linear"])
def test_transformations_are_group_elements(group, kernel, shape, dtype):
    """Also for large parameters, as after training; and they depend on the position."""
    generator = kernel.build(group, 3, 5).to(dtype)
    positions = torch.randn(*shape, 4, generator.first.in_features, dtype=dtype)
    t = generator(positions)
    assert t.shape == (*shape, 4, 5, 3, group.dim)
    assert group.contains(t).all()
    assert (t.std(-4) > 1e-3).any()


def test_only_the_linear_form_is_odd():
    """t(-x) = t(x)⁻¹ for the authors' form, so opposite positions always have inverse transformations."""
    x = torch.randn(7, 2)
    linear, mlp = TransformLinear().build(SO2(), 1, 4), TransformMLP().build(SO2(), 1, 4)
    torch.testing.assert_close(linear(-x), SO2().inverse(linear(x)), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(mlp(-x), SO2().inverse(mlp(x)), atol=1e-2)


def test_the_mlp_equals_two_layers_written_out(dtype):
    """Up to the floor of 1e-6, far below the length of a 2-vector that it emits."""
    generator = TransformMLP(8).build(SO2(), 2, 3).to(dtype)
    x = torch.randn(5, 2, dtype=dtype)
    hidden = torch.relu(x @ generator.first.weight.T + generator.first.bias)
    raw = torch.einsum("bh,emnh->bmne", hidden, generator.weight[..., :-1]) + generator.weight[..., -1].permute(1, 2, 0)
    torch.testing.assert_close(generator(x), raw / raw.norm(dim=-1, keepdim=True), rtol=1e-5, atol=1e-5)


def test_initialisation_is_seeded_and_spread_around_the_identity():
    torch.manual_seed(3)
    first = TransformMLP().build(SO2(), 16, 32)
    torch.manual_seed(3)
    second = TransformMLP().build(SO2(), 16, 32)
    assert torch.equal(first.weight, second.weight)
    t = first(torch.tensor([[0.5, 0.5]]))
    x, y = t.mean((0, 1, 2)).tolist()
    assert 0.6 < x < 0.95  # votes do not cancel, and differ
    assert abs(y) < 0.15


def test_hidden_must_be_a_count():
    with pytest.raises(ValueError, match="`hidden` must be at least 1"):
        TransformMLP(0).build(SO2(), 1, 1)

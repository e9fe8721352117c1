"""Every implementation of Algorithm 1 equals the plain one, and each is chosen where its table says."""

from typing import ClassVar

import pytest
import torch
from turning import scattered

from equicaps.functional import (
    Capsules,
    Linear,
    Sigmoid,
    Softmax,
    compiled,
    fused_routing,
    route,
    route_windows,
    window_activations,
    window_routing,
    window_votes,
    windows,
)
from equicaps.functional.compiled import library
from equicaps.groups import GL, SE2, SO2
from equicaps.nn import TransformLinear, TransformMLP
from equicaps.numerics import BLOCK_CANCELLATION

LAYERS = [(1, 16), (16, 32), (32, 32), (32, 64), (64, 10)]
"""Input and output capsules of every layer of the networks in models/paper.py."""

FAST = {"planar_route": Sigmoid(3.0, 1.5), "moment_route": Linear()}
"""The fast implementations, each with a σ that it serves on SO(2)."""

needs_kernel = pytest.mark.skipif(library("fused_routing") is None, reason="no compiler for the fused kernel")


@pytest.fixture
def without_kernel(monkeypatch):
    monkeypatch.setattr(window_routing, "fused_route_fits", lambda *given: False)


def trained(sigma, dtype):
    """The same σ, with leaves for fields."""
    return type(sigma)(*(torch.tensor(value, dtype=dtype, requires_grad=True) for value in vars(sigma).values()))


def sample(kernel, capsules, dtype, *, group=None, side=4):
    """A generator and capsules on a small grid: most are defined, some fade, are undefined, silent or almost silent."""
    n, m = capsules
    group = group or SO2()
    generator = kernel.build(group, n, m).to(dtype)
    poses = scattered(group, 2, n, side, side + 2, dtype=dtype)
    activations = torch.rand(2, n, side, side + 2, dtype=dtype) + 0.1
    if isinstance(group, SO2):
        poses[0, -1, 0, 0] *= 0.8
    poses[0, 0, 1, 1], activations[0, 0, 1, 1] = 0, 0
    activations[1, -1, 2, 2] = 0
    activations[1, 0, 3, 3] *= 2e-3
    return generator, Capsules(poses.requires_grad_(), activations.requires_grad_())


def plainly(group, generator, capsules, **options):
    """Algorithm 1 as it is written, on the votes of every window."""
    votes, inputs = window_votes(group, generator, capsules.poses), window_activations(capsules.activations)
    routing = route(group, votes, inputs, **options)
    return Capsules(routing.poses.movedim(3, 1), routing.activations.movedim(3, 1))


def compare(group, generator, capsules, sigma, tolerance, **options):
    """Assert that the chosen implementation equals the plain one: values, and gradients of every tensor."""
    leaves = [*capsules, *generator.parameters(), *vars(sigma).values()]
    actual = route_windows(group, generator, capsules, sigma=sigma, **options)
    expected = plainly(group, generator, capsules, sigma=sigma, **options)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)
    heads = [torch.randn_like(tensor) for tensor in actual]
    gradients = (torch.autograd.grad(outputs, leaves, heads, materialize_grads=True) for outputs in (actual, expected))
    for leaf, one, other in zip(leaves, *gradients, strict=True):
        kink = (leaf == 0) & (leaf is capsules.activations)  # |a| has a kink at 0, where each may choose its side
        # Relative to the largest; the planar backward takes transformations for unit vectors, which the floor of
        # `directions` makes them only nearly.
        limit = (2e-3 if leaf.dtype == torch.float32 else 1e-7) * other.abs().max().clamp_min(1).item()
        torch.testing.assert_close(one[~kink], other[~kink], rtol=0, atol=limit)


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
@pytest.mark.parametrize("agreement", ["mean", "weighted"])
@pytest.mark.parametrize("kernel", [TransformMLP(), TransformLinear()], ids=["mlp", "linear"])
@pytest.mark.parametrize("capsules", LAYERS, ids=lambda sizes: f"{sizes[0]} to {sizes[1]}")
@pytest.mark.parametrize("implementation", FAST)
@pytest.mark.usefixtures("without_kernel")
def test_fast_implementations_equal_the_plain_one(
    implementation, capsules, kernel, agreement, iterations, dtype, tolerance, monkeypatch
):
    """Values and gradients, on every layer shape of the networks."""
    calls = spy(monkeypatch)
    sigma = trained(FAST[implementation], dtype)
    compare(SO2(), *sample(kernel, capsules, dtype), sigma, tolerance, iterations=iterations, agreement=agreement)
    assert calls == [implementation]


FLOAT32 = {"rtol": 2e-5, "atol": 2e-5}


@needs_kernel
@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("capsules", LAYERS, ids=lambda sizes: f"{sizes[0]} to {sizes[1]}")
def test_the_fused_kernel_equals_the_plain_implementation(capsules, iterations, monkeypatch):
    """Values and gradients, on every layer shape of the networks; numbers of windows that fill no vector, too."""
    calls = spy(monkeypatch)
    for side in (4, 6, 8):
        case, sigma = (
            sample(TransformMLP(), capsules, torch.float32, side=side),
            trained(Sigmoid(3.0, 1.5), torch.float32),
        )
        compare(SO2(), *case, sigma, FLOAT32, iterations=iterations, agreement="mean")
    assert calls == ["fused_route"] * 3


@pytest.mark.parametrize("fused", [pytest.param(True, marks=needs_kernel), False])
@pytest.mark.parametrize("floor", [BLOCK_CANCELLATION, 0.3])
def test_fast_implementations_know_the_floor_of_the_group(fused, floor, monkeypatch, request):
    """With the generator and the floor of the paper's network, and with a high one; the floor makes a difference."""
    if not fused:
        request.getfixturevalue("without_kernel")
    kernel, group = TransformMLP(15, spread=1.5, per_capsule=True), SO2(floor)
    for sigma in (Sigmoid(3.0, 1.5), Linear()):
        case = sample(kernel, (16, 8), torch.float32, group=group)
        if isinstance(sigma, Sigmoid):
            compare(group, *case, trained(sigma, torch.float32), FLOAT32, iterations=2, agreement="mean")
        else:
            compare(group, *case, sigma, FLOAT32, iterations=2, agreement="mean")
        with torch.no_grad():
            found, other = (route_windows(g, *case, sigma=sigma) for g in (group, SO2()))
        assert (found.poses - other.poses).abs().max() > 1e-3


@needs_kernel
def test_the_fused_kernel_sums_the_derivatives_of_sigma_in_float64():
    """Over 4,600 windows, what is left is the rounding of the result; sums in float32 are off by ten times as much."""
    generator, capsules = sample(TransformMLP(), (16, 16), torch.float32, side=96)
    found = []
    for dtype in (torch.float32, torch.float64):
        sigma, given = trained(Sigmoid(6.0, 3.0), dtype), Capsules(*(tensor.to(dtype) for tensor in capsules))
        outputs = route_windows(SO2(), generator.to(dtype), given, sigma=sigma).activations.sum()
        found.append(torch.stack(torch.autograd.grad(outputs, [sigma.alpha, sigma.beta])).double())
    torch.testing.assert_close(*found, rtol=3e-7, atol=0)


@needs_kernel
@pytest.mark.skipif("avx2" not in compiled._cpu().split(), reason="this CPU has no AVX2")
def test_the_kernel_for_cpus_with_avx2_equals_the_plain_implementation(monkeypatch):
    monkeypatch.setattr(compiled, "_LANES", {"avx2": 8})
    narrow = library.__wrapped__("fused_routing")
    assert narrow.lanes() == 8
    monkeypatch.setattr(fused_routing, "library", lambda name: narrow)
    case, sigma = sample(TransformMLP(), (16, 32), torch.float32), trained(Sigmoid(3.0, 1.5), torch.float32)
    compare(SO2(), *case, sigma, FLOAT32, iterations=2, agreement="mean")


@needs_kernel
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_fused_kernel_equals_the_plain_one_where_positions_are_silent(share):
    """It skips positions at which no capsule of a few windows is active."""
    generator, (poses, activations) = sample(TransformMLP(), (16, 32), torch.float32, side=14)
    silent = torch.rand(2, 1, 14, 16) < share
    silent[:, :, ::4, ::4] = False  # some activity in every fourth window
    activations = (activations * ~silent).detach().requires_grad_()
    seen = windows(silent.squeeze(1).float(), 2, 2).sum(-1)
    assert {0, 1, 2, 3} <= set(seen.flatten().tolist())
    case = generator, Capsules(poses, activations)
    compare(SO2(), *case, trained(Sigmoid(3.0, 1.5), torch.float32), FLOAT32, iterations=2, agreement="mean")


@needs_kernel
def test_the_fused_kernel_is_taken_where_it_fits_and_nowhere_else(monkeypatch):
    calls = spy(monkeypatch)
    for kernel, dtype, options in (
        (TransformMLP(), torch.float32, {}),
        (TransformLinear(), torch.float32, {}),
        (TransformMLP(), torch.float64, {}),
        (TransformMLP(), torch.float32, {"iterations": 0}),
        (TransformMLP(), torch.float32, {"iterations": 4}),
        (TransformMLP(), torch.float32, {"agreement": "weighted"}),
        (TransformMLP(), torch.float32, {"kernel_size": 4}),
    ):
        route_windows(SO2(), *sample(kernel, (2, 3), dtype), **options)
    assert calls == ["fused_route", *["planar_route"] * 6]


@needs_kernel
def test_that_comparison_rejects_a_wrong_kernel(monkeypatch):
    """Control: one iteration too few, or a dropped gradient, does not pass."""
    for wrong in (one_iteration_short, constant_activations):
        with monkeypatch.context() as patch:
            patch.setattr(window_routing, "fused_route", wrong(window_routing.fused_route))
            case, sigma = sample(TransformMLP(), (16, 32), torch.float32), trained(Sigmoid(3.0, 1.5), torch.float32)
            with pytest.raises(AssertionError, match="not close"):
                compare(SO2(), *case, sigma, FLOAT32, iterations=2, agreement="mean")


@needs_kernel
def test_quarter_turns_of_a_block_give_the_same_bits():
    """Poses rotate, activations do not change, and neither is rounded differently."""
    generator, (poses, activations) = sample(TransformMLP(), (16, 32), torch.float32)
    with torch.no_grad():
        poses, activations = poses[..., :2, :2, :], activations[..., :2, :2]
        still = route_windows(SO2(), generator, Capsules(poses, activations))
        x, y = torch.rot90(poses, 1, (2, 3)).unbind(-1)
        turned = route_windows(
            SO2(), generator, Capsules(torch.stack((-y, x), -1), torch.rot90(activations, 1, (2, 3)))
        )
    assert torch.equal(turned.activations, still.activations)
    assert torch.equal(turned.poses, torch.stack((-still.poses[..., 1], still.poses[..., 0]), -1))


def one_iteration_short(implementation):
    return lambda *arguments, **options: implementation(*arguments, **options | {"iterations": 1})


def other_agreement(implementation):
    return lambda *arguments, **options: implementation(*arguments, **options | {"agreement": "weighted"})


def constant_activations(implementation):
    return lambda *given, **options: implementation(*given[:-1], given[-1].detach(), **options)


@pytest.mark.parametrize("wrong", [one_iteration_short, other_agreement, constant_activations])
@pytest.mark.parametrize("implementation", FAST)
@pytest.mark.usefixtures("without_kernel")
def test_that_comparison_rejects_a_wrong_implementation(implementation, wrong, dtype, tolerance, monkeypatch):
    """Control: wrong values, or right values with wrong gradients, do not pass."""
    case, sigma = sample(TransformMLP(), (16, 32), dtype), trained(FAST[implementation], dtype)
    monkeypatch.setattr(window_routing, implementation, wrong(getattr(window_routing, implementation)))
    with pytest.raises(AssertionError, match="not close"):
        compare(SO2(), *case, sigma, tolerance, iterations=2, agreement="mean")


def spy(monkeypatch):
    """The names of the implementations that route_windows calls from now on."""
    calls = []
    for name in ("route", "fused_route", *FAST):
        function = getattr(window_routing, name)

        def call(*arguments, name=name, function=function, **options):
            calls.append(name)
            return function(*arguments, **options)

        monkeypatch.setattr(window_routing, name, call)
    return calls


class Nearer(SO2):
    """A user's own δ, of which no fast implementation knows."""

    def distance(self, g, h):
        return super().distance(g, h) / 4


class Named(SO2):
    """A user's own subclass that changes nothing that matters, and says so."""

    closed_form = "unit complex"

    def __repr__(self):
        return "rotations"


class Sharp(Sigmoid):
    """A user's own σ, of which no fast implementation knows."""

    def __call__(self, x):
        return super().__call__(x) ** 4


class Steep(Sigmoid):
    """A user's own defaults for the same formula, restated."""

    closed_form: ClassVar = "sigmoid"


class Squared(Linear):
    def __call__(self, x):
        return super().__call__(x) ** 2


@pytest.mark.parametrize(
    ("group", "sigma", "chosen"),
    [
        (SO2(), Sigmoid(), "planar_route"),
        (SO2(), Steep(4.0), "planar_route"),
        (Named(), Sigmoid(), "planar_route"),
        (SO2(), Linear(), "moment_route"),
        (Named(), Linear(), "moment_route"),
        (SO2(), Softmax(), "route"),
        (SO2(), Sharp(), "route"),
        (SO2(), Squared(), "route"),
        (Nearer(), Sigmoid(), "route"),
        (Nearer(), Linear(), "route"),
        (SE2(), Sigmoid(), "route"),
        (GL(2), Linear(), "route"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_chosen_when(group, sigma, chosen, monkeypatch):
    """The table of route_windows; a subclass takes the plain road unless it restates its closed form."""
    generator, capsules = sample(TransformMLP(4), (2, 3), torch.float64, group=group)
    expected = plainly(group, generator, capsules, sigma=sigma)
    calls = spy(monkeypatch)
    actual = route_windows(group, generator, capsules, sigma=sigma)
    assert calls == [chosen]
    torch.testing.assert_close(actual.poses, expected.poses)
    torch.testing.assert_close(actual.activations, expected.activations)


def test_the_choice_matters_to_those_subclasses():
    """Control: were the declarations inherited, the answers would be those of the base classes."""
    generator, capsules = sample(TransformMLP(4), (2, 3), torch.float64)
    usual = route_windows(SO2(), generator, capsules).activations
    assert (route_windows(Nearer(), generator, capsules).activations - usual).abs().max() > 1e-3
    assert (route_windows(SO2(), generator, capsules, sigma=Sharp()).activations - usual).abs().max() > 1e-3


def test_compiled_programs_take_no_size_from_the_data(monkeypatch):
    generator, capsules = sample(TransformMLP(4), (2, 3), torch.float64)
    calls = spy(monkeypatch)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for sigma in (Sigmoid(), Linear(), Softmax()):
        route_windows(SO2(), generator, capsules, sigma=sigma)
    assert calls == ["route", "moment_route", "route"]


def test_windows_without_activity_are_undefined_and_pass_no_gradient(dtype):
    """And the other windows do not notice them."""
    generator, capsules = sample(TransformMLP(4), (2, 3), dtype)
    silenced = Capsules(capsules.poses.detach().clone(), capsules.activations.detach().clone())
    silenced.activations[:, :, :2, :2] = 0
    silenced.poses.requires_grad_()
    routed, whole = (route_windows(SO2(), generator, given) for given in (silenced, capsules))
    assert (routed.poses[:, :, 0, 0] == 0).all()
    assert (routed.activations[:, :, 0, 0] == 0).all()
    torch.testing.assert_close(routed.poses[:, :, 1:], whole.poses[:, :, 1:])
    (routed.poses.sum() + routed.activations.sum()).backward()
    assert (silenced.poses.grad[:, :, :2, :2] == 0).all()
    assert (silenced.poses.grad[:, :, 2:] != 0).any()


def test_a_grid_without_any_activity_is_legal(dtype):
    generator, capsules = sample(TransformMLP(4), (2, 3), dtype)
    routed = route_windows(SO2(), generator, Capsules(capsules.poses, torch.zeros_like(capsules.activations)))
    assert routed.poses.shape == (2, 3, 2, 3, 2)
    assert (routed.poses == 0).all()
    assert (routed.activations == 0).all()


@pytest.mark.parametrize("sigma", [Sigmoid(), Linear(), Softmax()], ids=lambda sigma: type(sigma).__name__)
def test_autocast_does_not_reach_any_implementation(sigma):
    generator, capsules = sample(TransformMLP(4), (2, 3), torch.float32)
    expected = route_windows(SO2(), generator, capsules, sigma=sigma)
    with torch.autocast("cpu", torch.bfloat16):
        actual = route_windows(SO2(), generator, capsules, sigma=sigma)
    assert torch.equal(actual.poses, expected.poses)
    assert torch.equal(actual.activations, expected.activations)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("function", ["route_windows", "window_votes"])
def test_grids_that_windows_do_not_cover_are_refused(function):
    generator = TransformMLP(4).build(SO2(), 2, 3)
    capsules = Capsules(torch.zeros(1, 2, 5, 4, 2), torch.zeros(1, 2, 5, 4))
    given = capsules if function == "route_windows" else capsules.poses
    with pytest.raises(ValueError, match="Nearest legal sizes: 4 and 6"):
        getattr(window_routing, function)(SO2(), generator, given)

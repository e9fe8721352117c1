import copy
import math

import pytest
import torch
from clouds import cloud, rotate, rotate_capsules, rotation, scattered_capsules

from equicaps.functional import Linear, PointPoses
from equicaps.groups import SE3, SO2, SO3
from equicaps.nn import PointCapsules, TransformLinear, TransformMLP

KERNELS = [TransformMLP(8), TransformMLP(8, per_capsule=True), TransformLinear(8)]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=["mlp", "per capsule", "linear"])


def build(dtype, **options):
    return PointCapsules(SO3(), 3, 4, radius=1.0, neighbours=10, **options).to(dtype)


def sample(dtype):
    """A cloud with an undefined pose, and centres among its points and elsewhere."""
    points = cloud(2, 40, dtype=dtype)
    poses, activations = scattered_capsules(points, 3)
    poses[0, 0, 0], activations[0, 0, 0] = 0, 0
    return points, PointPoses(poses, activations), torch.cat((points[:, :4], 0.5 * points[:, 5:6]), 1)


@pytest.mark.parametrize("seed", [1, 2])
@kernels
def test_poses_rotate_and_activations_stay(kernel, seed, dtype, tolerance):
    """Theorems 1 and 2 with positions, for random rotations: layer(R x, R ∘ P) = R ∘ layer(x, P), a unchanged."""
    layer, (points, capsules, centres), R = build(dtype, kernel=kernel), sample(dtype), rotation(dtype, seed)
    still = layer(points, capsules, centres)
    moved = layer(rotate(R, points), rotate_capsules(R, capsules), rotate(R, centres))
    expected = rotate_capsules(R, still)
    assert (SO3().presence(still.poses) > 0.5).all()
    torch.testing.assert_close(moved.poses, expected.poses, **tolerance)
    torch.testing.assert_close(moved.activations, expected.activations, **tolerance)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(moved.poses, still.poses, **tolerance)


def test_without_alignment_that_comparison_fails(dtype, monkeypatch):
    """Control, Figure 2 (b): the same layer with transformations at positions that are not aligned."""
    layer, (points, capsules, centres), R = build(dtype), sample(dtype), rotation(dtype)
    monkeypatch.setattr(SO3, "inverse", lambda group, g: group.identity(*g.shape[:-1], dtype=g.dtype))
    still = layer(points, capsules, centres)
    moved = layer(rotate(R, points), rotate_capsules(R, capsules), rotate(R, centres))
    assert (moved.poses - rotate_capsules(R, still).poses).abs().max() > 1e-2
    assert (moved.activations - still.activations).abs().max() > 1e-4


@pytest.mark.parametrize("together", [True, False])
def test_the_layer_equals_plain_loops(together, dtype, tolerance):
    """Section 3 and Algorithm 1, neighbour by neighbour, for one centre that has only three neighbours."""
    group = SO3()
    layer = PointCapsules(group, 2, 3, radius=1.0, kernel=TransformMLP(8, per_capsule=not together)).to(dtype)
    points = torch.tensor([[[0.1, 0.2, 0.0], [-0.3, 0.1, 0.2], [0.0, -0.4, 0.1], [2.0, 0.0, 0.0]]], dtype=dtype)
    poses, activations = scattered_capsules(points, 2)
    with torch.no_grad():
        actual = layer(points, PointPoses(poses, activations), torch.zeros(1, 1, 3, dtype=dtype))
    w = [float((1 - points[0, k].square().sum()) ** 2) for k in range(3)]
    inputs = [(c, k) for c in range(2) for k in range(3)]
    approx = {"rel": tolerance["rtol"], "abs": tolerance["atol"]}

    def mean(elements, weights):
        return group.mean(torch.stack(elements), torch.tensor(weights, dtype=dtype))

    def aligned(c):
        own = [(e, k) for e, k in inputs if together or e == c]
        p = mean([poses[0, k, e] for e, k in own], [w[k] for _, k in own])
        return lambda x: group.act(group.inverse(p), x)

    for m in range(3):
        votes, a = [], []
        for c, k in inputs:
            z = torch.cat([aligned(e)(points[0, k]) for e in ([0] if together else range(2))])
            votes.append(group.compose(poses[0, k, c], layer.generator(z)[m, c].detach()))
            a.append(float(activations[0, k, c]) * w[k])
        pose = mean(votes, a)
        for _ in range(2):
            distances = [float((pose - v).norm()) for v in votes]
            weights = [x / (1 + math.exp(2 * d - 2)) for x, d in zip(a, distances, strict=True)]
            pose = mean(votes, weights)
        distance = sum(x * float((pose - v).norm()) for x, v in zip(a, votes, strict=True)) / sum(a)
        assert sum(a) > 2 * 0.5  # loud enough that nothing fades
        torch.testing.assert_close(actual.poses[0, 0, m], pose, **tolerance)
        assert actual.activations[0, 0, m].item() == pytest.approx(1 / (1 + math.exp(2 * distance - 2)), **approx)


def test_order_and_padding_do_not_matter(dtype, tolerance):
    layer, (points, capsules, centres) = build(dtype), sample(dtype)
    still = layer(points, capsules, centres)
    order = torch.randperm(40)
    mixed = layer(points[:, order], PointPoses(*(part[:, order] for part in capsules)), centres)
    padded = [torch.cat((part, part[:, 3:6].roll(1, 0)), 1) for part in (points, *capsules)]
    weights = torch.cat((torch.ones(2, 40, dtype=dtype), torch.zeros(2, 3, dtype=dtype)), 1)
    same = layer(padded[0], PointPoses(*padded[1:]), centres, weights)
    other = layer(padded[0], PointPoses(*padded[1:]), centres)
    for actual in (mixed, same):
        torch.testing.assert_close(actual.poses, still.poses, **tolerance)
        torch.testing.assert_close(actual.activations, still.activations, **tolerance)
    assert (other.poses - still.poses).abs().max() > 1e-3


@pytest.mark.parametrize("case", ["silent", "equal", "one", "far"])
def test_degenerate_clouds_have_finite_gradients(case, dtype):
    """No activity, equal points, a single point, and centres without neighbours; without evidence there is no pose."""
    layer, (points, capsules, centres) = build(dtype), sample(dtype)
    activations = torch.zeros_like(capsules.activations) if case == "silent" else capsules.activations
    points = torch.full_like(points, 0.2) if case == "equal" else points
    count = 1 if case == "one" else 40
    centres = points[:, :5] + (9 if case == "far" else 0)
    given = [part[:, :count].detach().requires_grad_() for part in (points, capsules.poses, activations)]
    out = layer(given[0], PointPoses(*given[1:]), centres)
    if case in ("silent", "far"):
        assert (out.poses == 0).all()
        assert (out.activations == 0).all()
    (out.poses.sum() + out.activations.sum()).backward()
    assert all(part.grad.isfinite().all() for part in (*given, *layer.parameters()) if part.grad is not None)


def test_training_changes_every_parameter():
    layer, (points, capsules, centres) = build(torch.float32), sample(torch.float32)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        loss = (1 - layer(points, capsules, centres).activations).mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_calibration_spreads_activations(dtype):
    layer = build(dtype, kernel=TransformMLP(8, spread=1.5))
    points, capsules, centres = sample(dtype)
    before = layer(points, capsules, centres).activations
    calibrated = layer.calibrate(points, capsules, centres)
    assert torch.equal(calibrated.activations, layer(points, capsules, centres).activations)
    assert calibrated.activations.std() > 2 * before.std()
    linear = build(dtype, sigma=Linear())
    assert torch.equal(
        linear.calibrate(points, capsules, centres).activations, linear(points, capsules, centres).activations
    )


def test_centres_of_weight_0_neither_count_in_calibration_nor_are_active(dtype):
    """The control is that the same centres count if they have a weight."""
    points, capsules, centres = sample(dtype)
    torch.manual_seed(0)
    layer = build(dtype, kernel=TransformMLP(8, spread=1.5))
    padded, without = copy.deepcopy(layer), copy.deepcopy(layer)
    counts = torch.ones_like(centres[..., 0])
    counts[:, 3:] = 0
    found = padded.calibrate(points, capsules, centres, None, counts)
    expected = without.calibrate(points, capsules, centres[:, :3])
    layer.calibrate(points, capsules, centres)
    torch.testing.assert_close(found.activations[:, :3], expected.activations)
    assert (found.activations[:, 3:] == 0).all()
    torch.testing.assert_close(padded.sigma.alpha, without.sigma.alpha)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(layer.sigma.alpha, without.sigma.alpha)


def test_votes_and_weights_have_one_order():
    layer, (points, capsules, centres) = build(torch.float32), sample(torch.float32)
    assert layer.votes(points, capsules.poses, centres).shape == (2, 5, 4, 3 * 10, 9)
    assert layer.routing(points, capsules, centres).weights.shape == (2, 5, 4, 3 * 10)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_arguments_are_explained():
    points = torch.zeros(1, 5, 3)
    with pytest.raises(ValueError, match="must act on space"):
        PointCapsules(SO2(), 1, 1, radius=1.0)
    with pytest.raises(ValueError, match="`neighbours` must be at least 1"):
        PointCapsules(SO3(), 1, 1, radius=1.0, neighbours=0)
    with pytest.raises(TypeError, match="`kernel` must be TransformMLP"):
        PointCapsules(SO3(), 1, 1, radius=1.0, kernel=None)
    with pytest.raises(ValueError, match=r"`poses` must have shape \(1, 5, 3, 9\)"):
        build(torch.float32)(points, PointPoses(torch.zeros(1, 5, 2, 9), torch.zeros(1, 5, 2)), points)
    with pytest.raises(ValueError, match="one for each pose"):
        build(torch.float32)(points, PointPoses(torch.zeros(1, 5, 3, 9), torch.zeros(1, 5, 2)), points)


def test_other_groups_of_space_work():
    """SE(3): poses with a position of their own."""
    layer, points = PointCapsules(SE3(), 2, 3, radius=1.0), cloud(1, 20, dtype=torch.float32)
    poses = SE3().random(1, 20, 2)
    assert layer(points, PointPoses(poses, torch.rand(1, 20, 2)), points[:, :2]).poses.shape == (1, 2, 3, SE3().dim)


def test_repr_shows_the_mathematical_signature():
    assert "3 -> 4 capsules on SO(3), radius=1.0, neighbours=10" in repr(build(torch.float32))

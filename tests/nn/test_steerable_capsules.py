import pytest
import torch

from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.metrics import quarter_turns
from equicaps.nn.steerable_capsules import SteerableCapsules2d
from equicaps.testing import grid_equivariance_error

CASES = [
    {"kernel_size": 3},
    {"kernel_size": 5, "pool": True},
    {"kernel_size": 6, "stride": 2, "padding": 2},
    {"kernel_size": 4, "padding": 0, "in_order": 2, "out_order": 3},
    {"kernel_size": 1},
]


def layer_and_input(case, dtype):
    layer = SteerableCapsules2d(3, 4, **case).to(dtype)
    layer.train()
    poses = SO2().random(2, 3, 12, 8, dtype=dtype)
    capsules = Capsules(poses, torch.rand(2, 3, 12, 8, dtype=dtype))
    layer(capsules)  # sets the running statistics
    return layer.eval(), capsules


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("method", ["forward", "vote"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_turns_with_the_input_exactly(case, method, quarters, dtype, tolerance):
    """Poses rotate and activations stay, both in their new place; without rotating the poses it does not hold."""
    layer, capsules = layer_and_input(case, dtype)
    run = getattr(layer, method)
    turned, expected = run(quarter_turns(capsules, quarters)), quarter_turns(run(capsules), quarters)
    torch.testing.assert_close(turned.activations, expected.activations, **tolerance)
    defined = (SO2().presence(expected.poses) > 0.5).unsqueeze(-1)
    assert defined.double().mean() > 0.5
    torch.testing.assert_close(turned.poses * defined, expected.poses * defined, **tolerance)
    only_moved = torch.rot90(run(capsules).poses, quarters, (2, 3))
    assert (turned.poses - only_moved).abs().max() > 0.1


@pytest.mark.parametrize("quarters", [0, 1])
@pytest.mark.parametrize("method", ["forward", "vote"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_real_weights_mirror_with_the_input_exactly(case, method, quarters, dtype, tolerance):
    """Poses are mirrored and activations stay, both in their new place; with complex weights they do not."""
    layer, capsules = layer_and_input({**case, "mirror": "ignore"}, dtype)
    found = grid_equivariance_error(getattr(layer, method), capsules, quarters, mirrored=True)
    assert max(found.poses, found.activations) < tolerance["atol"]
    assert found.control > 0.1
    ordinary, capsules = layer_and_input(case, dtype)
    found = grid_equivariance_error(getattr(ordinary, method), capsules, quarters, mirrored=True)
    assert min(found.poses, found.activations) > 0.05


@pytest.mark.parametrize("case", [{}, {"pool": True}, {"stride": 2, "kernel_size": 6, "padding": 2}], ids=str)
def test_real_weights_mirror_with_an_image_and_its_border(case, dtype, tolerance):
    layer = SteerableCapsules2d(3, 4, **{"kernel_size": 3, "in_order": 0, "mirror": "ignore", **case}).to(dtype)
    image = Capsules(torch.zeros(2, 3, 12, 8, 2, dtype=dtype), torch.rand(2, 3, 12, 8, dtype=dtype))
    layer(image)  # sets the running statistics
    found = grid_equivariance_error(layer.eval(), image, mirrored=True)
    assert max(found.poses, found.activations) < tolerance["atol"]
    assert found.control > 0.1


def test_poses_that_fade_are_mirrored_too():
    """In float64, where no rounding hides it: the zero pose is its own mirror image."""
    layer, (poses, activations) = layer_and_input({"kernel_size": 3, "mirror": "ignore"}, torch.float64)
    faint = Capsules(poses, activations * 10 ** -torch.linspace(0, 6, 8).double())  # from left to right
    assert (layer(faint).poses.norm(dim=-1) < 0.5).double().mean() > 0.3
    found, expected = layer(quarter_turns(faint, 0, mirrored=True)), quarter_turns(layer(faint), 0, mirrored=True)
    torch.testing.assert_close(found.poses, expected.poses, rtol=0, atol=1e-13)
    torch.testing.assert_close(found.activations, expected.activations, rtol=0, atol=1e-13)


def test_real_weights_are_about_half_as_many():
    layers = [SteerableCapsules2d(3, 4, 5, mirror=mirror) for mirror in ("distinguish", "ignore")]
    assert [layer.weight.shape[-1] for layer in layers] == [45, 24]
    assert ["mirror images alike" in repr(layer) for layer in layers] == [False, True]


def test_first_layer_reads_images_and_ignores_poses(dtype):
    """in_order = 0: any poses will do."""
    layer = SteerableCapsules2d(1, 4, 6, stride=2, in_order=0, padding=2).to(dtype).eval()
    image = torch.rand(2, 1, 16, 16, dtype=dtype)
    first, second = (layer(Capsules(SO2().random(2, 1, 16, 16, dtype=dtype), image)) for _ in range(2))
    torch.testing.assert_close(first.activations, second.activations)


@pytest.mark.parametrize(
    "case", [{"kernel_size": 6, "stride": 2, "padding": 2}, {"kernel_size": 3, "pool": True}], ids=str
)
def test_a_constant_image_has_no_pose_and_no_activation_its_border_neither(case, dtype):
    layer = SteerableCapsules2d(1, 4, in_order=0, **case).to(dtype).eval()
    layer.pose_power.fill_(0.01)
    constant = layer(Capsules(torch.zeros(1, 1, 16, 16, 2, dtype=dtype), torch.full((1, 1, 16, 16), 0.7, dtype=dtype)))
    assert constant.poses.abs().max() < 1e-3
    assert constant.activations.abs().max() < 1e-3


def test_agreement_is_between_zero_and_one_and_full_for_a_single_vote(dtype):
    """One active capsule under a kernel of one order: nothing to disagree with."""
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    agreement = layer.vote(capsules).activations
    assert ((agreement >= 0) & (agreement <= 1 + 1e-5)).all()
    assert agreement.max() < 0.99, "the control: many votes do not agree fully"
    signed = layer.vote(Capsules(capsules.poses, torch.randn_like(capsules.activations))).activations
    assert ((signed >= 0) & (signed <= 1 + 1e-5)).all(), "whatever the sign of the votes"
    single = SteerableCapsules2d(1, 2, 1, in_order=1, out_order=1).to(dtype)
    single.eval().pose_power.fill_(1e-6)  # its responses are far from faint
    lone = single.vote(Capsules(SO2().random(1, 1, 2, 2, dtype=dtype), torch.rand(1, 1, 2, 2, dtype=dtype) + 0.1))
    torch.testing.assert_close(lone.activations, torch.ones_like(lone.activations), rtol=1e-5, atol=1e-5)


def test_silence_in_silence_out(dtype):
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    for method in (layer, layer.vote):
        quiet = method(Capsules(capsules.poses, torch.zeros_like(capsules.activations)))
        assert quiet.activations.abs().max() == 0
        assert quiet.poses.abs().max() == 0


def test_gradients_are_finite_in_silence_and_everywhere(dtype):
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    for scale in (0.0, 1.0):
        activations = (capsules.activations * scale).requires_grad_()
        layer.train()
        out, votes = layer(Capsules(capsules.poses, activations)), layer.vote(Capsules(capsules.poses, activations))
        (out.poses.sum() + out.activations.sum() + votes.activations.sum()).backward()
        assert activations.grad.isfinite().all()
        assert layer.weight.grad.isfinite().all()


def test_at_given_poses_it_is_an_ordinary_convolution(dtype, tolerance):
    """With the identity everywhere a shifted input gives shifted features; a rotated one does not give rotated ones."""
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    upright = torch.zeros(2, 4, 12, 8, 2, dtype=dtype)
    upright[..., 0] = 1
    features = layer(capsules, upright).activations
    shifted = layer(Capsules(*(t.roll(2, 2) for t in capsules)), upright).activations
    torch.testing.assert_close(shifted[:, :, 4:-4], features.roll(2, 2)[:, :, 4:-4], **tolerance)
    turned = layer(quarter_turns(capsules, 1), upright.transpose(2, 3)).activations
    assert (turned - torch.rot90(features, 1, (2, 3))).abs().max() > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_capsules": 0}, "`in_capsules` must be at least 1"),
        ({"kernel_size": 2.5}, "`kernel_size` must be a whole number"),
        ({"padding": -1}, "`padding` must be a whole number, 0 or more, but is -1"),
        ({"mirror": "break"}, "`mirror` must be one of 'distinguish', 'ignore', but is 'break'"),
        ({"in_order": 1.0}, r"`in_order` must be a whole number, 0 or more, but is 1\.0"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_impossible_arguments_are_explained(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SteerableCapsules2d(**{"in_capsules": 3, "out_capsules": 4, "kernel_size": 3, **arguments})


@pytest.mark.usefixtures("without_shape_checks")
def test_poses_that_would_be_spread_over_the_grid_are_refused():
    layer, capsules = layer_and_input({"kernel_size": 3}, torch.float32)
    for method in (layer, layer.vote_and_convolve):
        with pytest.raises(ValueError, match=r"`at` must have shape \(2, 4, 12, 8, 2\).* \(2, 4, 1, 1, 2\)"):
            method(capsules, torch.ones(2, 4, 1, 1, 2))


def test_a_layer_that_is_reset_forgets_what_it_saw():
    layer, _ = layer_and_input({"kernel_size": 3}, torch.float32)
    fresh = SteerableCapsules2d(3, 4, 3)
    layer.reset_parameters()
    for name, value in fresh.named_buffers():
        assert torch.equal(layer.get_buffer(name), value), name


@pytest.mark.usefixtures("without_shape_checks")
def test_grids_that_a_turn_does_not_map_onto_themselves_are_refused():
    def run(height, width, channels=3, poses=True, **case):
        activations = torch.rand(1, channels, height, width)
        layer = SteerableCapsules2d(3, 4, 3, **case)
        return layer(Capsules(torch.zeros(*activations.shape, 2 if poses else 3), activations))

    run(11, 9, stride=2)  # legal
    with pytest.raises(ValueError, match=r"padded by 1\): height 14 is not exact .* Nearest legal sizes: 13 and 15"):
        run(12, 9, stride=2)
    with pytest.raises(ValueError, match=r"both sides must be even, but are \(8, 9\)"):
        run(8, 9, pool=True)
    with pytest.raises(ValueError, match=r"`activations` must have shape \(batch, 3, height, width\)"):
        run(8, 8, channels=2)
    with pytest.raises(ValueError, match=r"`poses` must have shape \(1, 3, 8, 8, 2\)"):
        run(8, 8, poses=False)


def test_votes_without_a_pose_have_no_agreement(dtype):
    """Responses far below the usual ones: the pose fades, and the agreement with it."""
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    assert layer.vote(capsules).activations.mean() > 0.05
    faint = layer.vote(Capsules(capsules.poses, capsules.activations * 1e-4))
    assert faint.poses.norm(dim=-1).max() < 0.1
    assert faint.activations.max() < 0.01


def test_without_a_pose_the_response_of_order_zero_remains_where_it_may(dtype, tolerance):
    """One window over something that looks the same after half a turn: Y_1 cancels, Y_0 does not."""
    _, capsules = layer_and_input({"kernel_size": 3}, dtype)
    maps = Capsules(capsules.poses[..., :8, :, :], capsules.activations[..., :8, :])
    turned = quarter_turns(maps, 2)
    symmetric = Capsules(  # mean of both, as moments
        (maps.poses * maps.activations[..., None] + turned.poses * turned.activations[..., None])
        / (maps.activations + turned.activations)[..., None],
        (maps.activations + turned.activations) / 2,
    )
    needy, content = (
        SteerableCapsules2d(3, 5, 8, padding=0, needs_pose=needs).to(dtype).eval() for needs in (True, False)
    )
    content.load_state_dict(needy.state_dict())
    assert needy(symmetric).poses.abs().max() < 1e-3
    assert needy(symmetric).activations.abs().max() < 1e-4
    assert content(symmetric).activations.abs().min() > 1e-2
    torch.testing.assert_close(
        content(quarter_turns(symmetric, 1)).activations, content(symmetric).activations, **tolerance
    )


def test_both_answers_are_those_of_vote_and_forward(dtype, tolerance):
    layer, capsules = layer_and_input({"kernel_size": 3}, dtype)
    voted, features = layer.vote_and_convolve(capsules)
    torch.testing.assert_close(voted.poses, layer.vote(capsules).poses, **tolerance)
    torch.testing.assert_close(voted.activations, layer.vote(capsules).activations, **tolerance)
    torch.testing.assert_close(features, layer(capsules).activations, **tolerance)


def test_a_layer_that_saw_nothing_stays_finite():
    """After many silent steps the running scale is 0."""
    layer = SteerableCapsules2d(2, 3, 3)
    layer.pose_power.zero_()
    silent = Capsules(torch.zeros(1, 2, 6, 6, 2), torch.zeros(1, 2, 6, 6))
    for output in (*layer.eval()(silent), *layer.vote(silent)):
        assert output.isfinite().all()


def test_trains_under_autocast():
    layer, capsules = layer_and_input({"kernel_size": 3}, torch.float32)
    layer.train()
    with torch.autocast("cpu", torch.bfloat16):
        poses, activations = layer(capsules)
    activations.square().mean().backward()
    assert poses.dtype == activations.dtype == torch.float32
    assert layer.weight.grad.isfinite().all()

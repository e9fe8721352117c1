import math
import warnings

import pytest
import torch

from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.metrics import exactness, layer_exactness
from equicaps.models import PRESETS, CapsOutput, GroupCapsNet, PaperConfig, PaperNet
from equicaps.models.steerable import Block, SteerableConfig, SteerableNet
from equicaps.nn import TransformLinear
from reproduction.results_page import EFFECTIVE

TURNING = ["steerable", "steerable_capsules", "paper", "capsules_only", "paper_pooled"]


def settle(net, images):
    """Set the running statistics to those of these images, layer by layer: each depends on the layers before it."""
    norms = [module for module in net.train().modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    for _ in norms:
        net(images)
    net.eval()


def network(name, **options):
    """A network in eval mode whose running statistics have settled."""
    net = GroupCapsNet.from_preset(name, **options)
    settle(net, torch.rand(8, options.get("in_channels", 1), 32, 32))
    return net


@pytest.mark.parametrize("name", PRESETS)
def test_output_has_the_documented_shapes(name):
    output = network(name, num_classes=7, in_channels=3)(torch.rand(2, 3, 32, 32))
    assert output.scores.shape == output.activations.shape == (2, 7)
    assert output.poses.shape == (2, 7, 2)
    assert output.reconstruction is None
    assert ((output.activations >= 0) & (output.activations <= 1 + 1e-5)).all()


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize("size", [(32, 32), (32, 64)])
def test_answers_do_not_change_under_quarter_turns(name, size):
    """Scores and agreements do not change and poses rotate, in float32, even on images that are not square."""
    images = torch.rand(6, 1, *size)
    net = network(name)
    found = exactness(net, images)
    assert found.predictions_changed == 0
    assert found.scores < 1e-4 * net(images).scores.abs().max()
    assert found.activations < 1e-4
    assert found.poses < 1e-4
    assert found.poses_defined > 50


@pytest.mark.parametrize("name", ["steerable_cnn", "plain_cnn"])
def test_that_measurement_rejects_a_plain_network(name):
    """Control: the same network without poses changes its answers."""
    found = exactness(network(name), torch.rand(6, 1, 32, 32))
    assert found.scores > 0.01


def test_papers_network_has_the_papers_size():
    """At most 145k for the capsules (144,970 with the authors' linear generator), and 90k for the convolutions."""
    ours = GroupCapsNet.from_preset("capsules_only")
    linear = PaperNet(PaperConfig(kernel=TransformLinear(), features=False))
    assert sum(p.numel() for p in ours.parameters()) == 140_115
    assert sum(p.numel() for p in linear.parameters()) == 144_970
    whole = GroupCapsNet.from_preset("paper")
    parts = (*whole.body.convolutions.parameters(), *whole.body.classifier.parameters())
    assert sum(p.numel() for p in parts) == 90_938
    assert whole.parameter_counts() == (231_053, 0)


def test_the_network_without_poses_has_fewer_effective_parameters():
    """A window of 4x4 that never turns reads 16 values, whatever its 25 control points are."""
    body = GroupCapsNet.from_preset("plain_cnn").body
    window = body.convolutions[1].kernel.window
    control_points = torch.randn(1, 1, 5, 5)
    jacobian = torch.autograd.functional.jacobian(lambda points: window(points, 4).flatten(), control_points)
    assert torch.linalg.matrix_rank(jacobian.flatten(1)) == 16
    effective = sum(p.numel() for p in body.parameters()) - sum(
        9 * c.weight[..., 0, 0].numel() for c in body.convolutions
    )
    assert effective == EFFECTIVE


@pytest.mark.parametrize("config", [PaperConfig, SteerableConfig])
def test_a_network_without_features_and_poses_is_refused(config):
    with pytest.raises(ValueError, match="needs `features`, `poses` or both"):
        config(features=False, poses=False)


@pytest.mark.parametrize("part", ["features", "poses"])
def test_pooling_by_agreement_needs_features_and_poses(part):
    with pytest.raises(ValueError, match="it needs both"):
        PaperConfig(pool_by_agreement=True, **{part: False})


def test_only_the_last_layer_and_the_scores_do_without_a_pose():
    """Even if all blocks are the same object."""
    network = SteerableNet(SteerableConfig(blocks=(Block(4, 3),) * 3))
    assert [layer.needs_pose for layer in (*network.layers, network.classes)] == [True, True, False, False]


def test_flagship_has_at_most_250k_parameters():
    count = sum(p.numel() for p in GroupCapsNet.from_preset("steerable").parameters())
    assert 100_000 < count <= 250_000


@pytest.mark.parametrize("name", TURNING)
def test_constant_images_have_no_pose(name):
    """All poses are undefined, scores are finite, and activations are zero."""
    for value in (0.0, 0.3, 1.0):
        output = network(name)(torch.full((2, 1, 32, 32), value))
        assert output.scores.isfinite().all()
        assert output.activations.abs().max() < 1e-3
        assert output.poses.norm(dim=-1).max() < 0.5


def test_sizes_that_cannot_be_exact_are_refused_with_the_nearest_legal_ones():
    net = network("steerable")
    with pytest.raises(ValueError, match=r"image width 28 .* nearest sides are 32: resize"):
        net(torch.rand(1, 1, 32, 28))
    with pytest.raises(ValueError, match=r"height 50 .* 48 and 56: resize .*pad=True"):
        net(torch.rand(1, 1, 50, 64))
    with pytest.raises(ValueError, match="image height 20"):
        GroupCapsNet.from_preset("steerable", image_size=20)


def test_legal_sizes_follow_from_the_layers():
    """The sizes that are accepted are exact, and the others are refused."""
    paper = GroupCapsNet(PaperNet(PaperConfig(widths=(4, 4))), image_size=8).train()
    assert paper(torch.rand(2, 1, 16, 8)).scores.isfinite().all()
    with pytest.raises(ValueError, match=r"height 12 does not fit.*8 and 16"):
        paper(torch.rand(2, 1, 12, 8))

    deep = (Block(4, 6, stride=2, padding=2), Block(4, 3, pool=True), Block(4, 3, pool=True), Block(4, 3, pool=True))
    net = GroupCapsNet(SteerableNet(SteerableConfig(blocks=deep)), image_size=48).train()
    images = torch.rand(4, 1, 48, 48)
    net(images)
    assert exactness(net.eval(), images).predictions_changed == 0
    with pytest.raises(ValueError, match=r"height 40 does not fit.*32 and 48"):
        net(torch.rand(2, 1, 40, 40))


def test_poses_of_large_images_are_unit_vectors_or_undefined():
    """The paper's network averages the class capsules of all blocks."""
    output = network("paper")(torch.rand(4, 1, 64, 64))
    lengths = output.poses.norm(dim=-1)
    assert lengths.max() <= 1 + 1e-5
    assert (output.activations[lengths < 0.1] < 0.1).all()


@pytest.mark.parametrize("size", [(28, 28), (29, 33), (10, 50)])
def test_padding_accepts_any_size_and_stays_exact(size):
    net = network("steerable", pad=True)
    images = torch.rand(4, 1, *size)
    found = exactness(net, images)
    assert found.predictions_changed == 0
    assert found.activations < 1e-4


@pytest.mark.parametrize("side", [4095, 4097, 5001])
def test_padding_never_crops(side):
    ready = network("paper", pad=True).prepare(torch.ones(1, 1, side, 8))
    assert ready.shape == (1, 1, 32 * math.ceil(side / 32), 32)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_images_are_explained():
    net = network("steerable")
    with pytest.raises(TypeError, match=r"floats in \[0, 1\], but have dtype torch.uint8.*/ 255"):
        net(torch.zeros(1, 1, 32, 32, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"shape \(batch, 1, height, width\), but have \(1, 3, 32, 32\)"):
        net(torch.zeros(1, 3, 32, 32))
    with pytest.raises(TypeError, match=r"must be a torch\.Tensor, but is list"):
        net([1.0])
    with pytest.raises(ValueError, match="NaN or infinite pixels"):
        net(torch.full((1, 1, 32, 32), torch.nan))
    with pytest.raises(TypeError, match=r"dtype torch.float64, but the network computes in torch.float32: use `images"):
        net(torch.zeros(1, 1, 32, 32, dtype=torch.float64))
    with pytest.raises(ValueError, match="unknown preset 'steerabel'; choose one of 'steerable'"):
        GroupCapsNet.from_preset("steerabel")


def test_values_out_of_range_warn_once_and_are_used_unchanged():
    net = network("steerable")
    images = torch.rand(1, 1, 32, 32)
    with pytest.warns(UserWarning, match=r"expected in \[0, 1\], but range from"):
        bright = net(images * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(images * 4)
        normal = net(images)
    assert not torch.allclose(bright.scores, normal.scores)


def test_every_training_batch_is_checked():
    """A single NaN would stay in the running statistics forever."""
    with pytest.warns(UserWarning, match=r"expected in \[0, 1\], but range from"):
        GroupCapsNet.from_preset("steerable").train()(torch.rand(2, 1, 32, 32) * 255)
    net, images = GroupCapsNet.from_preset("steerable").train(), torch.rand(2, 1, 32, 32)
    net(images)
    for broken in (torch.nan, torch.inf):
        images[1, 0, 3, 4] = broken
        with pytest.raises(ValueError, match="NaN or infinite pixels"):
            net(images)
    assert all(value.isfinite().all() for value in net.state_dict().values())


@pytest.mark.parametrize("name", PRESETS)
def test_an_empty_batch_gives_an_empty_output(name):
    assert network(name)(torch.zeros(0, 1, 32, 32)).scores.shape == (0, 10)


@pytest.mark.parametrize("measure", [exactness, lambda net, images: layer_exactness(net.capsules, images)])
def test_nothing_is_measured_on_no_images(measure):
    with pytest.raises(ValueError, match="no images to measure on"):
        measure(network("steerable"), torch.zeros(0, 1, 32, 32))


def test_a_network_without_capsules_has_no_layers_to_measure():
    assert layer_exactness(network("plain_cnn").capsules, torch.rand(2, 1, 32, 32)) == []


def test_decoder_reconstructs_and_turns_with_the_poses():
    net = network("steerable", decoder=True)
    output = net(torch.rand(2, 1, 32, 32))
    assert output.reconstruction.shape == (2, 1, 32, 32)
    assert ((output.reconstruction >= 0) & (output.reconstruction <= 1)).all()
    turned = net.decoder(output._replace(poses=-output.poses))
    assert (turned - output.reconstruction).abs().max() > 1e-6


@pytest.mark.parametrize("name", PRESETS)
def test_one_state_dict_for_training_and_evaluation(name):
    net, other = network(name), GroupCapsNet.from_preset(name)
    other.load_state_dict(net.state_dict())
    images = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(other.eval()(images).scores, net(images).scores)


@pytest.mark.parametrize("name", PRESETS)
def test_a_few_steps_lower_the_loss(name):
    """Every preset learns to distinguish bars from noise."""
    net = GroupCapsNet.from_preset(name, num_classes=2)
    images = torch.zeros(16, 1, 32, 32)
    images[:8, :, 10:14, 6:22] = 1
    images[8:, :, 8:24, 8:24] = torch.rand(8, 1, 16, 16)
    labels = torch.arange(16) // 8
    net.calibrate(images)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(12):
        loss = torch.nn.functional.cross_entropy(net(images).scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("name", TURNING)
def test_capsules_of_every_layer_rotate_with_the_image(name):
    """In every layer, activations move with the grid and poses rotate."""
    net, images = network(name), torch.rand(2, 1, 32, 32)
    found = layer_exactness(net.capsules, images)
    assert len(found) == len(net.capsules(images))
    for layer in found:
        assert layer.activations < 1e-4
        assert layer.poses < 1e-4


def test_that_measurement_rejects_a_layer_whose_poses_do_not_rotate():
    """Control: the poses of the second layer are fixed, or NaN."""
    net, images = network("steerable"), torch.rand(2, 1, 32, 32)

    def tampered(images):
        first, second, *rest = net.capsules(images)
        return [first, Capsules(SO2().identity(*second.activations.shape), second.activations), *rest]

    assert math.isnan(
        layer_exactness(lambda x: [Capsules(*(v * torch.nan for v in net.capsules(x)[0]))], images)[0].poses
    )
    first, second, *_ = layer_exactness(tampered, images)
    assert first.poses < 1e-4
    assert second.poses > 1


@pytest.mark.parametrize(("name", "reads"), [("paper", False), ("steerable", True), ("capsules_only", True)])
def test_the_papers_decoder_reads_the_pose_of_the_predicted_class_alone(name, reads):
    """Poses are weighted by class probabilities; without class scores, and in our network, it reads them all."""
    decoder = GroupCapsNet.from_preset(name, decoder=True).decoder
    scores = torch.tensor([[0.0, 50.0, *[0.0] * 8]])
    output = CapsOutput(scores, torch.rand(1, 10), SO2().random(1, 10))
    turned = output.poses.clone()
    turned[:, 0] *= -1
    assert ((decoder(output) - decoder(output._replace(poses=turned))).abs().max() > 1e-6) == reads
    turned[:, 1] *= -1
    assert (decoder(output) - decoder(output._replace(poses=turned))).abs().max() > 1e-6


@pytest.mark.parametrize("name", PRESETS)
def test_explain_gives_the_output_and_the_capsules_of_every_layer(name):
    net, images = network(name, decoder=True), torch.rand(2, 1, 32, 32)
    answer, layers = net.explain(images)
    for found, expected in zip(answer, net(images), strict=True):
        assert torch.equal(found, expected)
    for found, expected in zip(layers, net.capsules(images), strict=True):
        assert torch.equal(found.poses, expected.poses)
        assert torch.equal(found.activations, expected.activations)


@pytest.mark.parametrize("layer", range(4))
def test_the_papers_features_are_weighted_by_the_agreement_of_every_layer(layer):
    """Half of the agreement in a layer gives half of the scores, because a new network has no other biases."""
    body, images = GroupCapsNet.from_preset("paper").body.eval(), torch.rand(2, 1, 32, 32)
    torch.nn.init.zeros_(body.classifier.bias)
    capsules = body.capsules(images)
    before = body.answer(images, capsules).scores
    poses, activations = capsules[layer]
    capsules[layer] = Capsules(poses, activations / 2)
    assert before.abs().max() > 0
    torch.testing.assert_close(body.answer(images, capsules).scores, before / 2)


@pytest.mark.parametrize("name", ["steerable", "steerable_capsules", "paper"])
def test_a_whole_network_trains_under_autocast(name):
    """As training on a GPU does by default; the running powers stay in 32 bits."""
    net = GroupCapsNet.from_preset(name).train()
    with torch.autocast("cpu", torch.bfloat16):
        output = net(torch.rand(2, 1, 32, 32))
    output.scores.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters() if parameter.grad is not None)

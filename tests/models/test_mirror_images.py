"""Networks that ignore mirroring: the same answer for an image and its mirror image, whose pose is mirrored."""

import pytest
import torch
from test_network import network

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.metrics import exactness, layer_exactness
from equicaps.models import PRESETS, Architecture, GroupCapsNet, SteerableConfig
from equicaps.models.network import MIRRORED

SIDE = 32


@pytest.mark.parametrize(
    ("name", "size"), [*((name, (32, 32)) for name in MIRRORED), ("steerable", (32, 64)), ("steerable", (48, 40))]
)
def test_answers_do_not_change_under_mirroring(name, size):
    """Scores and agreements do not change and poses are mirrored, in float32, alone and with quarter turns."""
    net, images = network(name, mirror="ignore"), torch.rand(6, 1, *size)
    largest = net(images).scores.abs().max()
    for mirrored in (False, True):
        found = exactness(net, images, mirrored=mirrored)
        assert found.predictions_changed == 0
        assert found.scores < 1e-4 * largest
        assert found.activations < 1e-4
        assert found.poses < 1e-4
        assert found.poses_defined > 50


@pytest.mark.parametrize("name", MIRRORED)
def test_that_measurement_rejects_an_ordinary_network(name):
    """Control: the same preset, exact under quarter turns, changes its answers."""
    net, images = network(name), torch.rand(6, 1, SIDE, SIDE)
    assert exactness(net, images).activations < 1e-4
    found = exactness(net, images, mirrored=True)
    assert found.scores > 0.01
    assert found.activations > 0.01
    assert found.poses > 0.1


@pytest.mark.parametrize("name", MIRRORED)
def test_in_float64_only_its_rounding_remains(name):
    net, images = network(name, mirror="ignore", in_channels=3).double(), torch.rand(4, 3, SIDE, SIDE).double()
    found = exactness(net, images, mirrored=True)
    assert max(found.scores, found.activations, found.poses) < 1e-11


@pytest.mark.parametrize("name", MIRRORED)
def test_capsules_of_every_layer_are_mirrored_with_the_image(name):
    net, images = network(name, mirror="ignore"), torch.rand(2, 1, SIDE, SIDE)
    ordinary = layer_exactness(network(name).capsules, images, mirrored=True)
    for layer, control in zip(layer_exactness(net.capsules, images, mirrored=True), ordinary, strict=True):
        assert max(layer) < 1e-4
        assert min(control) > 0.01


@pytest.mark.parametrize("size", [(28, 28), (29, 33), (10, 50)])
def test_padding_is_symmetric(size):
    found = exactness(network("steerable", mirror="ignore", pad=True), torch.rand(4, 1, *size), mirrored=True)
    assert found.predictions_changed == 0
    assert found.activations < 1e-4


def trained(images, labels, mirror):
    """A network after a few steps on these images at random angles."""
    generator = torch.Generator().manual_seed(0)
    net = Architecture(num_classes=2, mirror=mirror).build(seed=0)
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(30):
        chosen = torch.randint(len(images), (16,), generator=generator)
        views = rotate(images[chosen], 360 * torch.rand(16, generator=generator), SIDE)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(views).scores, labels[chosen]).backward()
        optimiser.step()
    return net.eval()


def test_hooks_to_the_left_and_to_the_right_are_told_apart_only_by_a_network_that_distinguishes():
    """Why not to use it for letters and screws: a class and its mirror image get the same scores."""
    left = torch.zeros(1, 1, 28, 28)
    left[..., 4:24, 12:16] = left[..., 20:24, 4:16] = 1
    hooks, labels = torch.cat((left, left.flip(-1))), torch.arange(2)
    for mirror, apart in (("distinguish", True), ("ignore", False)):
        net = trained(hooks, labels, mirror)
        with torch.no_grad():
            scores = net(rotate(hooks, torch.zeros(2), SIDE)).scores
        assert torch.equal(scores.argmax(1), labels) == apart
        assert (scores[0] - scores[1]).abs().max() > 1 if apart else (scores[0] - scores[1]).abs().max() < 1e-4


def test_a_trained_network_stays_exact_and_learns_mirror_images_that_it_never_saw():
    """Threes and fours, of which training shows none mirrored; the control classifies them worse."""
    digits = embedded_digits("train")
    digits = digits.take(((digits.labels == 4) | (digits.labels == 3)).nonzero().squeeze(1))
    labels = (digits.labels == 4).long()
    unseen = rotate(digits.images[300:500], torch.zeros(200), SIDE)
    correct = {}
    for mirror in ("distinguish", "ignore"):
        net = trained(digits.images[:300], labels[:300], mirror)
        with torch.no_grad():
            correct[mirror] = [
                (net(x).scores.argmax(1) == labels[300:500]).double().mean() for x in (unseen, unseen.flip(-1))
            ]
        found = exactness(net, unseen, mirrored=True)
        assert (found.predictions_changed == 0) == (mirror == "ignore")
        if mirror == "ignore":
            assert max(found.scores, found.activations, found.poses) < 1e-4
            assert found.poses_defined > 50
    assert correct["ignore"][0] == correct["ignore"][1] > 0.9
    assert correct["distinguish"][1] < correct["distinguish"][0]


def test_an_image_that_is_its_own_mirror_image_points_up_or_down():
    """p = -conj(p): the pose of such an image lies on its axis."""
    images = torch.rand(6, 1, SIDE, SIDE)
    symmetric = (images + images.flip(-1)) / 2
    net = network("steerable", mirror="ignore")
    with torch.no_grad():
        poses, control = (net(x).poses for x in (symmetric, images))
    assert poses[..., 0].abs().max() < 1e-4
    assert poses[..., 1].abs().max() > 0.99
    assert control[..., 0].abs().max() > 0.5


@pytest.mark.parametrize("name", MIRRORED)
def test_the_saved_parameters_are_given_back(name):
    ordinary, wider = (
        sum(GroupCapsNet.from_preset(name, mirror=mirror).parameter_counts()) for mirror in ("distinguish", "ignore")
    )
    assert 0.95 < wider / ordinary <= 1


def test_networks_that_cannot_ignore_mirroring_say_so():
    for name in set(PRESETS) - set(MIRRORED):
        with pytest.raises(ValueError, match=f"only 'steerable' and 'steerable_capsules' can ignore .* is '{name}'"):
            GroupCapsNet.from_preset(name, mirror="ignore")
        with pytest.raises(ValueError, match="can ignore mirroring"):
            Architecture(name, mirror="ignore")
        assert not GroupCapsNet.from_preset(name).ignores_mirror
    with pytest.raises(ValueError, match='`mirror="ignore"` needs `poses`'):
        SteerableConfig(poses=False, mirror="ignore")

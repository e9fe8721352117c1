"""Behind a canonicalizer, any backbone is invariant or equivariant under quarter turns."""

import pytest
import torch
from PIL import Image
from torch import nn

import equicaps
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.models import GroupCapsNet


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset("steerable")
    network.train()(rotate(embedded_digits("train").images[:64], torch.zeros(64), 32))
    return PoseModel(network, Card("test", "", "", tuple("abcdefghij"), (0.0,) * 10, frame=28))


@pytest.fixture
def images(model):
    digits = embedded_digits("test").images[:24]
    defined = ~model.predict(digits).angles.isnan()
    assert defined.sum() > 10
    return digits[defined]


def lopsided():
    """A backbone without any symmetry."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.Conv2d(4, 2, 3, padding=1))


def quarter(x, k=1):
    return torch.rot90(x, k, (-2, -1))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_invariant_answers_do_not_change(model, images, k):
    """F(g(hx)⁻¹ hx) = F(g(x)⁻¹ x); control: F(hx) ≠ F(x)."""
    backbone = nn.Sequential(lopsided(), nn.Flatten(), nn.Linear(2 * 28 * 28, 5))
    canonical = equicaps.Canonicalizer(model, backbone)
    torch.testing.assert_close(canonical(quarter(images, k)), canonical(images), atol=2e-3, rtol=0)
    assert (backbone(quarter(images, k)) - backbone(images)).abs().max() > 0.05


@pytest.mark.parametrize("k", [1, 2, 3])
def test_maps_rotate_with_the_image(model, images, k):
    """Φ(hx) = h Φ(x); control: F(hx) ≠ h F(x)."""
    backbone = lopsided()
    canonical = equicaps.Canonicalizer(model, backbone, returns="maps")
    torch.testing.assert_close(canonical(quarter(images, k)), quarter(canonical(images), k), atol=2e-3, rtol=0)
    assert (backbone(quarter(images, k)) - quarter(backbone(images), k)).abs().max() > 0.05


def test_vectors_rotate_with_the_image(model, images):
    def backbone(x):
        return torch.stack((x[:, 0, :14].mean((1, 2)), x[:, 0, :, :9].mean((1, 2))), -1)

    canonical = equicaps.Canonicalizer(model, backbone, returns="vectors")
    still, turned = canonical(images), canonical(quarter(images))
    expected = torch.stack((-still[:, 1], still[:, 0]), -1)  # (x, y) by 90 degrees
    torch.testing.assert_close(turned, expected, atol=1e-3, rtol=0)
    assert (turned - still).abs().max() > 0.01


def test_the_identity_as_backbone_gives_back_the_images(model, images):
    """Φ = id for F = id, up to two interpolations; control: rotating back the wrong way is much worse."""
    canonical = equicaps.Canonicalizer(model, nn.Identity(), returns="maps")
    back = canonical(images)
    error = (back - images).square().mean() / images.square().mean()
    assert error < 0.15
    wrong = rotate(canonical.upright(images).images, -canonical.upright(images).angles)
    assert (wrong - images).square().mean() / images.square().mean() > 3 * error  # control


def test_without_a_backbone_it_returns_upright_images_and_angles(model, images):
    upright = equicaps.Canonicalizer(model)(images)
    torch.testing.assert_close(upright.angles, model.predict(images).angles)
    torch.testing.assert_close(upright.images, model.upright(images))


def test_the_backbone_trains_and_the_model_does_not(model, images):
    backbone = lopsided()
    canonical = equicaps.Canonicalizer(model, backbone, returns="maps")
    trained = [p for p in canonical.parameters() if p.requires_grad]
    assert sum(p.numel() for p in trained) == sum(p.numel() for p in backbone.parameters())
    assert not canonical.train().model.training  # or its batch statistics would change
    assert canonical.backbone.training
    assert all(p.requires_grad for p in model.parameters())  # the caller's own model can still be trained
    canonical(images.clone().requires_grad_()).square().mean().backward()
    assert all(p.grad.abs().sum() > 0 for p in backbone.parameters())
    assert all(p.grad is None for p in model.network.parameters())


@pytest.mark.usefixtures("without_shape_checks")
def test_mistakes_are_explained(model, images):
    with pytest.raises(ValueError, match="'invariant', 'maps' or 'vectors', but is 'images'"):
        equicaps.Canonicalizer(model, nn.Identity(), returns="images")
    with pytest.raises(ValueError, match=r"maps must have shape \(n, channels, side, side\)"):
        equicaps.Canonicalizer(model, lambda x: x[..., 1:], returns="maps")(images)
    with pytest.raises(ValueError, match=r"vectors must have shape \(n, \.\.\., 2\)"):
        equicaps.Canonicalizer(model, lambda x: x, returns="vectors")(images)
    with pytest.raises(ValueError, match="one entry for each of"):
        equicaps.Canonicalizer(model, lambda x: x[1:], returns="maps")(images)


def test_quarter_turns_move_pixels_and_nothing_else():
    images = torch.rand(4, 1, 9, 9)
    turned = rotate(images, torch.tensor([0.0, 90.0, -180.0, 630.0]))
    for k, (before, after) in enumerate(zip(images, turned, strict=True)):
        assert torch.equal(after, quarter(before, k if k != 2 else 2))
    some = rotate(images, torch.full((4,), 30.0))
    torch.testing.assert_close(some, rotate(images, torch.full((4,), 30.0)))


def test_images_of_any_kind_are_taken(model, images):
    """As by :meth:`PoseModel.predict`; control: another image gives another result."""
    canonical = equicaps.Canonicalizer(model)
    array = images[0, 0].mul(255).round().byte().numpy()
    of_tensor = canonical(torch.from_numpy(array))
    for same in (array, Image.fromarray(array), [array]):
        torch.testing.assert_close(canonical(same), of_tensor)
    assert (canonical(images[1]).images - of_tensor.images).abs().max() > 0.1


def test_vectors_are_rotated_counter_clockwise_and_not_mirrored(model):
    """R(θ) v: a mirrored R(θ) would be equivariant, too."""
    back = equicaps.Canonicalizer(model, lopsided(), returns="vectors").back
    vectors, angles = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([90.0, 90.0, 0.0])
    expected = torch.tensor([[0.0, 1.0], [-1.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(back(vectors, angles), expected, atol=1e-6, rtol=0)

"""Known angles: what the network learns from them, where its zeros come from, and that nothing else changes."""

import math
from dataclasses import replace

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps._tensor_files import read_tensors
from equicaps.errors import UsageError
from equicaps.images import rotate
from equicaps.inference.model_files import MODEL
from equicaps.losses import Objective, known_angle_loss, true_poses
from equicaps.models import Architecture
from equicaps.models.output import CapsOutput
from equicaps.training import AnyAngle, load_checkpoint, train
from equicaps.training.distributed import World
from equicaps.training.sampler import Sampler
from equicaps.training.trainer import UPRIGHT_POSE, Trainer
from equicaps.training.zeros import FEWEST, KNOWN_PER_CLASS, zeros_of


def with_angles(data, known=slice(None)):
    """The same images with angles for some of them: 10 degrees times their place."""
    angles = torch.full((len(data),), math.nan)
    angles[known] = 10.0 * torch.arange(len(data))[known]
    return replace(data, angles=angles)


def zeros(folder):
    """The zeros of a trained model."""
    return read_tensors(folder / MODEL, "model")[1]["zeros"]


def trainer(data, **changes):
    return Trainer(config(4, **changes), network(), data, ROTATED, World(torch.device("cpu")))


def test_the_angle_of_a_view_is_that_of_its_image_plus_its_rotation():
    data = with_angles(digits(), slice(0, 20))
    sampler = Sampler(data, ROTATED, images=8, views=2, seed=0)
    batch, chosen = sampler.batch(3), sampler.indices(3).repeat(2)
    known = chosen < 20
    assert known.any()
    assert not known.all()
    torch.testing.assert_close(batch.angles[known], 10.0 * chosen[known] + batch.degrees[known])
    assert batch.angles[~known].isnan().all()
    assert batch.known == known.double().mean()
    plain = Sampler(digits(), ROTATED, images=8, views=2, seed=0).batch(3)
    assert plain.angles is None
    assert plain.known == 0
    assert torch.equal(plain.views, batch.views)


@pytest.mark.parametrize("count", [20, 1])
def test_the_loss_of_a_step_is_the_objective_and_the_loss_of_known_angles(count):
    """The mean over the known angles; if fewer than a quarter are known, only a part of it."""
    first = trainer(digits()).sampler.indices(0)
    data = with_angles(digits(), slice(0, 20) if count == 20 else first[:1])
    (loss, output, labels), (before, _, _) = trainer(data, batch=16)._loss(), trainer(digits(), batch=16)._loss()
    batch = trainer(data, batch=16).sampler.batch(0)
    known = ~batch.angles.isnan()
    angle = torch.deg2rad(batch.angles[known])
    mean = 1 - (true_poses(output, labels)[known] * torch.stack((angle.cos(), angle.sin()), -1)).sum(-1).mean()
    assert (batch.known < 0.25) == (count == 1)
    torch.testing.assert_close(loss - before, mean * min(1, batch.known / 0.25))
    assert mean > 0.01


def test_processes_weight_known_angles_alike():
    """The loss of each of two, before they average their gradients, is divided by the share of the whole batch."""
    data = with_angles(digits(), slice(0, 28))
    only = Objective(cross_entropy=0.0, spread=0.0, consistency=0.0)
    whole = trainer(data, batch=16).sampler.batch(0)
    assert len({whole.part(rank, 2, 2).known for rank in range(2)}) == 2  # guard: the parts differ
    for rank in range(2):
        part = trainer(data, objective=only, batch=16)
        part.world = World(torch.device("cpu"), rank, 2)
        loss, output, labels = part._loss()
        angles = whole.part(rank, 2, 2).angles
        torch.testing.assert_close(loss, known_angle_loss(true_poses(output, labels), angles, whole.known))


def test_the_mean_over_processes_is_the_loss_of_the_whole_batch():
    """However the known angles are distributed over the parts."""
    data = with_angles(digits(), slice(0, 11))
    whole = Sampler(data, ROTATED, images=8, views=2, seed=0).batch(1)
    parts = [whole.part(rank, 4, 2) for rank in range(4)]
    poses = torch.nn.functional.normalize(torch.randn(16, 2, generator=torch.Generator().manual_seed(0)), dim=-1)
    places = torch.arange(16).view(2, 4, 2).transpose(0, 1).reshape(4, 4)
    losses = [
        known_angle_loss(poses[place], part.angles, whole.known) for place, part in zip(places, parts, strict=True)
    ]
    assert len({part.known for part in parts}) > 1  # guard: they are not distributed evenly
    torch.testing.assert_close(torch.stack(losses).mean(), known_angle_loss(poses, whole.angles, whole.known))


def test_blank_images_have_finite_gradients():
    """Their poses are undefined."""
    data = with_angles(digits())
    blank = trainer(replace(data, images=torch.zeros_like(data.images)))
    loss, output, labels = blank._loss()
    assert true_poses(output, labels).norm(dim=-1).max() < 0.5
    loss.backward()
    assert all(value.grad.isfinite().all() for value in blank.network.parameters() if value.grad is not None)


def test_without_known_angles_a_training_is_the_same_bit_for_bit(tmp_path):
    """Also if angles could be known, but none is; with angles it differs."""
    sets = {"none": digits(), "unknown": with_angles(digits(), slice(0, 0)), "known": with_angles(digits())}
    states, contents = {}, {}
    for name, data in sets.items():
        train(config(4), data, ROTATED, folder=tmp_path / name, network=network())
        states[name], contents[name] = load_checkpoint(tmp_path / name)
    assert all(torch.equal(value, states["none"][name]) for name, value in states["unknown"].items())
    assert any(not torch.equal(value, states["none"][name]) for name, value in states["known"].items())
    assert contents["none"]["data"] == contents["unknown"]["data"] == {"name": "bars", "images": 40}
    assert contents["known"]["data"]["known_angles"] == 40
    assert zeros(tmp_path / "none") == zeros(tmp_path / "unknown") != zeros(tmp_path / "known")


def test_a_training_is_not_resumed_with_other_angles(tmp_path):
    train(config(2), with_angles(digits()), ROTATED, folder=tmp_path, network=network())
    with pytest.raises(UsageError, match="known_angles"):
        train(config(2), digits(), ROTATED, folder=tmp_path, network=network(), resume=True)


def test_angles_are_learned_and_the_model_says_them(tmp_path):
    """Shapes rotated by any angle, known for one in four: predicted angles are the true ones, not only consistent."""
    images, labels = torch.zeros(60, 1, 16, 16), torch.arange(60) % 3
    images[..., 4:12, 9:14] = 0.9
    images[labels == 1, :, 9:12, 3:9] = 0.9
    images[labels == 2, :, 4:6, 3:9] = 0.9
    angles = torch.rand(60, generator=torch.Generator().manual_seed(2)) * 360
    data = replace(digits(60), images=rotate(images, angles), labels=labels, angles=angles)
    few = replace(data, angles=torch.where(torch.arange(60) // 3 % 4 == 0, angles, math.nan))

    def median(name, training):
        net = train(config(25, batch=16), training, ROTATED, folder=tmp_path / name, network=network()).network
        poses = true_poses(net(rotate(data.images, torch.zeros(60), 32)), labels)
        found = torch.rad2deg(torch.atan2(poses[:, 1], poses[:, 0])) - torch.tensor(zeros(tmp_path / name))[labels]
        return ((found - angles + 180) % 360 - 180).abs().median().item()

    assert median("with", few) < 20
    assert median("without", replace(data, angles=None)) > 30  # control: the zeros are arbitrary


class Pointing(torch.nn.Module):
    """The pose of every class points at the light, plus a zero of its own: 0, 40 and 80 degrees."""

    def __init__(self):
        super().__init__()
        self.zeros = torch.nn.Parameter(torch.tensor([0.0, 40.0, 80.0]))
        self.seen = 0

    def forward(self, images):
        self.seen += len(images)
        axis = torch.arange(images.shape[-1]) - (images.shape[-1] - 1) / 2
        x, y = (images * axis).sum((1, 2, 3)), -(images * axis[:, None]).sum((1, 2, 3))
        angle = torch.atan2(y, x).unsqueeze(-1) + torch.deg2rad(self.zeros)
        return CapsOutput(
            torch.zeros(len(images), 3), torch.zeros(len(images), 3), torch.stack((angle.cos(), angle.sin()), -1)
        )


def lights(count=30):
    """A light on the right, rotated by any angle, in three classes."""
    images = torch.zeros(count, 1, 32, 32)
    images[..., 14:18, 22:26] = 1
    angles = torch.rand(count, generator=torch.Generator().manual_seed(1)) * 360
    data = replace(digits(count), images=rotate(images, angles), angles=angles)
    return data.take(data.labels.argsort(stable=True))


def test_zeros_come_from_the_images_with_known_angles():
    data = lights()
    few = replace(data, angles=torch.where(torch.arange(30) % 5 == 0, data.angles, math.nan))
    with torch.no_grad():
        assert zeros_of(Pointing(), few, size=32, limit=6) == pytest.approx([0.0, 40.0, 80.0], abs=1)
        some = replace(data, angles=torch.where(data.labels == 1, data.angles, math.nan))
        zeros, before = (zeros_of(Pointing(), each, size=32, limit=9) for each in (some, replace(data, angles=None)))
    assert zeros[1] == pytest.approx(40, abs=1)
    assert [zeros[0], zeros[2]] == [before[0], before[2]]  # classes without a known angle: as before
    assert before[1] != pytest.approx(40, abs=5)


def test_zeros_come_from_different_images():
    """One of three lights of a class is marked 60 degrees off; it counts a third, however often each is repeated."""
    data = lights(90)
    data.angles[30] -= 60
    few = data.take([*range(33), *range(60, 90)])
    assert few.class_sizes() == [30, 3, 30]
    with torch.no_grad():
        once, repeated = (zeros_of(Pointing(), each, size=32, limit=9) for each in (few, few.balanced()))
    assert once[1] == pytest.approx(40 + 19.1, abs=1)
    assert repeated == pytest.approx(once, abs=1e-3)


def test_zeros_of_many_known_angles_take_bounded_time():
    many = lights(3 * KNOWN_PER_CLASS + 90)
    net = Pointing()
    with torch.no_grad():
        zeros_of(net, many, size=32, limit=9)
    assert net.seen == 9 + 3 * FEWEST


def test_the_evaluation_compares_angles_with_the_true_ones():
    data = lights(60)
    found = AnyAngle(data, zeros_from=data)(Pointing())
    assert found["angle_error_mean"] < 1
    off = replace(data, angles=data.angles + torch.where(torch.arange(60) % 4 == 0, 90.0, 0.0))
    half_known = replace(off, angles=torch.where(torch.arange(60) % 2 == 0, off.angles, math.nan))
    found = AnyAngle(half_known, zeros_from=data)(Pointing())
    assert found["angle_error_mean"] == pytest.approx(45, abs=2)
    assert found["pose_error_mean"] < 1
    for without in (AnyAngle(data), AnyAngle(replace(data, angles=None), zeros_from=data)):
        assert "angle_error_mean" not in without(Pointing())


def test_a_network_that_ignores_mirroring_learns_angles_of_symmetric_objects():
    """An upright T is its own mirror image: its pose can only point up or down, never along the first axis."""
    image = torch.zeros(1, 1, 32, 32)
    image[..., 8:12, 8:24] = image[..., 8:26, 14:18] = 1
    assert torch.equal(image, image.flip(-1))
    net = Architecture(mirror="ignore", image_size=32).build(seed=0).eval()
    pose = true_poses(net(image), torch.tensor([0]))
    assert pose[0, 0].abs() < 1e-3
    assert pose[0, 1].abs() > 0.9
    assert known_angle_loss(pose, torch.tensor([UPRIGHT_POSE["distinguish"]]), 1.0).item() == pytest.approx(1, abs=1e-3)
    up = known_angle_loss(pose, torch.tensor([UPRIGHT_POSE["ignore"]]), 1.0).item()
    assert min(up, 2 - up) < 0.1  # 0 or 2: training can decide which


def test_the_target_of_a_network_that_ignores_mirroring_points_up():
    data = with_angles(digits())
    only = Objective(cross_entropy=0.0, spread=0.0, consistency=0.0)
    settings = {name: trainer(data, objective=only, model=Architecture(mirror=name)) for name in UPRIGHT_POSE}
    loss, output, labels = settings["ignore"]._loss()
    poses, angles = true_poses(output, labels), settings["ignore"].sampler.batch(0).angles
    torch.testing.assert_close(loss, known_angle_loss(poses, angles + 90, 1.0))
    torch.testing.assert_close(settings["distinguish"]._loss()[0], known_angle_loss(poses, angles, 1.0))

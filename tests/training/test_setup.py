import pytest
import torch
from PIL import Image
from small_training import config

from equicaps.losses import Objective
from equicaps.models import Architecture
from equicaps.training import Budget, Intervals
from equicaps.training.setup import image_side, set_up


def test_the_test_images_are_looked_at_once_and_the_watched_ones_are_not_trained_on():
    made = set_up("digits", config(1, intervals=Intervals(evaluation_images=30)), balance=False)
    watched, test = made.evaluation.validation.data, made.evaluation.test.data
    assert made.data.name.startswith("MNIST subset (train")
    assert watched.name.startswith("MNIST subset (train")
    assert test.name.startswith("MNIST subset (test")
    assert len(watched) == 30
    trained = {image.numpy().tobytes() for image in made.data.images}
    assert not trained & {image.numpy().tobytes() for image in watched.images}
    seen = []
    network = made.network.eval()
    network.register_forward_pre_hook(lambda _, images: seen.append(len(images[0])))
    made.evaluation(network, 10)
    assert sum(seen) == 2 * 10  # each upright and rotated


def folder_of(path, count, size):
    for number in range(count):
        file = path / f"class{number % 2}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(torch.randint(255, size[::-1], dtype=torch.uint8).numpy()).save(file)
    return str(path)


def test_of_few_images_none_is_held_back(tmp_path):
    made = set_up(folder_of(tmp_path, 30, (32, 32)), config(1), balance=False)
    assert len(made.data) + len(made.evaluation.data) == 30
    assert made.config.intervals.evaluations == 1


@pytest.mark.parametrize(
    ("size", "expected"),
    [((8, 8), 32), ((36, 30), 40), ((35, 35), 32), ((20, 48), 48), ((61, 61), 64), ((640, 480), 96)],
)
def test_a_folder_gets_the_legal_side_nearest_to_its_own(tmp_path, size, expected):
    data = folder_of(tmp_path, 4, size)
    assert image_side(data, Architecture(), None, Budget(steps=1)) == expected
    assert image_side(data, Architecture(), 50, Budget(steps=1)) == 56  # if one is given, that or the next above


@pytest.mark.parametrize(("minutes", "expected"), [(10.0, 96), (0.05, 48), (0.001, 32)])
def test_large_images_are_reduced_to_what_the_budget_can_pay_for(tmp_path, minutes, expected):
    assert image_side(folder_of(tmp_path, 10, (200, 200)), Architecture(), None, Budget(minutes=minutes)) == expected


def test_images_are_never_enlarged(tmp_path):
    made = set_up(folder_of(tmp_path, 6, (20, 20)), config(1), balance=False)
    assert made.data.images.shape[-1] == 20
    views, _ = made.augmentation(made.data.images[:], torch.Generator())
    assert views.shape[-1] == made.config.model.image_size == 32


@pytest.mark.parametrize(("views", "rotation"), [(1, 0.0), (2, 180.0)])
def test_only_pairs_of_views_are_rotated(views, rotation):
    settings = config(1, views=views, objective=Objective(consistency=0.3 * (views - 1)))
    assert set_up("digits", settings, balance=False).augmentation.rotation == rotation

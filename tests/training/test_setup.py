from dataclasses import replace

import pytest
import torch
from PIL import Image
from small_training import config

from equicaps.data import Dataset
from equicaps.data.catalogue import CATALOGUE
from equicaps.losses import Objective
from equicaps.models import Architecture
from equicaps.training import Budget, Intervals, TrainConfig, evaluation, train
from equicaps.training.setup import image_side, set_up


def test_the_test_images_are_looked_at_once_and_the_watched_ones_are_not_trained_on():
    made = set_up("digits", config(1, intervals=Intervals(evaluation_images=30)), balance=False)
    watched, test = made.evaluation.validation.data, made.evaluation.test.data
    assert made.data.name.startswith("MNIST subset (train")
    assert watched.name.startswith("MNIST subset (train")
    assert test.name.startswith("MNIST subset (test")
    assert len(watched) == 30
    assert made.validation is watched
    assert made.evaluation.test.symmetries_from is made.data  # those from which the card has them
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
    assert made.validation is None


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


def use(monkeypatch, sizes, test=1):
    """Classes of these sizes, one shade of grey each, in place of the digits, with ``test`` test images each."""

    def load(split):
        counts = torch.tensor(sizes if split == "train" else [test] * len(sizes))
        labels = torch.arange(len(sizes)).repeat_interleave(counts)
        noise = torch.rand(len(labels), 1, 8, 8, generator=torch.Generator().manual_seed(len(labels))) / 10
        classes = tuple(f"class {number}" for number in range(len(sizes)))
        return Dataset(split, noise + labels.view(-1, 1, 1, 1) / len(sizes) * 0.9, labels, classes)

    monkeypatch.setitem(CATALOGUE, "digits", replace(CATALOGUE["digits"], load=load))


def small(steps, **changes):
    return TrainConfig(Budget(steps=steps), Architecture("steerable_cnn"), batch=8, **changes)


def test_a_training_looks_at_the_test_images_exactly_once(tmp_path, monkeypatch):
    """Also if it is resumed after its end."""
    use(monkeypatch, [120, 120], test=7)
    looks, original = [], evaluation.evaluate

    def spy(network, images, labels, **options):
        looks.append(len(images))
        return original(network, images, labels, **options)

    monkeypatch.setattr(evaluation, "evaluate", spy)
    for resume in (False, True):
        made = set_up("digits", small(6, intervals=Intervals(evaluations=3)), balance=False)
        done = train(
            made.config, made.data, made.augmentation, folder=tmp_path, network=made.network,
            evaluation=made.evaluation, resume=resume,
        )  # fmt: skip
        assert looks == [24, 24, 24, 14]  # validation images twice on the way and at the end, test images
        assert done.figures["images"] == 14
        assert done.figures["validation_images"] == 24
        assert [sum(row) for row in done.confusion] == [7, 7]


@pytest.mark.parametrize(
    ("sizes", "trained"),
    [
        ([10, 10], [10, 10]),
        ([10] * 200, [9] * 200),
        ([300, 100], [270, 90]),
        ([310, 100], [279, 158]),  # 279 and 90 are left, √(279·90) = 158.5
        ([380, 20], [342, 78]),
        ([200, 5, 2], [181, 27, 19]),  # one of the five is watched, none of the two
    ],
    ids=["few", "many classes", "even", "uneven", "95 % in one class", "hardly any"],
)
def test_few_many_and_uneven_classes_train(sizes, trained, tmp_path, monkeypatch):
    use(monkeypatch, sizes)
    made = set_up("digits", small(2, intervals=Intervals(evaluations=1)), balance=False)
    assert made.data.class_sizes() == trained
    done = train(
        made.config, made.data, made.augmentation, folder=tmp_path, network=made.network, evaluation=made.evaluation
    )
    assert done.finished
    assert sum(map(sum, done.confusion)) == len(sizes)


def test_a_training_on_many_small_classes_is_watched(monkeypatch):
    """Rounded down, a tenth of eight images is none."""
    use(monkeypatch, [8] * 200)
    made = set_up("digits", small(1), balance=False)
    assert len(made.validation) == len(made.evaluation.validation.data) == 160
    assert set(made.data.class_sizes()) == {7, 8}


def test_full_balance_is_for_those_who_ask(monkeypatch):
    use(monkeypatch, [380, 20])
    made = set_up("digits", small(1), balance=True)
    assert made.data.class_sizes() == [342, 342]
    assert made.evaluation.test.symmetries_from is made.data

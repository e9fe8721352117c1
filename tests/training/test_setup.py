import pytest
from small_training import config

from equicaps.losses import Objective
from equicaps.training.setup import set_up


def test_a_training_is_evaluated_on_images_that_it_is_not_trained_on():
    made = set_up("digits", config(1), balance=False)
    assert made.data.name.startswith("MNIST subset (train")
    assert made.evaluation.data.name.startswith("MNIST subset (test")


@pytest.mark.parametrize(("views", "rotation"), [(1, 0.0), (2, 180.0)])
def test_only_pairs_of_views_are_rotated(views, rotation):
    settings = config(1, views=views, objective=Objective(consistency=0.3 * (views - 1)))
    assert set_up("digits", settings, balance=False).augmentation.rotation == rotation

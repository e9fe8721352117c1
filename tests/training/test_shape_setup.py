import pytest
from small_shapes import write_folder

from equicaps.models import PointCapsNet
from equicaps.training import LookOnce
from equicaps.training.shape_evaluation import AnyRotation
from equicaps.training.shape_setup import SHAPE_DEFAULTS, set_up_shapes
from equicaps.training.shape_views import ShapeViews


def test_the_defaults_are_those_that_were_chosen():
    config = SHAPE_DEFAULTS
    assert (config.optimiser.rate, config.optimiser.weight_decay, config.optimiser.clip) == (4e-3, 1e-2, 1.0)
    objective = config.objective
    assert (objective.cross_entropy, objective.spread, objective.consistency) == (1.0, 0.3, 1.0)
    assert objective.upright
    assert objective.label_smoothing == 0.1
    assert (config.batch, config.views, config.model.preset) == (32, 2, "points")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data") / "many", count=300)


def test_shapes_are_held_back_and_test_shapes_looked_at_once(many):
    setup = set_up_shapes(str(many), SHAPE_DEFAULTS)
    assert isinstance(setup.evaluation, LookOnce)
    watched, test = setup.evaluation.validation.data, setup.evaluation.test.data
    assert len(watched) == setup.config.intervals.evaluation_images >= 20
    assert len(setup.data) + len(watched) + len(test) == 300
    kept = [{surface.tobytes() for surface in shapes.surfaces} for shapes in (setup.data, watched, test)]
    assert len(set.union(*kept)) == sum(map(len, kept))  # no shape is in two of them
    assert setup.evaluation.test.confusion
    assert isinstance(setup.network, PointCapsNet)
    assert setup.config.model.num_classes == 5
    assert setup.augmentation == ShapeViews(1024, 0.15)


def test_of_few_shapes_none_is_held_back(tmp_path):
    setup = set_up_shapes(str(write_folder(tmp_path / "few")), SHAPE_DEFAULTS)
    assert isinstance(setup.evaluation, AnyRotation)
    assert len(setup.data) + len(setup.evaluation.data) == 20
    assert setup.config.intervals.evaluations == 1

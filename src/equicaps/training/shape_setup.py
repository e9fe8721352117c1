"""From a folder of shapes to a training that is ready to start."""

from equicaps.data.reduced import Watch
from equicaps.data.shapes_by_name import load_shape_splits
from equicaps.losses import Objective
from equicaps.models import PointArchitecture, PointCapsNet
from equicaps.training.config import Budget, Intervals, Optimiser, TrainConfig
from equicaps.training.evaluation import Evaluation, LookOnce
from equicaps.training.setup import FEWEST_WATCHED, Setup
from equicaps.training.shape_evaluation import AnyRotation
from equicaps.training.shape_views import ShapeViews

SHAPE_DEFAULTS = TrainConfig(
    Budget(up_to_minutes=10.0),
    PointArchitecture(),
    Optimiser(rate=4e-3, weight_decay=1e-2, clip=1.0),
    Objective(consistency=1.0, upright=True, label_smoothing=0.1),
    batch=32,
    intervals=Intervals(evaluations=10, evaluation_images=500),
)
"""The settings of a training on shapes that nobody changes."""
SHAPE_VIEWS = ShapeViews()
"""The same for its views; shapes are tested with as many points."""


def set_up_shapes(data: str, config: TrainConfig, *, watch: Watch | None = None) -> Setup:
    """Load a folder of shapes, or a data set by its name, and build a network for it.

    Shapes are never rotated, and need not be. A tenth of the training shapes is held back to watch the training, unless
    there are very few, and the test shapes are looked at once, at its end, as for images.

    Args:
        data: the name of a data set, or a folder of classes.
        config: the settings; the number of classes is taken from the data.
        watch: is called while the shapes of a folder are read, see :func:`load_shapes_folder`.
    """
    training, held_out = load_shape_splits(data, watch=watch)
    count = min(len(training) // 10, config.intervals.evaluation_images or len(training))
    rest, watched = training.hold_back(count)
    evaluation: Evaluation = AnyRotation(held_out, SHAPE_VIEWS.points, confusion=True)
    enough = len(watched) >= FEWEST_WATCHED
    if enough:
        training, config = rest, config.changed({"intervals.evaluation_images": len(watched)})
        evaluation = LookOnce(AnyRotation(watched, SHAPE_VIEWS.points), evaluation)
    else:
        config = config.changed({"intervals.evaluations": 1})
    config = config.changed({"model.num_classes": len(training.classes)})
    network = config.network()
    assert isinstance(network, PointCapsNet)
    return Setup(config, training, SHAPE_VIEWS, network, evaluation, watched if enough else None)

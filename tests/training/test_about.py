"""What model files say about shapes."""

from dataclasses import replace

import torch
from small_shapes import SOLIDS
from torch import nn

import equicaps
from equicaps.data import Cloud, Shapes, Surfaces, solid_shapes
from equicaps.data.shapes import POINTS
from equicaps.groups import SO3
from equicaps.models import PointArchitecture
from equicaps.models.output import CapsOutput
from equicaps.training import Budget, train
from equicaps.training.about import about_shapes
from equicaps.training.shape_evaluation import AnyRotation
from equicaps.training.shape_setup import SHAPE_DEFAULTS
from equicaps.training.shape_views import ShapeViews


class Constant(nn.Module):
    """One pose for each class, except the last, whose poses are all different."""

    def __init__(self, poses):
        super().__init__()
        self.poses = nn.Parameter(poses)

    def forward(self, points, weights):
        poses = self.poses.expand(len(points), -1, -1).clone()
        poses[:, -1] = SO3().random(len(points), generator=torch.Generator().manual_seed(0))
        scores = torch.zeros(poses.shape[:2])
        return CapsOutput(scores, scores, poses)


def test_uprights_are_the_mean_poses_of_upright_shapes():
    data = solid_shapes(60)
    poses = SO3().random(len(data.classes))
    found = about_shapes(Constant(poses), SHAPE_DEFAULTS, data, None, {}, points=40)
    uprights = torch.tensor(found["uprights"])
    assert found["data"] == data.name
    assert found["points"] == 40
    torch.testing.assert_close(uprights[:-1], poses[:-1], atol=1e-5, rtol=0)
    assert SO3().contains(uprights[:-1]).all()


def test_a_model_says_how_many_points_its_training_drew(tmp_path):
    """A training with 77 points, of clouds with 50 as they are: so the card says, and so predictions are made."""
    small = [Cloud(surface.sample(50, torch.Generator())) for surface in SOLIDS.surfaces[:2]]
    data = Shapes("mixed", Surfaces([*small, *SOLIDS.surfaces[2:10]]), SOLIDS.labels[:10], SOLIDS.classes)
    config = replace(SHAPE_DEFAULTS, budget=Budget(steps=1), batch=20, model=PointArchitecture(num_classes=5))
    network, seen = config.network(), []
    network.register_forward_pre_hook(lambda _, given: seen.append(sorted(given[1].sum(1).tolist())))
    train(config, data, ShapeViews(77), folder=tmp_path, network=network, evaluation=AnyRotation(data, 77))
    assert seen == [[50] * 4 + [77] * 16, *[[50] * 2 + [77] * 8] * 3]  # a step, an evaluation, and what is upright
    model = equicaps.load(tmp_path)
    assert model.card.points == 77
    drawn = [SOLIDS.surfaces[4].sample(count, torch.Generator().manual_seed(0)) for count in (77, POINTS)]
    expected, other = (model.predict(cloud).output.scores for cloud in drawn)
    found = model.predict(SOLIDS.surfaces[4]).output.scores
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (found - other).abs().max() > 1e-3  # control: another number has another answer

"""What model files say about shapes."""

import torch
from torch import nn

from equicaps.data import solid_shapes
from equicaps.groups import SO3
from equicaps.models.output import CapsOutput
from equicaps.training.about import POINTS, about_shapes
from equicaps.training.shape_setup import SHAPE_DEFAULTS


class Constant(nn.Module):
    """One pose for each class, except the last, whose poses are all different."""

    def __init__(self, poses):
        super().__init__()
        self.poses = nn.Parameter(poses)

    def forward(self, points):
        poses = self.poses.expand(len(points), -1, -1).clone()
        poses[:, -1] = SO3().random(len(points), generator=torch.Generator().manual_seed(0))
        scores = torch.zeros(poses.shape[:2])
        return CapsOutput(scores, scores, poses)


def test_uprights_are_the_mean_poses_of_upright_shapes():
    data = solid_shapes(60)
    poses = SO3().random(len(data.classes))
    found = about_shapes(Constant(poses), SHAPE_DEFAULTS, data, None, {})
    uprights = torch.tensor(found["uprights"])
    assert found["data"] == data.name
    assert found["points"] == POINTS
    torch.testing.assert_close(uprights[:-1], poses[:-1], atol=1e-5, rtol=0)
    assert SO3().contains(uprights[:-1]).all()

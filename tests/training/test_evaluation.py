"""A part of a set represents all of it, whatever its order."""

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps.models.output import CapsOutput
from equicaps.training import AnyAngle, AsTheyAre, Intervals
from equicaps.training import loop as module
from equicaps.training.distributed import World
from equicaps.training.trainer import Trainer


def in_the_order_of_classes(count=30):
    data = digits(count)
    return data.take(data.labels.argsort(stable=True))


class FirstClass(torch.nn.Module):
    """Predicts the first class for every image."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        scores = torch.eye(3)[:1].expand(len(images), 3)
        return CapsOutput(scores, scores, torch.tensor([1.0, 0.0]).expand(len(images), 3, 2))


@pytest.mark.parametrize("protocol", [AnyAngle, AsTheyAre])
def test_a_part_of_a_set_in_the_order_of_its_classes_has_all_of_them(protocol):
    """A network that always predicts one of three classes is correct for a third of nine images, not for all."""
    evaluation = protocol(in_the_order_of_classes())
    assert in_the_order_of_classes().labels[:9].tolist() == [0] * 9  # guard: the first nine are one class
    found = evaluation(FirstClass(), 9)
    assert found["images"] == 9
    assert found["accuracy"] == pytest.approx(100 / 3)
    assert evaluation(FirstClass(), None)["images"] == 30


def test_the_zeros_of_all_classes_are_measured(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "class_zeros", lambda net, images, labels, classes: seen.append(labels) or [0.0])
    data = in_the_order_of_classes()
    few = config(2, intervals=Intervals(evaluation_images=6))
    trainer = Trainer(few, network(), data, ROTATED, World(torch.device("cpu")))
    module._Run(trainer, tmp_path, None, None)._zeros()
    assert [labels.tolist() for labels in seen] == [[0, 0, 1, 1, 2, 2]]

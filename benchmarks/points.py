"""Networks on points: their speed and, with --minutes, a PointNet with rotated views beside them.

Run: python benchmarks/points.py [--json FILE]. The figures are shapes per CPU-second of one thread, with 1,024 points,
in batches of 32: of a training step (loss, backward, AdamW) and of prediction. The PointNet (Qi et al., 2017, without
its transformation networks) has about as many parameters as `points`. With --minutes N it is trained for so many
CPU-minutes on nine tenths of ModelNet10's training shapes, rotated at random, and measured on the others under random
rotations, as `python -m reproduction points` measures ours.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps.data import load_modelnet10, solid_shapes
from equicaps.data.shapes import POINTS, Surfaces
from equicaps.groups import SO3
from equicaps.losses import Objective
from equicaps.models import PointArchitecture, PointCapsNet
from equicaps.models.output import CapsOutput
from equicaps.training import Budget, Optimiser, TrainConfig, train
from equicaps.training.log import provenance
from equicaps.training.shape_evaluation import AnyRotation
from equicaps.training.shape_views import ShapeViews

BATCH, TENTH = 32, 10


class PointNet(nn.Module):
    """An MLP for each point, the maximum over all points, and an MLP for classes."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        widths = (3, 64, 64, 128, 512)
        layers = [(nn.Conv1d(n, m, 1, bias=False), nn.BatchNorm1d(m), nn.ReLU()) for n, m in pairwise(widths)]
        self.points = nn.Sequential(*(part for layer in layers for part in layer))
        self.head = nn.Sequential(
            nn.Linear(512, 410), nn.BatchNorm1d(410), nn.ReLU(), nn.Dropout(0.3), nn.Linear(410, classes)
        )
        self.classes = classes

    def forward(self, clouds: Tensor, weights: Tensor | None = None) -> CapsOutput:
        assert weights is None or weights.all(), "there is no padding in clouds of surfaces"
        clouds = clouds - clouds.mean(1, keepdim=True)
        scores = self.head(self.points(clouds.mT).amax(-1))
        poses = SO3().identity(len(clouds), self.classes, dtype=scores.dtype)
        return CapsOutput(scores, torch.ones_like(scores), poses)


@dataclass(frozen=True)
class RotatedViews:
    """The views that ours sees, each rotated at random."""

    views: ShapeViews

    def __call__(self, surfaces: Surfaces, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        clouds, degrees, _ = self.views(surfaces, generator)
        return SO3().act(SO3().random(len(clouds), 1, generator=generator), clouds), degrees


def speed(step: Callable[[], Any], seconds: float) -> float:
    """Shapes per CPU-second."""
    step()
    started, count = time.process_time(), 0
    while time.process_time() - started < seconds:
        step()
        count += BATCH
    return count / (time.process_time() - started)


def measure(network: nn.Module, seconds: float) -> dict[str, float]:
    """The speed of training and of prediction, and the number of parameters."""
    shapes = solid_shapes(BATCH)
    clouds, labels = shapes.sample(POINTS), torch.arange(BATCH) % 10
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def training_step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(clouds).scores, labels).backward()
        optimizer.step()

    @torch.no_grad()
    def prediction() -> None:
        network(clouds)

    network.train()
    training = speed(training_step, seconds)
    network.eval()
    count = sum(parameter.numel() for parameter in network.parameters())
    return {"parameters": count, "training": training, "prediction": speed(prediction, seconds)}


def rival(minutes: float, rate: float, root: Path | None) -> dict[str, Any]:
    """A PointNet trained for so many CPU-minutes, measured on the shapes that were held back."""
    whole = load_modelnet10("train", root)
    rest, held = whole.hold_back(len(whole) // TENTH)
    config = TrainConfig(
        Budget(minutes=minutes),
        PointArchitecture(),
        Optimiser(rate=rate, weight_decay=1e-2),
        Objective(spread=0.0, consistency=0.0, label_smoothing=0.1),
        batch=BATCH,
        views=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        result = train(
            config, rest, RotatedViews(ShapeViews()), folder=folder, network=PointNet(), evaluation=AnyRotation(held)
        )
    return dict(result.figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU-seconds of each measurement")
    parser.add_argument("--minutes", type=float, help="also train a PointNet for so many CPU-minutes")
    parser.add_argument("--rate", type=float, default=1e-3, help="its peak learning rate")
    parser.add_argument("--data", type=Path, help="folder with modelnet10_vox30.npz; by default found")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    networks = {
        "points": PointCapsNet.from_preset("points"),
        "points-paper": PointCapsNet.from_preset("points-paper"),
        "PointNet": PointNet(),
    }
    rows = {name: measure(network, arguments.seconds) for name, network in networks.items()}
    print(f"{'':<14}{'parameters':>11}{'train/s':>9}{'predict/s':>11}")
    for name, row in rows.items():
        print(f"{name:<14}{row['parameters']:>11,}{row['training']:>9.1f}{row['prediction']:>11.1f}")
    content = {**provenance(), "batch": BATCH, "points": POINTS, "rows": rows}
    if arguments.minutes:
        content["PointNet"] = rival(arguments.minutes, arguments.rate, arguments.data)
        print(f"PointNet with rotated views: {json.dumps(content['PointNet'])}")
    if arguments.json:
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Shapes in space: ModelNet10, trained upright and never rotated, tested under random rotations.

Settings are chosen on a tenth of the training shapes, which those trainings do not see. The final trainings see all of
them, and look at the test shapes once.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Shapes, load_modelnet10
from equicaps.groups import SO3
from equicaps.inference import load
from equicaps.inference.model_files import MODEL, read_point_model, save_model
from equicaps.inference.point_audit import audit_points
from equicaps.inference.point_model import PointModel
from equicaps.losses import Objective, true_poses
from equicaps.metrics import PosePairs, rotation_errors, vertical_errors
from equicaps.models import CapsOutput, PointArchitecture
from equicaps.training import Budget, Intervals, Optimiser, TrainConfig
from equicaps.training.log import RESULT
from equicaps.training.shape_evaluation import AnyRotation
from equicaps.training.shape_views import ShapeViews
from reproduction.results import Record, Results, finish_training, provenance_of
from reproduction.ship import WEIGHTS

NAME = "points"
SHIPPED = "modelnet10"
TASK = "classifies pieces of furniture, as points or as meshes, and says how they are rotated in space"
LICENCE = "weights: MIT, as equicaps; trained on ModelNet10, which Princeton offers for academic research"
VIEWS = ShapeViews()
SHARE = 10
"""One shape of so many is held back while settings are chosen."""
COUNTS = (256, 512, 1024, 2048)
NOISE = 0.1
"""The part of the points that noise replaces."""
BATCH = 32


@dataclass(frozen=True)
class PointTraining:
    """A preset trained on ModelNet10 for a number of steps of ``batch`` views, two of each shape."""

    preset: str = "points"
    steps: int = 5000
    rate: float = 5e-3
    batch: int = 32
    seed: int = 0

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.preset}-{self.steps}-{self.rate}-{self.batch}-seed{self.seed}"

    def config(self) -> TrainConfig:
        """All settings."""
        return TrainConfig(
            Budget(steps=self.steps),
            PointArchitecture(self.preset),
            Optimiser(rate=self.rate, weight_decay=1e-2, clip=1.0),
            Objective(consistency=1.0, upright=True, label_smoothing=0.1),
            batch=self.batch,
            seed=self.seed,
            intervals=Intervals(evaluations=10, evaluation_images=None, checkpoint_seconds=120.0),
        )


def validate(results: Results, training: PointTraining, root: Path | None) -> Record:
    """Train without a tenth of the training shapes, and measure on those; no test shape is read.

    Writes the measurements of this training into ``points.json``.
    """
    whole = load_modelnet10("train", root)
    rest, held = whole.hold_back(len(whole) // SHARE)
    folder = results.unfinished(f"validation-{training.name}")
    finished = folder / RESULT  # names the commit that trained, which may be another one than this
    if not finished.exists():
        finish_training(training.config(), rest, VIEWS, AnyRotation(held, VIEWS.points), folder, results.console, held)
    record: Record = json.loads(finished.read_text())
    model = load(folder / MODEL)
    assert isinstance(model, PointModel)
    found = {**provenance_of(record), **measured(model, held), "curve": record["curve"]}
    return results.write(NAME, {"validation": {training.preset: found}})


def ship(results: Results, training: PointTraining) -> Path:
    """Write the network of a finished training, with what was measured on it, as the model inside the package."""
    network, content = read_point_model(results.unfinished(f"validation-{training.name}") / MODEL)
    found = json.loads((results.folder / f"{NAME}.json").read_text())["validation"][training.preset]
    exact = found["audit"]["exact"]
    known = ("config", "classes", "data", "points", "uprights", "angle_errors", "cpu_seconds", "images_seen")
    card = {
        **{key: content[key] for key in known if key in content},
        "name": SHIPPED,
        "task": TASK,
        "licence": LICENCE,
        "figures": {
            "accuracy_any_rotation": found["audit"]["accuracy"],
            "pose_error_median": found["audit"]["pose_error_median"],
            "predictions_changed_by_rotations": exact["predictions_changed"],
            "largest_change_of_scores": exact["scores"],
            "shapes_held_back_from_training": found["test_shapes"],
        },
        "command": f"python -m reproduction points --steps {training.steps}",
    }
    path = WEIGHTS / f"{SHIPPED}.safetensors"
    save_model(path, network, card)
    return path


def measured(model: PointModel, data: Shapes) -> dict[str, Any]:
    """What rotations change, the error of poses by class, the number of points and noise, and the speed."""
    labels, network = data.labels, model.network
    clouds = {count: data.sample(count, seed=count) for count in COUNTS}
    generator = torch.Generator().manual_seed(0)
    rotations = SO3().random(2, len(data), generator=generator)
    first, second = (
        answers(network, SO3().act(rotation.unsqueeze(1), data.sample(VIEWS.points, seed=number)))
        for number, rotation in enumerate(rotations)
    )
    right = (first.scores.argmax(-1) == labels) & (second.scores.argmax(-1) == labels)
    pairs = PosePairs(*(true_poses(output, labels) for output in (first, second)), *rotations)
    places = {name: right & (labels == label) for label, name in enumerate(data.classes)}
    by_class = {
        name: {kind: errors[place].median().item() for kind, errors in _errors(pairs).items()}
        for name, place in places.items()
        if place.any()
    }
    started = time.process_time()
    answers(network, clouds[VIEWS.points])
    speed = len(data) / (time.process_time() - started)
    return {
        "audit": audit_points(model, data).to_dict(),
        "pose_errors_by_class": by_class,
        "accuracy_by_points": {str(count): _accuracy(network, clouds[count], labels) for count in COUNTS},
        "accuracy_with_noise": _accuracy(network, noisy(clouds[VIEWS.points], generator), labels),
        "parameters": network.parameter_counts()[0],
        "shapes_per_cpu_second": speed,
        "tested_on": data.name,
        "test_shapes": len(data),
    }


@torch.no_grad()
def answers(network: torch.nn.Module, clouds: Float[Tensor, "n points 3"]) -> CapsOutput:
    """The output of a network in eval mode, batch by batch."""
    return CapsOutput.cat([network(part) for part in clouds.split(BATCH)])


def noisy(clouds: Float[Tensor, "n points 3"], generator: torch.Generator) -> Float[Tensor, "n points 3"]:
    """The clouds with some points replaced by others anywhere in the box around each cloud."""
    low, high = clouds.amin(1, keepdim=True), clouds.amax(1, keepdim=True)
    noise = low + (high - low) * torch.rand(clouds.shape, generator=generator)
    replaced = torch.rand(clouds.shape[:2], generator=generator) < NOISE
    return torch.where(replaced.unsqueeze(-1), noise, clouds)


def _errors(pairs: PosePairs) -> dict[str, Tensor]:
    return {"pose_error_median": rotation_errors(pairs), "vertical_error_median": vertical_errors(pairs)}


def _accuracy(network: torch.nn.Module, clouds: Tensor, labels: Tensor) -> float:
    return (answers(network, clouds).scores.argmax(-1) == labels).double().mean().item() * 100

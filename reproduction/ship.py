"""The models inside the package, made from finished trainings."""

from dataclasses import asdict

from rich.console import Console

from equicaps.data import Dataset
from equicaps.inference import Card, PoseModel, save_model
from equicaps.inference.angle_error import coverage, measure_errors
from equicaps.inference.model_files import read_model
from equicaps.metrics import class_zeros, exactness
from equicaps.models import GroupCapsNet
from equicaps.training import AnyAngle, AsTheyAre
from reproduction.protocols import mnist, padded
from reproduction.results import ROOT
from reproduction.trainings import TRAININGS

WEIGHTS = ROOT / "src" / "equicaps" / "inference" / "weights"

MODELS = {
    "digits": (
        "rotated-steerable",
        "classifies handwritten digits and says how they are rotated; trained on digits at any angle",
    ),
    "digits-paper": (
        "rotated-paper",
        "classifies handwritten digits and says how they are rotated; the paper's own network, trained on digits at "
        "any angle",
    ),
    "digits-upright": (
        "upright-steerable",
        "classifies handwritten digits at any angle; trained on upright digits only",
    ),
    "digits-plain": (
        "upright-plain_cnn",
        "classifies upright handwritten digits; an ordinary CNN for comparison, which fails on rotated digits",
    ),
}
"""Model -> training and task."""

WITHOUT_DECODER = ("digits-paper",)
"""A decoder is larger than the network, and one for the page and the pictures is enough."""

UNSEEN = (50_000, 52_000)
"""Digits of MNIST that the trainings on rotated digits do not see, on which the error of angles is measured."""

NO_POSES = "This network has no poses: it predicts no angles, and nothing is exact under rotations."
LICENCE = "weights: MIT, as equicaps; trained on MNIST (LeCun, Cortes, Burges; CC BY-SA 3.0 as usually given)"


def ship(name: str, console: Console) -> None:
    """Write a model, the weights with their card, into the package.

    Its figures are measured on all 10,000 test digits; the zero angle of each class comes from upright training digits.
    """
    training, task = MODELS[name]
    network, content = read_model(ROOT / "results" / "runs" / f"{training}.safetensors")
    if name in WITHOUT_DECODER:
        network.decoder = None
        content["config"]["model"]["decoder"] = False
    train, test = (padded(data) for data in (mnist("train").take(slice(None, 10_000)), mnist("test")))
    unseen = mnist("train").take(slice(*UNSEEN)) if TRAININGS[training].protocol == "rotated" else None
    figures = _figures(network, test)
    known = ("config", "classes", "data", "cpu_seconds", "images_seen")
    card = {
        **{key: content[key] for key in known if key in content},
        "name": name,
        "task": task,
        "licence": LICENCE,
        "zeros": class_zeros(network, train.images, train.labels, classes=10),
        "frame": 28,
        "background": train.background,
        "figures": figures,
        "command": f"python -m reproduction ship {name}",
        **({} if network.body.config.poses else {"convention": NO_POSES}),
    }
    if unseen and (errors := measure_errors(PoseModel(network, Card.of(name, card)), unseen)):
        card["angle_errors"] = asdict(errors)
        card["figures"] |= coverage(PoseModel(network, Card.of(name, card)), mnist("test")) or {}
    save_model(WEIGHTS / f"{name}.safetensors", network, card)
    lines = "\n".join(f"  {key} {value:.6g}" for key, value in figures.items())
    console.print(f"{name}\n{lines}", markup=False, highlight=False)


def _figures(network: GroupCapsNet, test: Dataset) -> dict[str, int | float]:
    any_angle, upright = AnyAngle(test)(network), AsTheyAre(test)(network)
    changes = exactness(network, test.images[:])
    figures = {
        "accuracy_upright": upright["accuracy"],
        "accuracy_any_angle": any_angle["accuracy"],
        "agreement_accuracy_any_angle": any_angle["agreement_accuracy"],
        "pose_error_mean": any_angle["pose_error_mean"],
        "pose_error_median": any_angle["pose_error_median"],
        "predictions_changed_by_quarter_turns": changes.predictions_changed,
        "largest_change_of_scores": changes.scores,
        "largest_change_of_agreements": changes.activations,
        "largest_change_of_poses": changes.poses,
        "test_images": len(test),
    }
    if network.body.config.poses:
        return figures
    return {key: value for key, value in figures.items() if not ("pose" in key or "agreement" in key)}

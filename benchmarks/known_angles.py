"""What true angles of a few images are worth: `steerable` trained on rotated digits, with and without them.

Run: python benchmarks/known_angles.py [--json results/known_angles.json]. Each of MNIST's first 5,000 training digits,
the 500 after them, which are for validation, and the first 2,000 test digits is rotated once, by a random angle. Two
trainings with the same seed and number of steps (about 1.5 CPU-minutes each, one thread) see the rotated digits and
their classes; the second also knows the angles of one digit in a hundred, and of 200 validation digits, about 20 of
each class, with which the errors that the model states are then measured.

The columns are errors in degrees, on the test digits: the zero of a class (the mean of predicted minus true angle, 0 if
it is right), the median and the mean error of the predicted angles, for each class and over all; and the pose error,
which needs no true angles because it compares each image with itself, rotated. Images without an angle count as errors
of 180 degrees, wrong classes as they come. The last lines say how large the errors are that the model states for nine
of ten angles, and how many test digits are within theirs: of their true angles, and as far as angles follow when digits
are rotated once more.
"""

import argparse
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from equicaps.data import Dataset
from equicaps.data.catalogue import CATALOGUE
from equicaps.images import ROTATED, rotate
from equicaps.inference import PoseModel, load_image_model
from equicaps.inference.angle_error import coverage
from equicaps.training import AnyAngle, Budget, TrainConfig, train
from equicaps.training.log import provenance

IMAGES, VALIDATION_IMAGES, TEST_IMAGES, STEPS = 5000, 500, 2000, 300
KNOWN_IN_VALIDATION = 200


def rotated(data: Dataset, seed: int) -> Dataset:
    """The digits, each rotated by an angle of its own, which is known."""
    angles = torch.rand(len(data), generator=torch.Generator().manual_seed(seed)) * 360
    images = rotate(data.images, angles, interpolation="bicubic")
    return replace(data, name=f"{data.name}, regenerated: rotated, seed {seed}", images=images, angles=angles)


def forget(data: Dataset, known: int, seed: int) -> Dataset:
    """The same images with the angles of so many of them only."""
    assert data.angles is not None
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
    angles = torch.full_like(data.angles, math.nan)
    kept = order[:known]
    angles[kept] = data.angles[kept]
    return replace(data, angles=angles)


def errors_of(errors: torch.Tensor) -> dict[str, float]:
    """The zero, the median and the mean of signed errors in degrees, NaN where there is no angle."""
    radians = torch.deg2rad(errors[~errors.isnan()]).double()
    zero = math.degrees(math.atan2(radians.sin().mean().item(), radians.cos().mean().item()))
    size = errors.abs().nan_to_num(180.0)
    return {"zero": zero, "median": size.median().item(), "mean": size.mean().item()}


def stated(model: PoseModel, test: Dataset) -> dict[str, Any]:
    """The errors that a model states, and how often they are kept, by both measures, whichever of them is meant."""
    errors = model.card.angle_errors
    if errors is None:
        return {"meaning": None, "truth": None, "rotation": None}

    def kept(known: bool) -> dict[str, float] | None:
        table = replace(errors, known_angles=(known,) * len(model.classes))
        return coverage(PoseModel(model.network, replace(model.card, angle_errors=table)), test)

    return {"meaning": errors.meaning(model.classes), "truth": kept(True), "rotation": kept(False)}


def measure(name: str, training: Dataset, validation: Dataset, test: Dataset, steps: int, seed: int) -> dict[str, Any]:
    """Train and test once."""
    config = TrainConfig(Budget(steps=steps), seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        result = train(config, training, ROTATED, folder=Path(folder) / "run", validation=validation)
        model = load_image_model(Path(folder) / "run")
    figures = AnyAngle(test)(result.network)
    answers = model.predict(test.images)
    errors = (answers.angles - test.angles + 180) % 360 - 180
    return {
        "training": name,
        "known_angles": int(training.known_angles.sum()),
        "cpu_minutes": result.cpu_minutes,
        "steps": result.step,
        "accuracy": figures["accuracy"],
        "pose_error_mean": figures["pose_error_mean"],
        "pose_error_median": figures["pose_error_median"],
        "without_angle": int(errors.isnan().sum()),
        "stated": stated(model, test),
        "all": errors_of(errors),
        "classes": {
            label: errors_of(errors[test.labels == number])
            for number, label in enumerate(test.classes)
            if (test.labels == number).any()
        },
    }


def show(row: dict[str, Any]) -> None:
    """Print the figures of one training."""
    print(
        f"{row['training']}: {row['known_angles']} known angles, {row['steps']} steps, {row['cpu_minutes']:.1f} "
        f"CPU-minutes, accuracy {row['accuracy']:.1f} %"
    )
    print(f"pose error: median {row['pose_error_median']:.1f}, mean {row['pose_error_mean']:.1f} degrees")
    print("class   zero  median    mean")
    for label, found in (*row["classes"].items(), ("all", row["all"])):
        zero = "" if label == "all" else f"{found['zero']:+.0f}"
        print(f"{label:<5} {zero:>6}  {found['median']:6.1f}  {found['mean']:6.1f}")
    print(f"± is {row['stated']['meaning']}")
    for what in ("truth", "rotation"):
        if (found := row["stated"][what]) is not None:
            print(
                f"{what}: ±{found['stated_angle_error_mean']:.1f} degrees on average, kept by "
                f"{found['angle_error_coverage']:.1f} %"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--data", choices=("mnist", "digits"), default="mnist", help="digits is in the package")
    parser.add_argument("--images", type=int, default=IMAGES, help="the number of training digits")
    parser.add_argument(
        "--validation-images", type=int, default=VALIDATION_IMAGES, help="the number of those after them"
    )
    parser.add_argument("--test-images", type=int, default=TEST_IMAGES, help="the number of test digits")
    parser.add_argument("--known", type=float, default=0.01, help="the share of training digits with a known angle")
    parser.add_argument("--steps", type=int, default=STEPS, help="optimiser steps of each training")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seed, entry = arguments.seed, CATALOGUE[arguments.data]
    first, held = arguments.images, arguments.validation_images
    training = rotated(entry.load("train").take(slice(first)), 2 * seed)
    validation = rotated(entry.load("train").take(slice(first, first + held)), 2 * seed + 1000)
    test = rotated(entry.load("test").take(slice(arguments.test_images)), 2 * seed + 1)
    known = round(arguments.known * len(training))
    sets = {
        "without angles": [replace(data, angles=None) for data in (training, validation)],
        "with angles": [forget(training, known, seed), forget(validation, KNOWN_IN_VALIDATION, seed)],
    }
    rows = []
    for name, (data, held_out) in sets.items():
        rows.append(measure(name, data, held_out, test, arguments.steps, seed))
        show(rows[-1])
    if arguments.json:
        settings = {"data": training.name, "images": len(training), "validation_images": len(validation),
                    "tested_on": test.name, "test_images": len(test)}  # fmt: skip
        content = {**provenance(), **settings, "seed": seed, "rows": rows}
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

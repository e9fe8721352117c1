"""Turn finished trainings into the models inside the package, with their cards.

Run: EQUICAPS_DATA=... python experiments/ship_weights.py [digits] [digits-upright] [digits-plain]. Measures each on all
10,000 test digits, turned by seeded angles, and under quarter turns, takes the zero of each class from upright training
digits, and writes src/equicaps/pretrained/weights/NAME.safetensors.
"""

import sys
from pathlib import Path

import torch

from equicaps.data import load_mnist
from equicaps.images import UPRIGHT, rotate
from equicaps.inference.model_files import load_model, save_model
from equicaps.metrics import accuracy, class_zeros, evaluate, exactness
from equicaps.models import CapsOutput
from reproduction.trainings import RUNS_FOLDER

ROOT = Path(__file__).resolve().parents[1]
TASKS = {
    "digits": ("rotated-steerable", "tells handwritten digits and how they are turned; trained on digits at any angle"),
    "digits-upright": ("upright-steerable", "tells handwritten digits at any angle; trained on upright digits only"),
    "digits-plain": (
        "upright-plain_cnn",
        "tells upright handwritten digits; an ordinary CNN for comparison: turned, its answers fall apart",
    ),
}
NO_POSES = "This network has no poses: its angles are always 0, and nothing is exact under turns."
LICENCE = "weights: MIT, as equicaps; trained on MNIST (LeCun, Cortes, Burges; CC BY-SA 3.0 as usually given)"


def main(names: list[str]) -> int:
    torch.set_num_threads(1)
    train, test = load_mnist("train").take(slice(None, 10_000)), load_mnist("test")
    for name in names or list(TASKS):
        run, task = TASKS[name]
        trained = load_model(ROOT / "results" / RUNS_FOLDER / f"{run}.safetensors")
        network = trained.network
        zeros = class_zeros(network, UPRIGHT(train.images).images, train.labels, classes=10)
        turned = evaluate(network, test.images, test.labels, size=32)
        with torch.no_grad():
            upright = [network(UPRIGHT(images).images) for images in test.images.split(250)]
        together = CapsOutput(*(torch.cat(part) for part in zip(*(output[:3] for output in upright), strict=True)))
        exact = exactness(network, rotate(test.images, torch.zeros(len(test)), 32))
        poses = network.body.config.poses
        pose_figures = {
            "agreement_accuracy_any_angle": turned.accuracy.activations,
            "pose_error_mean": turned.pose_error.mean,
            "pose_error_median": turned.pose_error.median,
        }
        exact_poses = {"largest_change_of_agreements": exact.activations, "largest_change_of_poses": exact.poses}
        figures = {
            "accuracy_upright": accuracy(together, test.labels).scores,
            "accuracy_any_angle": turned.accuracy.scores,
            **(pose_figures if poses else {}),
            "predictions_changed_by_quarter_turns": exact.predictions_changed,
            "largest_change_of_scores": exact.scores,
            **(exact_poses if poses else {}),
            "test_images": len(test),
        }
        card = {"name": name, "task": task, "licence": LICENCE, "zeros": zeros, "frame": 28,
                "background": train.background,
                "figures": figures, "command": f"python experiments/ship_weights.py {name}"}  # fmt: skip
        card |= {} if poses else {"convention": NO_POSES}
        save_model(
            ROOT / "src" / "equicaps" / "pretrained" / "weights" / f"{name}.safetensors",
            network,
            {**{key: trained.content[key] for key in ("config", "classes", "data", "cpu_seconds", "images_seen")
                if key in trained.content}, **card},
        )  # fmt: skip
        print(name, *(f"{key} {value:.6g}" for key, value in figures.items()), sep="\n  ")
        print("  zero angles", [round(zero, 1) for zero in zeros])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

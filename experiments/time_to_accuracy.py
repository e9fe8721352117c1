"""How good is a network after so many CPU-minutes? Trains from scratch on MNIST turned on the fly, one thread.

Run: EQUICAPS_DATA=... python experiments/time_to_accuracy.py [--preset steerable] [--minutes 16]

Two turned views of 32 digits make a batch of 64. The number of steps is fixed before the start: the CPU time of a
training step is measured on 20 steps, and one-cycle training is planned to fill the budget. Prints the curve
images -> accuracy, pose error on the first 2,000 turned test digits, and at the end on all 10,000; CPU-minutes count
training and augmentation, not evaluation. Writes results/time_to_accuracy_PRESET.json and the weights.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from equicaps.data import load_mnist, rotate
from equicaps.losses import Objective
from equicaps.metrics import Evaluation, evaluate, exactness
from equicaps.models import PRESETS, GroupCapsNet
from equicaps.training.record import provenance

SIZE, DIGITS = 32, 32


class Trainer:
    def __init__(self, preset: str, objective: Objective, rate: float, decay: float) -> None:
        self.network = GroupCapsNet.from_preset(preset)
        self.objective = objective
        self.rate = rate
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=decay, betas=(0.9, 0.99))
        digits = load_mnist("train")
        self.images, self.labels = digits.images, digits.labels
        self.order, self.position = torch.randperm(len(self.images)), 0

    def step(self, progress: float) -> float:
        if self.position + DIGITS > len(self.order):
            self.order, self.position = torch.randperm(len(self.images)), 0
        chosen = self.order[self.position : self.position + DIGITS].repeat(2)
        self.position += DIGITS
        degrees = torch.rand(len(chosen)) * 360
        views, labels = rotate(self.images[chosen], degrees, SIZE), self.labels[chosen]
        loss = self.objective(self.network(views), views, labels, degrees, progress)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def row(images: int, minutes: float, result: Evaluation, digits: int) -> dict[str, float]:
    figures = {
        "images": images, "cpu_minutes": minutes, "test_digits": digits,
        "accuracy": result.accuracy.scores, "accuracy_of_agreements": result.accuracy.activations,
        "pose_error_mean": result.pose_error.mean, "pose_error_median": result.pose_error.median,
    }  # fmt: skip
    print(
        f"{images:>8,} images  {minutes:5.2f} CPU-min  accuracy {result.accuracy.scores:6.2f} %  "
        f"(agreements {result.accuracy.activations:6.2f} %)  pose error {result.pose_error.mean:5.2f} / "
        f"{result.pose_error.median:4.2f} degrees  on {digits:,} digits",
        flush=True,
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="steerable")
    parser.add_argument("--minutes", type=float, default=16.0, help="CPU-minutes of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=6e-3, help="largest learning rate")
    parser.add_argument("--decay", type=float, default=1e-3)
    parser.add_argument("--consistency", type=float, default=0.3)
    parser.add_argument("--spread", type=float, default=0.3, help="weight of the agreements' spread loss")
    parser.add_argument("--points", type=int, default=10, help="of the curve")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    try:
        test = load_mnist("test")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    objective = Objective(consistency=arguments.consistency, spread=arguments.spread)
    trainer = Trainer(arguments.preset, objective, arguments.rate, arguments.decay)

    start = time.process_time()
    for _ in range(20):  # these steps count, too
        trainer.step(0.0)
    per_step = (time.process_time() - start) / 20
    steps = max(int(arguments.minutes * 60 * 0.985 / per_step) - 20, arguments.points)
    schedule = torch.optim.lr_scheduler.OneCycleLR(trainer.optimizer, arguments.rate, total_steps=steps, pct_start=0.2)
    print(f"{arguments.preset}: {sum(p.numel() for p in trainer.network.parameters()):,} parameters, {steps:,} steps")
    curve, evaluation = [], 0.0
    for step in range(1, steps + 1):
        trainer.step(step / steps)
        if step < steps:
            schedule.step()
        last = step == steps
        if last or step % (steps // arguments.points) == 0:
            minutes, before = (time.process_time() - start - evaluation) / 60, time.process_time()
            digits = 10_000 if last else 2_000
            trainer.network.eval()
            result = evaluate(trainer.network, test.images[:digits], test.labels[:digits], size=SIZE)
            trainer.network.train()
            curve.append(row((step + 20) * 2 * DIGITS, minutes, result, digits))
            evaluation += time.process_time() - before
    finish(trainer.network.eval(), test.images, curve, arguments)


def finish(
    network: nn.Module, images: torch.Tensor, curve: list[dict[str, float]], arguments: argparse.Namespace
) -> None:
    upright = rotate(images, torch.zeros(len(images)), SIZE)
    exact = exactness(network, upright)
    print(f"quarter turns of {exact.images:,} upright digits: {exact.predictions_changed} predictions changed, "
          f"scores {exact.scores:.1e}, agreements {exact.activations:.1e}, poses {exact.poses:.1e}")  # fmt: skip
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = f"time_to_accuracy_{arguments.preset}"
    record = {
        "command": " ".join(["python", "experiments/time_to_accuracy.py", *sys.argv[1:]]),
        "settings": {name: str(value) for name, value in vars(arguments).items()},
        "data": "MNIST, turned on the fly",
        **provenance(),
        "curve": curve,
        "exactness": exact._asdict(),
    }
    (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    save_file(network.state_dict(), arguments.out / f"{name}.safetensors", {"preset": arguments.preset})


if __name__ == "__main__":
    main()

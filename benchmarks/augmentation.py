"""CPU time of each augmentation for a batch of 64 digits, and its share of a training step of `steerable`.

Run: python benchmarks/augmentation.py. One thread, float32, embedded digits. The training step (32x32 images; forward,
loss, backward, optimiser) is measured in the same run, so that the share does not depend on the speed of the machine.
Figures are medians of CPU time, not wall time.
"""

import statistics
import time
from collections.abc import Callable

import torch

from equicaps.data import embedded_digits
from equicaps.data.regenerated import AFFINE
from equicaps.images import ROTATED, TRANSLATED, UPRIGHT
from equicaps.losses import Objective
from equicaps.models import GroupCapsNet

BATCH = 64


def milliseconds(function: Callable[[], object], repetitions: int) -> float:
    """The median CPU time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1000


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = embedded_digits("train").take(slice(BATCH))
    network, objective = GroupCapsNet.from_preset("steerable"), Objective(consistency=0.3)
    optimizer = torch.optim.AdamW(network.parameters())
    order = torch.arange(BATCH // 2).repeat(2)  # two views of each digit
    views, degrees = ROTATED(digits.images[order])

    def step() -> None:
        loss = objective(network(views), views, digits.labels[order], degrees)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    whole = milliseconds(step, 9)
    print(f"{'steerable training step':<24} {whole:8.2f} ms")
    rows = {
        "upright, 32x32": UPRIGHT,
        "rotated, 32x32": ROTATED,
        "translated, 40x40": TRANSLATED,
        "affine, 40x40": AFFINE,
    }
    for name, augmentation in rows.items():
        cost = milliseconds(lambda augmentation=augmentation: augmentation(digits.images), 200)
        print(f"{name:<24} {cost:8.2f} ms {cost / whole:7.1%} of the step")


if __name__ == "__main__":
    main()

"""Training and inference speed of all presets and two other networks on one thread, in images per CPU-second.

Run: python benchmarks/train_step.py [--quick] [--json results/train_step.json]. The columns are the number of
parameters, the multiply-adds per image, the images per CPU-second of a training step (loss, backward, AdamW) and of
inference, the peak memory of a training step, and the fraction of the core's peak for matrix products that the training
step reaches. The fraction takes a training step as three times the multiply-adds of the forward pass, counts matrix
products and convolutions with torch's FlopCounterMode (so neither routing nor most of the votes of `paper`), and
divides by the largest peak of the run, which is measured before and after every row. The other networks are an e2cnn C8
network, if e2cnn is installed (`pip install e2cnn`), and a plain CNN with about as many multiply-adds as `steerable`.
The images are rotated digits from the package or, with --noise, dense noise, on which the paper's layers are slower
because they skip empty windows.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.losses import Objective
from equicaps.models import PRESETS, GroupCapsNet
from equicaps.training.log import provenance

SECONDS = 3.0


class PlainCNN(nn.Module):
    """Four convolutions with batch norm: what one would otherwise train with rotation augmentation."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 48, 5, padding=2), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 5, padding=2), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(96, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(128, 10),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def e2cnn_c8() -> nn.Module:
    """A network of four layers of regular C8 features."""
    from e2cnn import gspaces
    from e2cnn import nn as enn

    space = gspaces.Rot2dOnR2(N=8)
    types = [enn.FieldType(space, [space.trivial_repr])]
    types += [enn.FieldType(space, width * [space.regular_repr]) for width in (8, 16, 24, 24)]
    layers: list[nn.Module] = []
    for k, (before, after) in enumerate(pairwise(types)):
        layers += [
            enn.R2Conv(before, after, kernel_size=5, padding=2, bias=False),
            enn.InnerBatchNorm(after),
            enn.ReLU(after),
        ]
        if k < 3:
            layers.append(enn.PointwiseAvgPoolAntialiased(after, sigma=0.66, stride=2))
    pool = enn.GroupPooling(types[-1])
    body = enn.SequentialModule(*layers, pool)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = body, head

        def forward(self, images: Tensor) -> Tensor:
            return self.head(self.body(enn.GeometricTensor(images, types[0])).tensor)

    return Network()


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    **{name: (lambda name=name: GroupCapsNet.from_preset(name)) for name in PRESETS},
    "peer: plain CNN": PlainCNN,
    "peer: e2cnn C8": e2cnn_c8,
}


GROWING = ("steerable", "paper", "peer: plain CNN", "peer: e2cnn C8")
"""The networks that are also measured on larger images and with other batch sizes."""


def peak_gflops(seconds: float) -> float:
    """The speed of a large matrix product."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    rate = speed(lambda: a @ b, 1, min(seconds, 0.5))
    return 2 * 1024**3 * rate / 1e9


def speed(step: Callable[[], object], images: int, seconds: float = SECONDS) -> float:
    """Images per CPU-second, after two steps to warm up."""
    for _ in range(2):
        step()
    start, steps = time.process_time(), 0
    while time.process_time() - start < seconds:
        step()
        steps += 1
    return steps * images / (time.process_time() - start)


def resident(field: str) -> float:
    """The resident set in MiB: VmRSS is the current one, VmHWM the largest since the last reset. Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def digits(batch: int, size: int) -> Tensor:
    """Rotated digits, tiled to the size."""
    rotated = rotate(embedded_digits("test").images[:batch], torch.rand(batch) * 360, 32)
    return rotated.repeat(1, 1, size // 32, size // 32)


def measure(name: str, batch: int, size: int, kind: str, seconds: float) -> dict[str, float | str | int]:
    """One row of the table, without the fraction of the peak."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    peak = peak_gflops(seconds)
    network = NETWORKS[name]()
    images = digits(batch, size) if kind == "digits" else torch.rand(batch, 1, size, size)
    labels = torch.randint(10, (batch // 2,)).repeat(2)
    objective, degrees = Objective(), torch.rand(batch) * 360
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def train() -> None:
        output = network(images)
        is_ours = isinstance(network, GroupCapsNet)
        loss = objective(output, images, labels, degrees) if is_ours else F.cross_entropy(output, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    with FlopCounterMode(display=False) as counter:
        network(images)
    operations = counter.get_total_flops() / batch
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    train()
    memory = resident("VmHWM") - before
    training = speed(train, batch, seconds)
    network.eval()
    with torch.no_grad():
        inference = speed(lambda: network(images), batch, seconds)
    peak = max(peak, peak_gflops(seconds))
    return {
        "network": name, "images": kind, "batch": batch, "size": size,
        "parameters": sum(p.numel() for p in network.parameters()),
        "multiply_adds": operations / 2, "training": training, "inference": inference, "peak_mib": memory,
        "core_gflops": peak,
    }  # fmt: skip


def show(rows: list[dict[str, float]], peak: float) -> None:
    """Print the table."""
    heads = ("batch", "size", "parameters", "mult-adds", "train/s", "infer/s", "memory", "of peak")
    widths = (5, 4, 10, 10, 8, 8, 9, 7)
    print(" " * 20, *(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    for row in rows:
        cells = (
            f"{row['batch']}", f"{row['size']}", f"{row['parameters']:,}", f"{row['multiply_adds'] / 1e6:.1f}M",
            f"{row['training']:.0f}", f"{row['inference']:.0f}", f"{row['peak_mib']:.0f} MiB",
            f"{row['fraction_of_peak']:.0%}",
        )  # fmt: skip
        print(f"{row['network']:<20}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    print(f"peak of the core for matrix products (1024x1024, float32): {peak:.0f} GFLOPS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="measure only 32x32 images in batches of 64")
    parser.add_argument("--only", choices=NETWORKS, help="measure only this network")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU-seconds to spend on each speed")
    parser.add_argument("--noise", action="store_true", help="use dense noise instead of digits")
    parser.add_argument("--row", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        name, batch, size, kind, seconds = arguments.row
        print(json.dumps(measure(name, int(batch), int(size), kind, float(seconds))))
        return
    cases = [(name, 64, 32) for name in NETWORKS if arguments.only in (None, name)]
    if not arguments.quick:
        growing = [name for name in GROWING if arguments.only in (None, name)]
        cases += [(name, 64, size) for name in growing for size in (64, 128)]
        cases += [(name, batch, 32) for name in growing for batch in (16, 32, 128, 256)]
    kind = "noise" if arguments.noise else "digits"
    rows = []
    for name, batch, size in cases:
        print(f"measuring {name}, batch {batch}, {size}x{size}", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--row", name, str(batch), str(size), kind, str(arguments.seconds)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            print(f"{name} was not measured: {result.stderr.strip().splitlines()[-1]}")
            continue
        rows.append(json.loads(result.stdout))
    peak = max(row["core_gflops"] for row in rows)
    for row in rows:
        row["fraction_of_peak"] = 6 * row["multiply_adds"] * row["training"] / 1e9 / peak
    show(rows, peak)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({**provenance(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

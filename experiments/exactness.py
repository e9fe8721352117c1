"""What changes when images are turned by 90, 180 and 270 degrees? DESIGN.md 7.1 for a checkpoint.

Run: EQUICAPS_DATA=... python experiments/exactness.py MODEL (a file of a training, or a bare state dict whose metadata
name the preset). All 10,000 MNIST test digits, upright and turned by seeded random angles; also the capsules of every
layer. Exits with 1 if a prediction changes or a figure of the outputs is not below 1e-4.
"""

import argparse
import sys
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from equicaps.data import load_mnist, rotate
from equicaps.metrics import exactness, layer_exactness
from equicaps.models import GroupCapsNet
from equicaps.training import load_model

ALLOWED = 1e-4


def read(path: Path) -> GroupCapsNet:
    with safe_open(path, "pt") as file:
        preset = (file.metadata() or {}).get("preset")
        if preset is None:
            return load_model(path).network
        network = GroupCapsNet.from_preset(preset)
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - not a dict
    return network.eval()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--digits", type=int, default=10_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    try:
        network = read(arguments.checkpoint)
        images = load_mnist("test").images[: arguments.digits]
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        parser.error(f"cannot read the checkpoint {arguments.checkpoint} or the data: {error}")
    generator = torch.Generator().manual_seed(0)
    angles = {"upright": torch.zeros(len(images)), "turned": torch.rand(len(images), generator=generator) * 360}
    holds = True
    for name, degrees in angles.items():
        views = rotate(images, degrees, network.image_size)
        found = exactness(network, views)
        holds &= found.predictions_changed == 0 and all(figure < ALLOWED for figure in found[2:])
        figures = f"scores {found.scores:.1e}, agreements {found.activations:.1e}, poses {found.poses:.1e}"
        changed = f"{found.predictions_changed} predictions changed"
        print(f"{found.images:,} {name} digits, 90/180/270 degrees: {changed}, {figures}", flush=True)
        for number, layer in enumerate(layer_exactness(network.capsules, views[:1000]), 1):
            print(f"  layer {number}, 1,000 of them: activations {layer.activations:.1e}, poses {layer.poses:.1e}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

"""The paper's network beside a plain CNN, in one process and in turns, so that a busy machine slows both alike.

Run: python benchmarks/paper_network.py [--json results/paper_speed.json]. The figures are images per CPU-second of one
thread, in batches of 64, and their ratios: of a training step (loss, backward, AdamW) and of inference, on rotated
digits from the package and on dense noise, where no window is silent and none can be skipped. The plain CNN is that of
train_step.py, with 42 million multiply-adds.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from train_step import PlainCNN, digits, speed

from equicaps.losses import Objective
from equicaps.models import GroupCapsNet
from equicaps.training.log import provenance

BATCH, ROUNDS = 64, 5
PRESETS = ("paper", "capsules_only")


def training_step(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    """One step of a network, with the paper's losses if it is ours."""
    output = network(images)
    objective = Objective(spread=1.0, consistency=0.0)
    ours = isinstance(network, GroupCapsNet)
    loss = objective(output, images, labels, torch.zeros(len(labels))) if ours else F.cross_entropy(output, labels)
    network.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    network.optimizer.step()


@torch.no_grad()
def inference(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    """One forward pass."""
    network(images)


def measure(
    networks: dict[str, nn.Module], images: Tensor, seconds: float, rounds: int = ROUNDS
) -> dict[str, dict[str, float]]:
    """The speed of every network, and its median ratio to the plain CNN."""
    labels = torch.randint(10, (BATCH,))
    found: dict[str, dict[str, float]] = {name: {} for name in networks}
    for kind, step in (("training", training_step), ("inference", inference)):
        turns = []
        for _ in range(rounds):
            turn = {}
            for name, network in networks.items():
                network.train(kind == "training")
                turn[name] = speed(lambda network=network, step=step: step(network, images, labels), BATCH, seconds)
            turns.append(turn)
        for name in networks:
            found[name][kind] = statistics.median(turn[name] for turn in turns)
            found[name][f"{kind}_ratio"] = statistics.median(turn[name] / turn["plain CNN"] for turn in turns)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--seconds", type=float, default=1.5, help="CPU-seconds of each network in each round")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each network has its turn")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kinds = {"rotated digits": digits(BATCH, 32), "noise": torch.rand(BATCH, 1, 32, 32)}
    networks: dict[str, nn.Module] = {"plain CNN": PlainCNN()}
    for preset in PRESETS:
        networks[preset] = GroupCapsNet.from_preset(preset)
        networks[preset].calibrate(kinds["rotated digits"])
    for network in networks.values():
        network.optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    rows = {kind: measure(networks, images, arguments.seconds, arguments.rounds) for kind, images in kinds.items()}
    print(f"{'':<16}{'':<16}{'train/s':>9}{'ratio':>7}{'infer/s':>9}{'ratio':>7}")
    for kind, row in rows.items():
        for name, found in row.items():
            cells = (found["training"], found["training_ratio"], found["inference"], found["inference_ratio"])
            print(f"{kind:<16}{name:<16}{cells[0]:>9.0f}{cells[1]:>7.2f}{cells[2]:>9.0f}{cells[3]:>7.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({**provenance(), "batch": BATCH, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

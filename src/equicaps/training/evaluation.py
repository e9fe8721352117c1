"""What a network is measured on during and after training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equicaps.data import Dataset
from equicaps.metrics import accuracy, evaluate
from equicaps.models.output import CapsOutput
from equicaps.training.config import Number

Evaluation = Callable[[nn.Module, int | None], Mapping[str, Number]]
"""A network in eval mode, and how many images to look at (from all over the set; None: all), to named figures."""


@dataclass(frozen=True)
class AnyAngle:
    """The paper's protocol: every image turned by a seeded angle; accuracies and pose error."""

    data: Dataset
    size: int = 32
    seed: int = 0
    batch: int = 250

    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Number]:
        """Accuracies in percent, pose errors in degrees."""
        data = self.data.some(limit)
        result = evaluate(on_cpu(network), data.images, data.labels, size=self.size, seed=self.seed, batch=self.batch)
        return {
            "accuracy": result.accuracy.scores,
            "agreement_accuracy": result.accuracy.activations,
            "pose_error_mean": result.pose_error.mean,
            "pose_error_median": result.pose_error.median,
            "pose_undefined": result.pose_error.undefined,
            "images": len(data),
        }


@dataclass(frozen=True)
class AsTheyAre:
    """A fixed test set: upright digits, MNIST-rot, affNIST, ...; accuracies."""

    data: Dataset
    batch: int = 250

    @torch.no_grad()
    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Number]:
        """Accuracies in percent."""
        data = self.data.some(limit)
        answer = on_cpu(network)
        outputs = [answer(part) for part in data.images.split(self.batch)]
        parts = zip(*(output[:3] for output in outputs), strict=True)
        joined = CapsOutput(*(torch.cat(part) for part in parts))
        found = accuracy(joined, data.labels)
        return {"accuracy": found.scores, "agreement_accuracy": found.activations, "images": len(data)}


def on_cpu(network: nn.Module) -> Callable[[Tensor], CapsOutput]:
    """The network on its own device, for images and answers on the CPU."""
    parameter = next(network.parameters())

    def answer(images: Tensor) -> CapsOutput:
        output: CapsOutput = network(images.to(parameter.device, parameter.dtype))
        return output.map(lambda value: value.to("cpu", images.dtype))

    return answer

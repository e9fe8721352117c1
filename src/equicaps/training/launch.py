"""The whole training, on as many processes as asked for."""

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from equicaps.data import Dataset
from equicaps.training.config import TrainConfig
from equicaps.training.distributed import World, open_world
from equicaps.training.evaluation import Evaluation
from equicaps.training.loop import Progress, Result, fit
from equicaps.training.sampler import Augment


def train(
    config: TrainConfig,
    data: Dataset,
    augmentation: Augment,
    *,
    folder: Path | str,
    network: nn.Module | None = None,
    evaluation: Evaluation | None = None,
    resume: bool = False,
    watch: Callable[[Progress], None] | None = None,
    tensorboard: bool = False,
) -> Result:
    """:func:`fit` with the network, processes and threads that ``config`` describes, or those of ``torchrun``.

    With several processes the calling module must be importable without starting the training (``if __name__ ==
    "__main__"``), and data, augmentation and a given network must be picklable.

    Args:
        config: what to do.
        data: the training set.
        augmentation: of its images.
        folder: for the results.
        network: instead of the one that ``config.model`` describes.
        evaluation: see :func:`fit`.
        resume: see :func:`fit`.
        watch: see :func:`fit`.
        tensorboard: see :func:`fit`.
    """
    if network is None:
        network = config.network()
    threads, hardware = torch.get_num_threads(), config.hardware
    torch.set_num_threads(hardware.threads)
    try:
        with open_world(hardware.processes, hardware.device, _help, (config, network, data, augmentation)) as world:
            return fit(
                config, network, data, augmentation, folder=folder, evaluation=evaluation, resume=resume, watch=watch,
                tensorboard=tensorboard, world=world,
            )  # fmt: skip
    finally:
        torch.set_num_threads(threads)


def _help(world: World, config: TrainConfig, network: nn.Module, data: Dataset, augmentation: Augment) -> None:
    # Tensors that travel to another process share their memory with the sender: weights must not.
    fit(config, copy.deepcopy(network), data, augmentation, folder="", world=world)

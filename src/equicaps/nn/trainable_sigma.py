"""The σ of Algorithm 1 with trained parameters."""

import dataclasses

import torch
from torch import nn

from equicaps.functional import Sigma


class TrainableSigma(nn.Module):
    """The fields of a σ as trained parameters; ``value`` is the σ with their current values.

    Args:
        start: σ with the initial values.
        device: where the parameters live.
        dtype: the precision of the parameters.
    """

    def __init__(
        self, start: Sigma, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.start = start
        for name in dataclasses.asdict(start):
            self.register_parameter(name, nn.Parameter(torch.empty((), device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Return to the initial values."""
        for name, value in dataclasses.asdict(self.start).items():
            nn.init.constant_(self.get_parameter(name), float(value))

    @property
    def value(self) -> Sigma:
        """σ with the current parameters."""
        return dataclasses.replace(self.start, **dict(self.named_parameters()))

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return type(self.start).__name__

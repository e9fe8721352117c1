"""The σ of Algorithm 1 with trained parameters."""

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor, nn

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

    @torch.no_grad()
    def calibrate(self, activations: Float[Tensor, " defined"], spread: float) -> bool:
        r"""Set the parameters of a sigmoid σ such that these activations, which it has made, spread around ½.

        .. math:: α = s / \mathrm{std}(\bar δ), \qquad β = α\, \mathrm{mean}(\bar δ)

        over the mean distances :math:`\bar δ` behind the activations of poses that are defined. Other σ, and fewer than
        two activations that do not saturate σ, change nothing.

        Args:
            activations: of defined poses.
            spread: s, the standard deviation of the argument of σ.

        Returns:
            Whether σ has changed.
        """
        if self.value.closed_form != "sigmoid":
            return False
        alpha, beta = (self.get_parameter(name) for name in ("alpha", "beta"))
        distances = (beta.item() - torch.logit(activations.cpu().double())) / alpha.item()
        distances = distances[distances.isfinite()]
        deviation = distances.std() if len(distances) > 1 else distances.new_zeros(())
        if not 0 < deviation < torch.inf:
            return False
        alpha.fill_(spread / deviation.item())
        beta.fill_(spread / deviation.item() * distances.mean().item())
        return True

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return type(self.start).__name__

"""Batch statistics over all processes that train one network."""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def processes() -> int:
    """The number of processes that train together: the size of torch's process group, or 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class BatchNorm2d(nn.BatchNorm2d):
    """``torch.nn.BatchNorm2d`` over the active positions, with the statistics of all processes' batches together.

    Two processes with half a batch each therefore train the same network as one process with the whole batch. Without a
    process group and without ``active``, and in eval mode, it does exactly what torch's does. Unlike
    ``torch.nn.SyncBatchNorm`` it also runs on CPUs.
    """

    def forward(
        self,
        input: Float[Tensor, "batch channels height width"],
        active: Bool[Tensor, "batch height width"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        """Normalise with the statistics of all processes, or in eval mode with the running ones.

        What is not ``active`` is normalised, too, but does not count in the statistics, and must not be used: no
        gradient may come from there.
        """
        if not self.training or (active is None and processes() == 1):
            return super().forward(input)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        if active is None:
            active = input.new_ones((), dtype=torch.bool).expand(input.shape[0], *input.shape[2:])
        output, mean, variance, count = _Normalise.apply(input, active, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call] # torch
        with torch.no_grad():
            self.num_batches_tracked += 1
            momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            weight = momentum * (count > 1).to(mean)  # a batch without an active position says nothing
            self.running_mean.lerp_(mean, weight)
            self.running_var.lerp_(variance * (count / (count - 1).clamp_min(1)), weight)
        return output


class _Normalise(torch.autograd.Function):
    r""":math:`\gamma (x - \mu)/\sqrt{v + \varepsilon} + \beta` with mean and variance over all processes.

    The derivative is that of normalising with constants, minus its projections onto 1 and :math:`\hat x`, which are
    sums over the active positions of all processes.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, active: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        active = active.unsqueeze(1)
        own = active.sum().to(x)
        mean = _mean(x, active, own)
        variance = _mean((x - mean.view(-1, 1, 1)).square(), active, own)
        count = own
        if processes() > 1:
            # Variance about the common mean, without the cancellation of E[x²] - E[x]².
            moments = torch.stack((own.expand_as(mean), mean, variance))
            gathered = [torch.empty_like(moments) for _ in range(processes())]
            dist.all_gather(gathered, moments)
            counts, means, variances = torch.stack(gathered).unbind(1)
            count = counts.sum(0)[0]
            shares = counts / count.clamp_min(1)
            mean = (shares * means).sum(0)
            variance = (shares * (variances + (means - mean).square())).sum(0)
        ctx.save_for_backward(x, active, weight, mean, variance, count)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, variance, count)
        return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps), mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, None, Tensor, Tensor, None]:
        x, active, weight, mean, variance, count = ctx.saved_tensors
        by_x, by_weight, by_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        projections = torch.stack((by_bias, by_weight))
        if processes() > 1:
            dist.all_reduce(projections)
        along_one, along_x = projections / count.clamp_min(1)
        inverse = (variance + ctx.eps).rsqrt()
        slope = -weight * inverse * along_x * inverse
        shift = -weight * inverse * along_one - slope * mean
        by_statistics = torch.addcmul(shift.view(-1, 1, 1), x, slope.view(-1, 1, 1))
        return by_x.addcmul_(active, by_statistics), None, by_weight, by_bias, None


def _mean(values: Float[Tensor, "b c h w"], active: Bool[Tensor, "b 1 h w"], count: Tensor) -> Float[Tensor, " c"]:
    return torch.where(active, values, 0).sum((0, 2, 3)) / count.clamp_min(1)

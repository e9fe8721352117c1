"""Batch statistics over all processes that train one network."""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def processes() -> int:
    """The number of processes that train together: the size of torch's process group, or 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class BatchNorm2d(nn.BatchNorm2d):
    """``torch.nn.BatchNorm2d`` whose statistics in training are those of all processes' batches together.

    Two processes with half a batch each therefore train the same network as one process with the whole batch. Without a
    process group, and in eval mode, it does exactly what torch's does. Unlike ``torch.nn.SyncBatchNorm`` it also runs
    on CPUs. Every process must hold a batch of the same size.
    """

    def forward(
        self, input: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Normalise with the statistics of all processes, or in eval mode with the running ones."""
        if not self.training or processes() == 1:
            return super().forward(input)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        output, mean, variance = _Normalise.apply(input, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call] # torch
        with torch.no_grad():
            self.num_batches_tracked += 1
            momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            count = input.numel() // input.shape[1] * processes()
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance * (count / (count - 1)), momentum)
        return output


class _Normalise(torch.autograd.Function):
    r""":math:`\gamma (x - \mu)/\sqrt{v + \varepsilon} + \beta` with mean and variance over all processes.

    The derivative is that of normalising with constants, minus its projections onto 1 and :math:`\hat x`, which are
    sums over all processes.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        # Variance about the common mean, without the cancellation of E[x²] - E[x]².
        moments = torch.stack((mean, variance))
        gathered = [torch.empty_like(moments) for _ in range(processes())]
        dist.all_gather(gathered, moments)
        means, variances = torch.stack(gathered).unbind(1)
        mean = means.mean(0)
        variance = (variances + (means - mean).square()).mean(0)
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, variance)
        return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps), mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, mean, variance = ctx.saved_tensors
        by_x, by_weight, by_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        projections = torch.stack((by_bias, by_weight))
        dist.all_reduce(projections)
        along_one, along_x = projections / (processes() * x.numel() / x.shape[1])
        inverse = (variance + ctx.eps).rsqrt()
        slope = -weight * inverse * along_x * inverse
        shift = -weight * inverse * along_one - slope * mean
        return by_x.addcmul_(x, slope.view(-1, 1, 1)).add_(shift.view(-1, 1, 1)), by_weight, by_bias, None

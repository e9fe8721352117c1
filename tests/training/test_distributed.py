"""Several processes, started by torchrun, train the same network as one does with the same batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps.errors import UsageError
from equicaps.nn import BatchNorm2d
from equicaps.training import train
from equicaps.training.distributed import World
from equicaps.training.trainer import Trainer

STEPS = 20
TESTS = Path(__file__).parents[1]


def curve(folder, net):
    """The losses and accuracies of every step, and the weights and statistics at the end."""
    seen = []
    settings = config(STEPS, batch=32)
    result = train(settings, digits(), ROTATED, folder=folder, network=net, watch=lambda p: seen.append(p.figures))
    losses, accuracies = ([getattr(row, name) for row in seen] for name in ("loss", "accuracy"))
    return {"losses": torch.tensor(losses), "accuracies": torch.tensor(accuracies), **result.network.state_dict()}


def small_network():
    return network(dtype=torch.float64)


def network_with_statistics_of_parts():
    """Torch's own batch norm, of which every process sees only its own part of the batch."""
    net = small_network()
    for layer in (*net.body.layers, net.body.classes):
        layer.norm = torch.nn.BatchNorm2d(layer.out_capsules).double()
    return net


def normalise(rank=0, size=1, *, everywhere=True):
    """Outputs, gradients and running statistics of one process; if not everywhere, its own share is active."""
    generator = torch.Generator().manual_seed(2)
    x, weight = (torch.randn(8, 3, 4, 4, generator=generator, dtype=torch.float64) + 30 for _ in range(2))
    norm = BatchNorm2d(3).double()
    x = x.chunk(size)[rank].clone().requires_grad_()
    active = None if everywhere else (torch.rand(8, 4, 4, generator=generator) < torch.arange(8)[:, None, None] / 8)
    output = norm(x) if active is None else norm(x, active.chunk(size)[rank])
    weight = weight if active is None else weight * active.unsqueeze(1)
    (output * weight.chunk(size)[rank]).sum().backward()
    return output.detach(), x.grad, norm.running_mean, norm.running_var, norm.num_batches_tracked


PROGRAM = """
import sys
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, {place!r})
from test_distributed import curve, network_with_statistics_of_parts, normalise, small_network

folder = Path(sys.argv[1])
curves = [curve(folder / "1", small_network()), curve(folder / "2", network_with_statistics_of_parts())]
rank = dist.get_rank()
size = dist.get_world_size()
normalised = [normalise(rank, size, everywhere=everywhere) for everywhere in (True, False)]
torch.save([*curves, *normalised], folder / f"{{rank}}.pt")
"""


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What each of two processes found, in a plain script that says nothing about processes."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "script.py").write_text(PROGRAM.format(place=str(Path(__file__).parent)))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    places = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*torchrun, "--local-addr=127.0.0.1", f"--log-dir={os.devnull}", folder / "script.py", folder],
        env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return curve(tmp_path_factory.mktemp("alone"), small_network())


def test_two_processes_have_the_loss_curve_of_one_with_the_same_batch(alone, together):
    """Twenty steps in float64: losses, accuracies and every weight and statistic at the end."""
    found = together[0][0]
    assert len(alone["losses"]) == STEPS
    torch.testing.assert_close(found.pop("losses"), alone["losses"], rtol=1e-9, atol=1e-9)
    for name, value in found.items():
        torch.testing.assert_close(value, alone[name], rtol=1e-6, atol=1e-8)


def test_only_the_first_process_reports_and_both_have_the_same_weights(together):
    first, second = (found[0] for found in together)
    assert len(second["losses"]) == 0
    assert all(torch.equal(first[name], value) for name, value in second.items() if name.startswith("body"))


def test_the_loss_changes_on_the_way(alone):
    """Guard: equal curves are not constant curves. (The margin grows, so the loss need not be lower at the end.)"""
    assert max(alone["losses"]) - min(alone["losses"]) > 0.1


def test_that_comparison_notices_statistics_of_half_a_batch(alone, together):
    """Control: torch's own batch norm."""
    with pytest.raises(AssertionError):
        torch.testing.assert_close(together[0][1]["losses"], alone["losses"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("everywhere", [True, False])
def test_batch_norm_over_two_processes_is_that_over_the_whole_batch(together, everywhere):
    """Outputs, gradients and running statistics; also where the first process has fewer active positions."""
    *parts, mean, variance, count = normalise(everywhere=everywhere)
    of_processes = [found[2 if everywhere else 3] for found in together]
    (*first, _, _, _), (*second, _, _, _) = of_processes
    for one, two, whole in zip(first, second, parts, strict=True):
        torch.testing.assert_close(torch.cat([one, two]), whole, rtol=1e-9, atol=1e-9)
    for found in of_processes:
        torch.testing.assert_close(found[2:], (mean, variance, count), rtol=1e-9, atol=1e-9)


def test_a_batch_that_cannot_be_shared_is_refused():
    with pytest.raises(UsageError, match="multiple of 6"):
        Trainer(config(2), network(), digits(), ROTATED, World(torch.device("cpu"), 0, 3))

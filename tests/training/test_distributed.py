"""Two processes train the same network as one with the doubled batch."""

import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from small_training import TURNED, config, digits, network

from equicaps.errors import TrainingError
from equicaps.nn import BatchNorm2d
from equicaps.training import Hardware, World, fit, train
from equicaps.training import distributed as module
from equicaps.training.distributed import open_world

STEPS = 20


def losses(folder, processes, net=None):
    """Loss and accuracy of every step, and the trained network."""
    seen = []
    settings = config(STEPS, batch=32, hardware=Hardware(processes=processes, device="cpu"))
    net = net or network(dtype=torch.float64)
    result = train(settings, digits(), TURNED, folder=folder, network=net, watch=lambda p: seen.append(p.figures))
    return [figures.loss for figures in seen], result.network, [figures.accuracy for figures in seen]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return losses(tmp_path_factory.mktemp("alone"), 1)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return losses(tmp_path_factory.mktemp("together"), 2)


def test_two_processes_have_the_loss_curve_of_one_with_the_doubled_batch(alone, together):
    """Twenty steps in float64: losses, accuracies and every weight and statistic at the end."""
    assert len(alone[0]) == STEPS
    torch.testing.assert_close(torch.tensor(together[0]), torch.tensor(alone[0]), rtol=1e-9, atol=1e-9)
    assert together[2] == pytest.approx(alone[2])
    for name, value in alone[1].state_dict().items():
        torch.testing.assert_close(together[1].state_dict()[name], value, rtol=1e-6, atol=1e-8)


def test_the_loss_changes_on_the_way(alone):
    """Guard: equal curves are not constant curves. (At the end it need not be lower: the margin grows on the way.)"""
    assert max(alone[0]) - min(alone[0]) > 0.1


def test_that_comparison_notices_statistics_of_half_a_batch(alone, tmp_path):
    """Control: torch's own batch norm, of which every process sees its part only."""
    net = network(dtype=torch.float64)
    for layer in (*net.body.layers, net.body.classes):
        layer.norm = torch.nn.BatchNorm2d(layer.out_capsules).double()
    found, *_ = losses(tmp_path, 2, net)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(torch.tensor(found), torch.tensor(alone[0]), rtol=1e-3, atol=1e-3)


def normalise(world, results):
    generator = torch.Generator().manual_seed(2)
    x, weight = (torch.randn(8, 3, 4, 4, generator=generator, dtype=torch.float64) + 30 for _ in range(2))
    norm = BatchNorm2d(3).double()
    x = x.chunk(world.size)[world.rank].clone().requires_grad_()
    output = norm(x)
    (output * weight.chunk(world.size)[world.rank]).sum().backward()
    parts = [output, x.grad]
    for part in parts:
        gathered = [part.detach().clone() for _ in range(world.size)]
        if world.size > 1:
            dist.all_gather(gathered, part.detach().contiguous())
        results.append(torch.cat(gathered))
    results += [norm.running_mean, norm.running_var, norm.num_batches_tracked]


def _help_normalise(world):
    normalise(world, [])


def test_batch_norm_over_two_processes_is_torchs_over_the_whole_batch():
    """Outputs, gradients and running statistics."""
    expected, found = [], []
    normalise(World(torch.device("cpu")), expected)
    with open_world(2, "cpu", _help_normalise) as world:
        normalise(world, found)
    for one, two in zip(expected, found, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-9, atol=1e-9)


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="multiple of 6"):
        fit(config(2), network(), digits(), TURNED, folder=tmp_path, world=World(torch.device("cpu"), 0, 3))


def test_a_lost_process_is_reported(tmp_path):
    """The first process does not hang when another one is killed; what it saved can be resumed."""

    def kill(progress):
        if progress.step == 3:
            (other,) = multiprocessing.active_children()
            os.kill(other.pid, signal.SIGKILL)

    settings = config(50, hardware=Hardware(processes=2, device="cpu"))
    with pytest.raises(TrainingError, match="lost another process"):
        train(settings, digits(), TURNED, folder=tmp_path, network=network(), watch=kill)
    again = train(config(50), digits(), TURNED, folder=tmp_path, network=network(), resume=True)
    assert again.step == 50


def test_ctrl_c_stops_all_processes_after_saving(tmp_path):
    settings = config(500, hardware=Hardware(processes=2, device="cpu"))

    def interrupt(progress):
        if progress.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = train(settings, digits(), TURNED, folder=tmp_path, network=network(), watch=interrupt)
    assert not stopped.finished
    assert stopped.step < 10


SCRIPT = """
from small_training import TURNED, config, digits, network
from equicaps.training import Hardware, train

settings = config(2, hardware=Hardware(processes=2, device="cpu"))
{guard}train(settings, digits(), TURNED, folder={folder!r}, network=network())
"""


def start_script(folder, guard):
    path = folder / "script.py"
    path.write_text(SCRIPT.format(guard=guard, folder=str(folder / "run")))
    tests = Path(__file__).parents[1]
    places = os.pathsep.join([str(tests), str(tests.parent / "src")])
    return subprocess.run(
        [sys.executable, path], env=os.environ | {"PYTHONPATH": places}, capture_output=True, text=True, timeout=240
    )


def test_a_script_without_the_main_guard_is_told_so_at_once(tmp_path):
    """Its helper imports it and dies; nobody waits for the dead."""
    found = start_script(tmp_path, "")
    assert found.returncode == 1
    assert "TrainingError: a helper process ended at its start (exit code 1)" in found.stderr
    assert 'below `if __name__ == "__main__":`' in found.stderr


def test_that_script_with_the_guard_trains(tmp_path):
    """Control."""
    found = start_script(tmp_path, 'if __name__ == "__main__": ')
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_helpers_that_never_arrive_are_not_waited_for_as_long_as_an_evaluation(monkeypatch):
    """A process that is never started neither arrives nor ends."""
    monkeypatch.setattr(module, "MEETING", datetime.timedelta(seconds=0.2))
    with pytest.raises(TrainingError, match="not ready after"):
        module._all_there(dist.HashStore(), [multiprocessing.Process()])
    assert datetime.timedelta(hours=1) < module.PATIENCE

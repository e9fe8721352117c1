"""Trained networks as ONNX and torch.export give the same answers on 1,000 digits, and the comparison can fail."""

import copy
import math
from dataclasses import replace

import pytest
import torch

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import export


def turned_digits(count):
    degrees = 360 * torch.rand(count, generator=torch.Generator().manual_seed(1))
    return rotate(embedded_digits("test").images[:count], degrees, 32)


@pytest.mark.usefixtures("plain")
def test_onnx_and_torch_agree_to_1e_minus_5_on_1000_digits(tmp_path):
    import onnx

    from equicaps import load  # the plain ones
    from equicaps.inference import Card, export

    network = load("digits").network
    content = export.to_onnx(network, export.notes_of(Card("x", "", "", ("a", "b"), (0.0, 1.0))))
    model = onnx.load_from_string(content)
    assert [entry.name for entry in model.graph.output] == ["scores", "agreements", "poses"]
    assert {entry.key: entry.value for entry in model.metadata_props}["classes"] == '["a", "b"]'
    found = export.compare(network, export.run_onnx(content), turned_digits(1000))
    assert found.holds, found
    assert found.images == 1000
    assert found.scores > 0  # two programs, not one compared with itself
    assert found.precise[0] < 1e-5
    assert max(found.precise[1], found.all_poses) < 1e-4


@pytest.fixture(scope="module")
def network():
    return load("digits-upright").network


def program(network, scores=0.0, agreements=0.0, poses=0.0):
    """The network itself, with the given errors (for poses, a rotation in radians)."""
    c, s = torch.cos(torch.tensor(poses)), torch.sin(torch.tensor(poses))
    turn = torch.stack((torch.stack((c, s)), torch.stack((-s, c))))

    @torch.no_grad()
    def run(images):
        output = network(images)
        return output.scores + scores, output.activations + agreements, output.poses @ turn

    return run


def test_the_network_agrees_with_itself(network):
    found = export.compare(network, program(network), turned_digits(20))
    assert found.holds
    assert found.scores == found.agreements == found.labels_changed == 0


@pytest.mark.parametrize("off", [{"scores": 5e-4}, {"agreements": 3e-5}, {"poses": 3e-5}], ids=str)
def test_each_output_is_compared(network, off):
    """Control: the comparison rejects an error in any output."""
    found = export.compare(network, program(network, **off), turned_digits(20))
    assert not found.holds
    [(name, _)] = off.items()
    assert getattr(found, name) > export.ALLOWED


def test_outputs_may_differ_by_three_times_the_rounding_of_the_network():
    """Each by its own."""
    endless = export.Comparison(10, 0, 5.0, 0.0, 0.0, 0.0, (0.0, 0.0), rounding=(math.inf, 0.0, 0.0))
    assert not endless.holds  # a network that overflows certifies nothing
    found = export.Comparison(10, 0, 3e-5, 6e-5, 9e-5, 9e-5, (0.0, 2e-5), rounding=(1.1e-5, 2.1e-5, 3.1e-5))
    assert found.holds
    for place in range(3):
        smaller = [value * (0.9 if at == place else 1) for at, value in enumerate(found.rounding)]
        assert not replace(found, rounding=tuple(smaller)).holds


def test_the_rounding_of_the_network_is_measured(network):
    """Against float64; a program that rounds as the network does is within it."""
    images = turned_digits(20)
    found = export.compare(network, program(network), images)
    exact = copy.deepcopy(network).double()(images.double())
    assert found.rounding[1] == (network(images).activations - exact.activations).abs().max().item() > 0


@pytest.mark.parametrize("off", [{"scores": torch.nan}, {"agreements": torch.nan}, {"poses": torch.nan}], ids=str)
def test_nan_is_rejected(network, off):
    """NaN compares as neither larger nor smaller, so it must not pass for a difference of 0."""
    found = export.compare(network, program(network, **off), turned_digits(20))
    assert not found.holds
    assert not replace(export.compare(network, program(network), turned_digits(20)), agreements=torch.nan).holds


def test_a_comparison_leaves_the_mode_of_the_network_unchanged(network):
    trained = copy.deepcopy(network).train()
    state = copy.deepcopy(trained.state_dict())
    assert export.compare(trained, program(network), turned_digits(20)).holds
    assert all(module.training for module in trained.modules())
    assert all(torch.equal(value, state[name]) for name, value in trained.state_dict().items())


def test_changed_labels_are_counted(network):
    def reversed_scores(images):
        scores, agreements, poses = program(network)(images)
        return -scores, agreements, poses

    assert export.compare(network, reversed_scores, turned_digits(20)).labels_changed == 20


def test_every_image_is_compared(network):
    """An error in the last image alone is found, although it is in the last of many batches."""
    images = turned_digits(20)

    def off_at_the_end(given):
        scores, agreements, poses = program(network)(given)
        return scores, agreements + (given == images[-1]).flatten(1).all(1)[:, None], poses

    assert export.compare(network, program(network), images, batch=8).holds
    assert not export.compare(network, off_at_the_end, images, batch=8).holds


def test_programs_are_compared_on_rotated_images():
    """They are not aligned with the grid, and are the same in every comparison."""
    model, data = load("digits-upright"), embedded_digits("test").take(slice(0, 5))
    images = export.rotated_images(model, data)
    assert torch.equal(images, export.rotated_images(model, data))
    assert (images - model.prepare(data.images)).abs().amax((1, 2, 3)).min() > 0.3


def test_the_rounding_of_the_network_is_allowed_three_times():
    assert export.ROUNDINGS == 3
    found = export.Comparison(10, 0, 0.0, 0.0, 4e-5, 4e-5, (0.0, 2e-5), rounding=(0.0, 0.0, 1.1e-5))
    assert not found.holds

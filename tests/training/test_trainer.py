import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps.losses import Objective
from equicaps.models import GroupCapsNet, PaperConfig, PaperNet
from equicaps.training import Optimiser
from equicaps.training.distributed import World
from equicaps.training.schedule import pace
from equicaps.training.trainer import Trainer


def make(steps=4, net=None, **changes):
    return Trainer(config(steps, **changes), net or network(), digits(), ROTATED, World(torch.device("cpu")))


def test_the_gradient_of_a_step_is_that_of_its_own_batch():
    """A trainer that has just been restored has no gradients of earlier steps to add."""
    trainer, restored = make(), make()
    trainer.advance()
    restored.restore(trainer.tensors(), trainer.numbers())
    trainer.advance()
    restored.advance()
    for mine, other in zip(trainer.network.parameters(), restored.network.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_the_margin_reaches_its_end_in_the_last_step(monkeypatch):
    seen, original = [], Objective.__call__

    def spy(self, *arguments):
        seen.append(arguments[-1])
        return original(self, *arguments)

    monkeypatch.setattr(Objective, "__call__", spy)
    trainer = make(4)
    while not trainer.finished:
        trainer.advance()
    assert seen == [0.25, 0.5, 0.75, 1.0]


def test_every_step_has_the_rate_and_the_momentum_of_the_schedule():
    trainer = make(5)
    for step in range(5):
        expected, figures = pace(trainer.config.optimiser, step, 5), trainer.advance()
        [group] = trainer.optimizer.param_groups
        assert figures.rate == group["lr"] == expected.rate
        assert group["betas"] == (expected.beta, trainer.config.optimiser.betas[1])


def test_weights_decay_as_the_settings_say():
    [group] = make(optimiser=Optimiser(weight_decay=0.25)).optimizer.param_groups
    assert group["weight_decay"] == 0.25


def test_a_network_in_eval_mode_is_trained_in_training_mode():
    net = network().eval()
    make(net=net).advance()
    assert all(module.training for module in net.modules())


@pytest.mark.parametrize("clip", [None, 0.01])
def test_the_gradient_is_clipped_before_the_step(clip):
    """Adam's first step has the sign of the gradient; its first moment has the gradient itself."""
    trainer = make(optimiser=Optimiser(clip=clip))
    trainer.advance()
    beta = pace(trainer.config.optimiser, 0, 4).beta
    moments = [state["exp_avg"] / (1 - beta) for state in trainer.optimizer.state.values()]
    norm = torch.cat([moment.flatten() for moment in moments]).norm().item()
    assert norm == pytest.approx(0.01, rel=1e-3) if clip else norm > 0.011


def paper():
    return GroupCapsNet(PaperNet(PaperConfig(num_classes=3, widths=(4,))), image_size=32)


def sigmas(net):
    return [(layer.sigma.alpha.item(), layer.sigma.beta.item()) for layer in net.body.layers]


def test_a_new_network_is_calibrated_with_the_first_batch():
    """Its averaged copy, too; a network that needs no calibration stays as it is."""
    trainer = make(net=paper(), optimiser=Optimiser(ema=0.9))
    before = sigmas(trainer.network)
    trainer.begin()
    assert sigmas(trainer.network) == sigmas(trainer.average)
    assert all(one[0] > 4 * other[0] for one, other in zip(sigmas(trainer.network), before, strict=True))
    expected = paper()
    expected.load_state_dict(trainer.network.state_dict())
    for layer in expected.body.layers:
        layer.trained_sigma.reset_parameters()
    expected.calibrate(trainer.sampler.batch(0).views)
    assert sigmas(expected) == sigmas(trainer.network)
    other = make()
    state = {name: value.clone() for name, value in other.network.state_dict().items()}
    other.begin()
    assert all(torch.equal(value, state[name]) for name, value in other.network.state_dict().items())


def test_scalars_do_not_decay():
    """The parameters of σ: decay would undo their calibration."""
    weights, scalars = make(net=paper(), optimiser=Optimiser(weight_decay=0.25)).optimizer.param_groups
    assert (weights["weight_decay"], scalars["weight_decay"]) == (0.25, 0.0)
    assert all(value.ndim == 0 for value in scalars["params"])
    assert all(value.ndim > 0 for value in weights["params"])
    assert len(scalars["params"]) == 4


def test_a_network_with_scalars_is_restored_parameter_by_parameter():
    """The optimiser holds them in two groups, in another order than the network."""
    trainer, restored = make(net=paper()), make(net=paper())
    for _ in range(2):
        trainer.advance()
    restored.restore({name: value.clone() for name, value in trainer.tensors().items()}, trainer.numbers())
    trainer.advance()
    restored.advance()
    for one, other in zip(trainer.network.parameters(), restored.network.parameters(), strict=True):
        assert torch.equal(one, other)

import pytest
import torch

from equicaps.training import Optimiser
from equicaps.training.schedule import pace


@pytest.mark.parametrize("steps", [10, 50, 1000])
def test_one_cycle_is_torchs(steps):
    """Rate and first beta of every step, against torch.optim.lr_scheduler.OneCycleLR."""
    optimizer = torch.optim.AdamW([torch.zeros(1)], lr=1.0, betas=(0.9, 0.99))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps, pct_start=0.2)
    for step in range(steps):
        group = optimizer.param_groups[0]
        found = pace(Optimiser(rate=6e-3), step, steps)
        assert found.rate == pytest.approx(group["lr"], rel=1e-9)
        assert found.beta == pytest.approx(group["betas"][0], rel=1e-9)
        optimizer.step()
        if step < steps - 1:
            scheduler.step()


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_one_cycle_of_very_few_steps_is_finite_and_within_bounds(steps):
    rates = [pace(Optimiser(rate=1.0), step, steps).rate for step in range(steps)]
    assert all(0 < rate <= 1 for rate in rates)


def test_steps_fall_at_their_fractions():
    optimiser = Optimiser(rate=1.0, schedule="step", step_at=(0.5, 0.75), step_factor=0.1)
    rates = [pace(optimiser, step, 8).rate for step in range(8)]
    assert rates == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])


def test_an_unplanned_training_is_at_its_beginning():
    assert pace(Optimiser(rate=1.0), 7, None) == pytest.approx(pace(Optimiser(rate=1.0), 0, 100))
    assert pace(Optimiser(rate=1.0, schedule="step"), 7, None).rate == 1

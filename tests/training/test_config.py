import json
import math
from dataclasses import replace

import pytest
import torch
from small_training import ROTATED, digits

from equicaps.losses import Objective
from equicaps.models import Architecture
from equicaps.training import Budget, Hardware, Intervals, Optimiser, TrainConfig, train


def test_a_config_survives_json():
    config = TrainConfig(
        Budget(epochs=2.5),
        Architecture("steerable", 3, mirror="ignore"),
        Optimiser(ema=0.9, step_at=(0.1, 0.2)),
        Objective(spread=1.0),
        seed=7,
    )
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_config_of_an_older_version_is_read():
    """It said how many processes to start."""
    config = TrainConfig(Budget(steps=1), hardware=Hardware(device="cpu"))
    older = config.to_dict()
    older["hardware"]["processes"] = 2
    assert TrainConfig.from_dict(older) == config


def test_a_config_from_before_mirroring_could_be_ignored_is_read():
    older = TrainConfig(Budget(steps=1)).to_dict()
    del older["model"]["mirror"]
    assert TrainConfig.from_dict(older).model.mirror == "distinguish"


def test_settings_are_changed_by_the_names_of_the_recipe():
    config = TrainConfig(Budget(minutes=1.0), optimiser=Optimiser(ema=0.9))
    changes = {"batch": 32, "optimiser.rate": 0.1, "seed": None, "optimiser.ema": None, "budget": {"steps": 5}}
    expected = replace(config, budget=Budget(steps=5), batch=32, optimiser=Optimiser(rate=0.1, ema=0.9))
    assert config.changed(changes) == expected
    with pytest.raises(ValueError, match=r"Optimiser: unknown settings \['speed'\]"):
        config.changed({"optimiser.speed": 1})
    with pytest.raises(ValueError, match="multiple of the 2 views"):
        config.changed({"batch": 33})


def test_unknown_settings_are_named():
    values = TrainConfig(Budget(steps=1)).to_dict()
    values["optimiser"]["momentum"] = 1
    with pytest.raises(ValueError, match=r"Optimiser: unknown settings \['momentum'\]"):
        TrainConfig.from_dict(values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(), "exactly one of steps, epochs, minutes and up_to_minutes"),
        (lambda: Budget(steps=1, minutes=2.0), "exactly one"),
        (lambda: Budget(steps=0), "positive"),
        (lambda: Architecture("huge"), "one of 'steerable'"),
        (lambda: Optimiser(ema=1.0), "between 0 and 1"),
        (lambda: Optimiser(clip=0.0), "positive"),
        (lambda: Hardware(threads=0), "positive"),
        (lambda: Intervals(log_steps=0), "positive"),
        (lambda: Intervals(evaluation_images=0), "positive"),
        (lambda: Budget(epochs=math.inf), "`epochs` must be a positive number, but is inf"),
        (lambda: Budget(minutes=math.nan), "`minutes` must be a positive number, but is nan"),
        (lambda: Optimiser(rate=math.inf), "`rate` must be a positive number"),
        (lambda: Optimiser(weight_decay=-1.0), "`weight_decay` must be a number, 0 or more, but is -1.0"),
        (lambda: Optimiser(weight_decay=math.nan), "`weight_decay` must be a number"),
        (lambda: Intervals(checkpoint_seconds=math.nan), "`checkpoint_seconds` must be a number"),
        (lambda: Objective(consistency=math.nan), "`consistency` must be a number"),
        (lambda: Objective(spread=-1.0), "`spread` must be a number"),
        (lambda: Hardware(device="meta"), "must be auto, cpu, cuda"),
        (lambda: TrainConfig(Budget(steps=1), batch=63), "multiple of the 2 views"),
        (lambda: TrainConfig(Budget(steps=1), views=1), "consistency"),
        (lambda: TrainConfig(Budget(steps=1), views=3), "one of 1, 2"),
    ],
)
def test_impossible_settings_are_refused_with_the_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_steps_of_a_budget():
    assert TrainConfig(Budget(steps=5)).steps(100) == 5
    assert TrainConfig(Budget(epochs=2.0), batch=64).steps(100) == 7  # 200 images, 32 in a step
    assert TrainConfig(Budget(minutes=1.0)).steps(100) is None


def test_where_it_runs_is_not_part_of_the_recipe():
    config = TrainConfig(Budget(steps=5))
    elsewhere = replace(config, hardware=Hardware(threads=2), intervals=Intervals(log_steps=3))
    assert config.recipe() == elsewhere.recipe()
    assert config.recipe() != replace(config, seed=1).recipe()


def test_weights_depend_on_the_seed_alone_and_leave_the_generator():
    model = Architecture(num_classes=3)
    before = torch.get_rng_state()
    first = model.build(1).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(9)
    assert all(torch.equal(value, first[name]) for name, value in model.build(1).state_dict().items())
    assert not torch.equal(first["body.classes.weight"], model.build(2).state_dict()["body.classes.weight"])


def test_a_reconstruction_loss_needs_a_decoder(tmp_path):
    config = TrainConfig(Budget(steps=1), objective=Objective(reconstruction=2.0))
    with pytest.raises(ValueError, match=r"needs a network with a decoder.*use Architecture\(decoder=True\)"):
        config.network()
    with pytest.raises(ValueError, match="needs a network with a decoder"):
        train(config, digits(), ROTATED, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()  # before anything is done
    assert replace(config, model=Architecture(decoder=True)).network().decoder is not None
    assert TrainConfig(Budget(steps=1)).network().decoder is None


def test_a_given_network_is_trained_whatever_network_the_config_describes(tmp_path):
    config = TrainConfig(Budget(steps=1), objective=Objective(reconstruction=2.0), batch=4)
    given = Architecture("steerable_cnn", 3, decoder=True).build(0)
    assert train(config, digits(), ROTATED, folder=tmp_path, network=given).finished

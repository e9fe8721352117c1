import csv
import time
from dataclasses import replace

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps._tensor_files import read_tensors
from equicaps.errors import TrainingError
from equicaps.inference.model_files import MODEL
from equicaps.training import (  # fmt: skip
    AnyAngle,
    AsTheyAre,
    Budget,
    Intervals,
    Optimiser,
    load_checkpoint,
    train,
)
from equicaps.training.distributed import World
from equicaps.training.log import EVALUATIONS, STEPS, commit
from equicaps.training.trainer import PILOT_STEPS, Trainer, follow


def run(settings, folder, **options):
    return train(settings, digits(), ROTATED, folder=folder, network=network(), **options)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_it_learns(tmp_path):
    """Three shapes at any angle: far better than chance after 60 steps, in both protocols."""
    settings = config(60, batch=32, intervals=Intervals(evaluations=2, evaluation_images=9))
    result = run(settings, tmp_path, evaluation=AnyAngle(digits(30)))
    assert result.finished
    assert result.images == 60 * 32
    assert [row["images"] for row in result.curve] == [9, 30]
    assert result.figures["accuracy"] > 70
    untrained = AnyAngle(digits(30))(network().eval())
    assert untrained["accuracy"] < 70
    upright = replace(digits(30), images=ROTATED(digits(30).images, torch.Generator().manual_seed(0)).images)
    assert AsTheyAre(upright)(result.network)["accuracy"] > 70
    assert not result.network.training


def test_logs_hold_a_row_for_every_interval(tmp_path):
    seen = []
    run(config(7), tmp_path, evaluation=AnyAngle(digits(6)), watch=seen.append)
    steps, evaluations = rows(tmp_path / STEPS), rows(tmp_path / EVALUATIONS)
    assert [int(row["step"]) for row in steps] == [2, 4, 6, 7]
    assert [int(row["images"]) for row in steps] == [16, 32, 48, 56]
    mean = sum(progress.figures.loss for progress in seen[2:4]) / 2
    assert float(steps[1]["loss"]) == pytest.approx(mean)
    assert [int(row["step"]) for row in evaluations] == [3, 5, 7]
    assert [progress.step for progress in seen if progress.evaluation] == [3, 5]
    assert all(progress.images_per_second > 0 for progress in seen)
    assert seen[-1].seconds_left == 0


def test_minutes_become_steps_once_and_a_resumed_training_keeps_the_plan(tmp_path, monkeypatch):
    """Every step takes exactly a hundredth of a CPU-second."""
    clock = iter(range(10**9))
    monkeypatch.setattr("equicaps.training.trainer.time.process_time", lambda: next(clock) / 200)
    settings = replace(config(1), budget=Budget(minutes=0.01))  # 60 steps, a little less for safety

    class StopError(Exception):
        pass

    def stop(progress):
        assert progress.steps == (None if progress.step < PILOT_STEPS else 59)
        if progress.step == 30:
            raise StopError

    with pytest.raises(StopError):
        run(settings, tmp_path, watch=stop)
    monkeypatch.setattr("equicaps.training.trainer.time.process_time", time.process_time)
    result = run(settings, tmp_path, resume=True)
    assert result.step == 59
    assert load_checkpoint(tmp_path)[1]["steps"] == 59


def test_a_loss_that_is_not_a_number_stops_the_training_before_it_is_saved(tmp_path):
    settings = config(9)

    def poisoned(images, generator):
        views, degrees = ROTATED(images, generator)
        calls.append(1)
        return views, (degrees * float("nan") if len(calls) == 5 else degrees)

    calls = []
    with pytest.raises(TrainingError, match="loss of step 5 is nan"):
        train(settings, digits(), poisoned, folder=tmp_path, network=network())
    tensors, content = load_checkpoint(tmp_path)
    assert content["step"] == 4
    assert all(value.isfinite().all() for value in tensors.values() if value.is_floating_point())


@pytest.mark.filterwarnings("ignore:images are expected in")  # the network warns, too
@pytest.mark.parametrize(("factor", "lines"), [(255.0, 1), (-1.0, 1), (1.0, 0), (1.0005 / 0.9, 0)])
def test_values_outside_0_and_1_cause_one_warning(factor, lines, caplog):
    data = digits()
    data = replace(data, images=data.images * factor)
    trainer = Trainer(config(2), network(), data, ROTATED, World(torch.device("cpu")))
    trainer.advance()
    trainer.advance()
    found = [record.getMessage() for record in caplog.records if "should lie in [0, 1]" in record.getMessage()]
    assert len(found) == lines
    assert all("divide by 255" in line for line in found)


def test_averaged_weights_are_the_recursion_and_are_what_is_evaluated(tmp_path):
    """a <- d a + (1 - d) w with the decay d, which is smaller at the beginning."""
    states = []
    settings = config(4, optimiser=Optimiser(ema=0.8))
    net = network()
    expected = {name: value.clone() for name, value in net.state_dict().items()}

    def watch(progress):
        states.append({name: value.clone() for name, value in net.state_dict().items()})

    result = train(settings, digits(), ROTATED, folder=tmp_path, network=net, watch=watch)
    for step, state in enumerate(states):
        decay = min(0.8, (1 + step) / (10 + step))
        for name, value in state.items():
            floats = value.is_floating_point()
            expected[name] = decay * expected[name] + (1 - decay) * value if floats else value
    for name, value in result.network.state_dict().items():
        torch.testing.assert_close(value, expected[name])
    assert not torch.equal(result.network.state_dict()["body.classes.weight"], states[-1]["body.classes.weight"])


def test_following_with_decay_zero_copies():
    one, two = network(0), network(1)
    follow(one, two, 0.0)
    for name, value in two.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value)


def test_clipping_bounds_the_gradient(tmp_path):
    norms = []

    def watch_norm(net):
        def watch(progress):
            gradients = [parameter.grad.flatten() for parameter in net.parameters() if parameter.grad is not None]
            norms.append(torch.cat(gradients).norm().item())

        return watch

    for clip in (None, 0.01):
        net = network()
        settings = config(3, optimiser=Optimiser(clip=clip))
        train(settings, digits(), ROTATED, folder=tmp_path / str(clip), network=net, watch=watch_norm(net))
    assert min(norms[:3]) > 0.011
    assert max(norms[3:]) < 0.0101


def test_tensorboard_gets_the_same_figures(tmp_path):
    pytest.importorskip("tensorboard")
    run(config(4), tmp_path, evaluation=AnyAngle(digits(6)), tensorboard=True)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    points = {point.step: point.value for point in events.Scalars("training/loss")}
    expected = {int(row["step"]): float(row["loss"]) for row in rows(tmp_path / STEPS)}
    assert points == pytest.approx(expected)
    assert "evaluation/pose_error_mean" in events.Tags()["scalars"]


def test_the_commit_is_that_of_the_checkout():
    found = commit()
    assert found is None or len(found.split("+")[0]) >= 7


def test_evaluations_are_in_eval_mode_and_training_goes_on_in_training_mode(tmp_path):
    net, evaluated, trained = network(), [], []

    def modes(module):
        return {part.training for part in module.modules()}

    def evaluation(module, limit):
        evaluated.append(modes(module))
        return {"accuracy": 0.0}

    def watch(progress):
        trained.append(modes(net))

    train(config(6), digits(), ROTATED, folder=tmp_path, network=net, evaluation=evaluation, watch=watch)
    assert evaluated == [{False}] * 3
    assert trained == [{True}] * 6


def test_averaged_weights_are_evaluated_and_exported(tmp_path):
    net, seen = network(), []

    def evaluation(module, limit):
        seen.append({name: value.clone() for name, value in module.state_dict().items()})
        return {"accuracy": 0.0}

    settings = config(4, optimiser=Optimiser(ema=0.8))
    result = train(settings, digits(), ROTATED, folder=tmp_path, network=net, evaluation=evaluation)
    exported, _ = read_tensors(tmp_path / MODEL, "model")
    for name, value in result.network.state_dict().items():
        assert torch.equal(seen[-1][name], value)
        assert torch.equal(exported[name], value)
    assert not torch.equal(exported["body.classes.weight"], net.state_dict()["body.classes.weight"])


def test_the_model_knows_the_error_of_its_angles_if_there_were_images_to_measure_it(tmp_path):
    for name, validation, measured in (("with", digits(60), True), ("without", None, False), ("few", digits(9), False)):
        run(config(6), tmp_path / name, validation=validation)
        _, content = read_tensors(tmp_path / name / MODEL, "model")
        assert ("angle_errors" in content) == measured
    errors = read_tensors(tmp_path / "with" / MODEL, "model")[1]["angle_errors"]
    assert len(errors["by_class"]) == 3
    assert errors["known_angles"] == []


def test_the_error_of_angles_is_measured_from_known_ones(tmp_path):
    """The network is the same, and hardly trained: its angles follow better than they are true, where it is right."""
    errors = []
    for name, angles in (("with", 360 * torch.rand(60)), ("without", None)):
        run(config(6), tmp_path / name, validation=replace(digits(60), angles=angles))
        errors.append(read_tensors(tmp_path / name / MODEL, "model")[1]["angle_errors"])
    true, follows = errors
    assert follows["known_angles"] == []
    known = [label for label, is_known in enumerate(true["known_angles"]) if is_known]
    assert known
    assert all(true["by_class"][label] > follows["by_class"][label] for label in known)


def test_images_that_are_not_square_give_a_model_with_all_its_tables(tmp_path):
    data = digits(60)
    narrow = replace(data, images=data.images[..., 2:14])
    train(config(4), narrow, ROTATED, folder=tmp_path, network=network(), validation=narrow)
    assert "angle_errors" in read_tensors(tmp_path / MODEL, "model")[1]

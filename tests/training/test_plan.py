"""How long a training lasts if nobody says, and what is said afterwards."""

from dataclasses import replace

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps.training import Budget, Intervals, Optimiser, load_checkpoint, train
from equicaps.training.plan import Course, enough_views, has_stalled, outlook
from equicaps.training.schedule import pace

PLANNED = 20


def test_few_images_are_seen_more_often():
    assert enough_views(10) == enough_views(300) == 20_000
    assert enough_views(1000) == 60_000


def test_a_course_that_is_not_shortened_is_the_schedule():
    assert [Course(7).position(step) for step in range(7)] == list(range(7))
    assert Course(7).steps == 7


@pytest.mark.parametrize(("after", "steps"), [(40, 60), (41, 61), (99, 100), (0, 34)])
def test_a_shortened_course_passes_the_rest_three_times_as_fast_to_the_same_end(after, steps):
    course = Course(100, shortened_after=after)
    places = [course.position(step) for step in range(steps)]
    assert course.steps == steps
    assert places[:after] == list(range(after))
    assert places[-1] == 99
    strides = [later - earlier for earlier, later in zip(places[after:], places[after + 1 :], strict=False)]
    assert all(2 < stride <= 3 for stride in strides)
    rates = [pace(Optimiser(), place, course.planned).rate for place in places]
    assert rates[-1] == pace(Optimiser(), 99, 100).rate


def curve(*accuracies, balanced=None, every=10):
    rows = [{"step": every * (number + 1), "accuracy": value} for number, value in enumerate(accuracies)]
    return [{**row, "balanced_accuracy": value} for row, value in zip(rows, balanced or accuracies, strict=True)]


@pytest.mark.parametrize(
    ("accuracies", "stalled"),
    [
        ((50, 60, 70, 80), False),
        ((80, 70, 70, 70), False),  # no evaluation lies a third of the plan back
        ((80, 70, 80, 70, 75), True),
        ((80, 70, 80, 81, 75), False),
        ((80, 90, 85, 85, 85), False),
        ((80, 90, 85, 85, 85, 90), True),
    ],
)
def test_validation_has_stalled_if_no_evaluation_of_the_last_third_was_better(accuracies, stalled):
    assert has_stalled(curve(*accuracies), Course(100)) == stalled
    assert not has_stalled(curve(*accuracies), Course(100, shortened_after=40))  # once
    assert not has_stalled(curve(*accuracies), None)


def test_rare_classes_that_improve_count_even_if_the_accuracy_does_not():
    assert not has_stalled(curve(95, 95, 95, 95, 95, balanced=(50, 50, 55, 60, 60)), Course(100))


def test_evaluations_without_an_accuracy_shorten_nothing():
    assert not has_stalled([{"step": 10 * number, "loss": 1.0} for number in range(1, 9)], Course(100))


def constant(network, limit):
    return {"accuracy": 50.0}


def rising():
    count = iter(range(100))
    return lambda network, limit: {"accuracy": float(next(count))}


class PowerCutError(Exception):
    pass


def run(folder, evaluation=constant, cut=None, budget=None, data=None, **options):
    def watch(progress):
        seen.append(progress)
        if progress.step == cut:
            raise PowerCutError

    seen = []
    settings = replace(
        config(1, intervals=Intervals(evaluations=10, checkpoint_steps=1)), budget=budget or Budget(up_to_minutes=10.0)
    )
    options = {"network": network(), "evaluation": evaluation, "watch": watch, **options}
    return train(settings, data or digits(), ROTATED, folder=folder, **options), seen


@pytest.fixture
def twenty_steps(monkeypatch):
    """Planned after six steps."""
    monkeypatch.setattr("equicaps.training.trainer.PILOT_STEPS", 6)
    monkeypatch.setattr("equicaps.training.trainer.enough_views", lambda images: PLANNED * 8 - 3)


def test_a_training_ends_early_if_validation_stalls_and_is_resumed_bit_for_bit(tmp_path, twenty_steps, monkeypatch):
    """Evaluations after 6, 8, ... 14 steps; the decision falls in the next step, and five steps become two."""
    result, seen = run(tmp_path / "straight")
    assert [progress.steps for progress in seen[-4:]] == [20, 17, 17, 17]
    assert result.shortened
    expected, numbers = load_checkpoint(tmp_path / "straight")
    assert (numbers["step"], numbers["planned_steps"], numbers["shortened_after"]) == (17, 20, 15)
    assert seen[-1].figures.rate == pace(Optimiser(), 19, 20).rate
    for cut in (15, 16):  # between evaluation and decision; after the decision
        folder = tmp_path / str(cut)
        with pytest.raises(PowerCutError):
            run(folder, cut=cut)
        assert load_checkpoint(folder)[1]["step"] == cut - 1
        with monkeypatch.context() as patch:
            patch.setattr("equicaps.training.trainer.Trainer._plan", None)  # a resumed training does not plan anew
            run(folder, resume=True)
        found, resumed = load_checkpoint(folder)
        assert all(torch.equal(found[name], value) for name, value in expected.items())
        for name in ("step", "steps", "planned_steps", "shortened_after", "training_accuracy"):
            assert resumed[name] == numbers[name]


def test_a_training_that_still_improves_makes_all_planned_steps(tmp_path, twenty_steps):
    """Control."""
    result, seen = run(tmp_path, rising())
    assert result.step == PLANNED
    assert not result.shortened
    assert seen[-1].plan.is_enough


def test_only_a_budget_that_may_be_shortened_is(tmp_path):
    result, _ = run(tmp_path, budget=Budget(steps=PLANNED))
    assert result.step == PLANNED


@pytest.mark.parametrize(("enough", "steps"), [(22, 22), (1000, 23)])
def test_the_plan_follows_the_measured_speed(enough, steps, tmp_path, monkeypatch):
    """Every step takes exactly a hundredth of a CPU-second, so that 0.004 CPU-minutes are 24 steps, 23 for safety."""
    clock = iter(range(10**9))
    monkeypatch.setattr("equicaps.training.trainer.time.process_time", lambda: next(clock) / 200)
    monkeypatch.setattr("equicaps.training.trainer.enough_views", lambda images: enough * 8)
    result, seen = run(tmp_path, None, budget=Budget(up_to_minutes=0.004))
    plan = seen[-1].plan
    assert result.step == plan.steps == steps
    assert plan.views_per_image == steps * 8 / 40
    assert plan.cpu_minutes == pytest.approx(steps * 0.01 / 60, rel=0.02)
    assert plan.is_enough == (steps == enough)


@pytest.mark.parametrize(
    ("before", "now", "training", "shortened", "rising", "helps"),
    [
        (70, 80, 85, False, True, True),
        (79, 80, 85, False, False, False),  # within one standard error, 4 points
        (70, 80, 99.5, False, True, False),
        (70, 80, 85, True, True, False),
        (100, 100, 85, False, False, False),
    ],
)
def test_longer_helps_if_validation_was_rising_and_training_views_are_not_learned(
    before, now, training, shortened, rising, helps
):
    rows = [*curve(before, before - 1, 99, every=30), {"step": 100, "accuracy": 1.0, "validation_accuracy": now}]
    rows[-1]["validation_images"] = 100
    found = outlook(rows, float(training), shortened=shortened)
    assert (found.rising, found.longer_helps) == (rising, helps)
    assert found.validation_accuracy_before == before  # the evaluation after 90 steps is of the last third


def test_without_validation_images_nothing_is_said():
    assert outlook(curve(50, 60, 70), 80.0) is None
    assert outlook([], None) is None


def test_a_plan_counts_how_often_different_images_are_seen(tmp_path, twenty_steps, monkeypatch):
    """But it is long enough for those of the most frequent class, which are not repeated."""
    asked = []
    monkeypatch.setattr("equicaps.training.trainer.enough_views", lambda images: asked.append(images) or PLANNED * 8)
    bars = digits()
    uneven = bars.take([place for place in range(40) if place % 3 == 0 or place < 6])
    assert uneven.class_sizes() == [14, 2, 2]
    result, seen = run(tmp_path, None, data=uneven.balanced())
    assert result.step == PLANNED
    assert asked == [42]
    assert seen[-1].plan.views_per_image == PLANNED * 8 / 18

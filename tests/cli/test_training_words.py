"""What is said about a training, for few classes and many."""

import pytest
import torch
from rich.console import Console

from equicaps.cli.training_words import advise, describe_budget, describe_plan, show_confusion, worst_confusions
from equicaps.training import Budget, Result
from equicaps.training.plan import Plan


def result(views, training, curve=(), **options):
    return Result(torch.nn.Identity(), True, 5, views, 2.0, list(curve), float(training), **options)


@pytest.mark.parametrize(("views", "accuracy", "short"), [(19, 89, True), (20, 89, False), (19, 90, False)])
def test_without_validation_images_a_training_is_called_short_if_it_saw_little_and_knows_little(views, accuracy, short):
    remark = advise(result(views * 10, accuracy), 10)
    assert bool(remark) == short
    assert not short or remark.endswith("--minutes 3.")


def test_smaller_images_are_advised_only_where_they_can_become_smaller():
    assert advise(result(10, 50), 10, reducible=True).endswith("--minutes 40, or on smaller images with --size.")
    assert "--size" not in advise(result(10, 50), 10)


@pytest.mark.parametrize(
    ("before", "now", "training", "shortened", "words"),
    [
        (70, 80, 85, False, ("would probably help", "70.0 % before", "80.0 % at the end", "85.0 %", "--minutes 4")),
        (80, 80, 85, False, ("hardly help", "has stopped rising", "training views: 85.0 %).")),
        (80, 80, 86, False, ("hardly help", "More training images would.")),
        (70, 80, 99.5, False, ("hardly help", "99.5 % of the last training views", "More training images would.")),
        (70, 80, 85, True, ("hardly help", "had stopped rising")),
    ],
)
def test_afterwards_it_is_said_whether_longer_would_help(before, now, training, shortened, words):
    last = {"step": 30, "accuracy": 75.0, "validation_accuracy": now, "validation_images": 100}
    said = advise(result(1, training, [{"step": 10, "accuracy": before}, last], shortened=shortened), 10)
    assert all(word in said for word in words), said
    assert said.endswith("More training images would.") == (training - now > 5 and "hardly" in said)


@pytest.mark.parametrize(
    ("budget", "enough", "watched", "said"),
    [
        (
            Budget(minutes=2.0), False, True,
            "in 2 CPU-minutes each training image will be seen about 7.5 times on average",
        ),
        (
            Budget(up_to_minutes=9.0), True, True,
            "plan: each training image will be seen about 7.5 times on average, in 1.2 CPU-minutes; less if the "
            "validation images stop improving",
        ),
        (
            Budget(up_to_minutes=9.0), False, False,
            "plan: each training image will be seen about 7.5 times on average, which is all that the time allows, in "
            "1.2 CPU-minutes",
        ),
    ],
)  # fmt: skip
def test_a_plan_says_how_long_it_takes_at_most(budget, enough, watched, said):
    assert describe_plan(Plan(100, 7.5, 1.23, enough), budget, watched=watched) == said


def test_beforehand_it_is_said_what_is_known():
    assert (
        describe_budget(Budget(steps=100), 100, 64, 20) == "each training image will be seen about 320 times on average"
    )
    assert describe_budget(Budget(up_to_minutes=10.0), None, 64, 20).startswith(
        "trains for at most 10 CPU-minutes, and then measures"
    )


def shown(counts, classes):
    console = Console(width=120)
    with console.capture() as captured:
        show_confusion(console, counts, classes)
    return captured.get()


def test_few_classes_are_a_table_with_true_classes_in_rows():
    lines = shown([[8, 2], [0, 5]], ["[red]bolt", "nut\x1b"]).splitlines()
    [bolt] = [line for line in lines if "8" in line]
    assert bolt.split("│")[1:-1] == [" [red]bolt  ", "         8 ", "       2 "]
    assert "\x1b" not in "".join(lines)


def test_of_many_classes_the_five_most_frequent_confusions_are_told():
    classes = [f"kind {number}" for number in range(11)]
    counts = torch.diag(torch.full((11,), 20))
    for number in range(1, 8):
        counts[number, 0] = number
    said = shown(counts.tolist(), classes)
    assert said.startswith("most frequent confusions: kind 7 taken for kind 0 (7 of 27), kind 6 taken for kind 0 (6 of")
    assert said.count("taken for") == 5
    assert worst_confusions(torch.eye(11).long().tolist(), classes) == ""

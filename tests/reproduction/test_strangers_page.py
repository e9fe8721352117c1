"""The table of folders that a stranger might bring."""

from reproduction import strangers_page

COVERED = {
    "angle_error_coverage": 90.0, "angle_error_coverage_smallest_third": 95.0,
    "angle_error_coverage_middle_third": 91.0, "angle_error_coverage_largest_third": 84.0,
}  # fmt: skip


def row(kind, seed, accuracy, **more):
    return {
        "set": "coins", "network": kind, "seed": seed, "accuracy": accuracy, "accuracy_interval": [50.0, 60.0],
        "balanced_accuracy": accuracy + 1, "changed_by_quarter_turns": 0 if kind == "equicaps" else 2,
        "test_images": 100, "training_images": 1000, "cpu_minutes": 4.0, **more,
    }  # fmt: skip


def of_seed(seed, ours):
    return {
        f"coins, {kind}, {seed}": row(kind, seed, accuracy, **more)
        for kind, accuracy, more in (
            ("equicaps", ours, COVERED),
            ("CNN", 55.0, {}),
            ("CNN, 8 views", 56.0, {}),
        )
    }


def test_one_seed_has_an_interval_over_images():
    text = strangers_page.table({"rows": {**of_seed(0, 55.5), "coins, rates": {"0.001": 3.0}}})
    assert "| **55.5 %**, 50.0 to 60.0 (56.5 %) | 55.0 %, 50.0 to 60.0 (56.0 %) |" in text
    assert "| 0 / 2 / 2 of 300 | 90.0 % (95.0, 91.0, 84.0) | 1, 4.0 |" in text
    assert "cells" not in text


def test_several_seeds_have_a_mean_and_only_those_count_that_all_networks_have():
    rows = {**of_seed(0, 60.0), **of_seed(1, 64.0), **of_seed(2, 99.0)}
    del rows["coins, CNN, 8 views, 2"]
    text = strangers_page.table({"rows": rows})
    assert "**62.0 %** ± 2.8 (63.0 %)" in text
    assert "| 0 / 4 / 4 of 600 | 90.0 % (95.0, 91.0, 84.0) | 2, 4.0 |" in text

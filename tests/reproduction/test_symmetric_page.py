"""The table of things that look the same after a part of a turn."""

from reproduction import symmetric_page

RECORD = {
    "images_of_each_class": 100, "cpu_minutes": 1.96, "steps": 400, "seed": 0, "commit": "abc", "rows": {},
    "fresh_images_of_each_class": 200,
    "figures": {"accuracy": 98.0, "pose_error_median": 1.23, "images": 150, "images_modulo_period": 100},
}  # fmt: skip


def table(**row):
    return symmetric_page.table({**RECORD, "rows": {"thing": {"accuracy": 97.5, **row}}})


def test_a_class_has_its_periods_and_its_errors():
    measured = {"stated": 5.0, "median": 1.0, "nine_of_ten": 3.04, "within_stated": 95.0}
    text = table(true_period=120, period=120.0, **measured)
    assert "| thing | 120° | 120° | 5.0° | 1.0° | 3.0° | 95.0 % | 97.5 % |" in text
    assert "| thing | 90° | 180° |" in table(true_period=90, period=180.0, **measured)  # a wrong one is not hidden


def test_a_round_class_has_no_errors():
    """Not even if some of its images are taken for another class, and have angles."""
    expected = "| thing | any rotation | any rotation | – | – | – | – | 97.5 % |"
    assert expected in table(true_period=0, period=0.0)
    assert expected in table(true_period=0, period=0.0, stated=5.0, median=9.0, nine_of_ten=9.0, within_stated=0.0)
    assert expected not in table(true_period=0, period=360.0)


def test_the_training_is_described_below_the_table():
    text = table(true_period=360, period=360.0)
    assert "100 training images of each class, 2.0 CPU-minutes (400 steps), seed 0, commit abc" in text
    assert "1.2° on 150 test images: 100 modulo the period of their class, 0 left out" in text

import pytest

from reproduction.published import Goal


@pytest.mark.parametrize(
    ("unit", "value", "reached"), [("%", 90.0, True), ("%", 89.9, False), ("°", 90.0, True), ("°", 90.1, False)]
)
def test_percentages_should_be_large_and_degrees_small(unit, value, reached):
    assert Goal("accuracy", "Table 1", 80.0, 90.0, unit).reached(value) is reached
    assert Goal("accuracy", "Table 1", 80.0, None, unit).reached(value) is None

"""The tables of speed and of looks at test images on the page of the paper's network."""

from reproduction import paper_page
from reproduction.ledger import Look


def test_speed_is_shown_beside_that_of_the_plain_cnn():
    row = {"training": 100.4, "training_ratio": 1.0, "inference": 300.0, "inference_ratio": 1.0}
    twice = {"training": 200.8, "training_ratio": 2.0, "inference": 450.0, "inference_ratio": 1.5}
    of_images = {"plain CNN": row, "paper": twice, "capsules_only": row}
    text = paper_page.speed({"rows": {"noise": of_images}})
    assert "| training, noise | 100 | 201, 2.00 times as many | 100, 1.00 times as many |" in text
    assert "| prediction, noise | 300 | 450, 1.50 times as many | 300, 1.00 times as many |" in text


def test_looks_are_counted_by_training():
    """Of the paper's networks, in the order of the trainings; other runs have pages of their own."""

    def look(run, commit):
        return Look(when="2026", commit="x", run=run, trained_by=commit, test="MNIST")

    ledger = [look("upright-paper", "b"), look("rotated-paper", "a"), look("rotated-paper", "c"),
              look("rotated-steerable", "d"), look("galaxies", "e")]  # fmt: skip
    rows = paper_page.looks(ledger).splitlines()[2:]
    assert rows == ["| `rotated-paper` | 2 | a, c |", "| `upright-paper` | 1 | b |"]

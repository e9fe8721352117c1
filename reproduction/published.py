"""The figures that the paper prints, each with its place, and the targets of this project."""

from typing import Literal, NamedTuple


class Goal(NamedTuple):
    """One figure of the paper."""

    what: str
    where: str
    """Its place in the paper; empty if it is not there."""
    paper: float | None
    target: float | None
    unit: Literal["%", "°"] = "%"
    """Percentages should be large, degrees small."""

    def reached(self, value: float) -> bool | None:
        """Whether a figure is at least as good as the target; None without a target."""
        if self.target is None:
            return None
        return value >= self.target if self.unit == "%" else value <= self.target


GOALS = {
    "quarters": Goal("trained upright, accuracy at 0°, 90°, 180° and 270° (identical)", "Section 6.2", 99.02, 99.2),
    "any_angle": Goal("trained upright, accuracy at any angle", "Section 6.2", 89.12, 96.5),
    "upright_cnn": Goal("trained upright, accuracy of a plain CNN on upright digits", "Section 6.2", 99.13, None),
    "any_angle_cnn": Goal("trained upright, accuracy of a plain CNN at any angle", "Section 6.2", 58.79, None),
    "rotated/plain_cnn": Goal("rotated MNIST, plain CNN", "Table 1a, CNN(*)", 92.30, None),
    "rotated/longer_plain_cnn": Goal(
        "rotated MNIST, plain CNN, trained for as many CPU-minutes as the whole network", "", None, None
    ),
    "rotated/capsules": Goal("rotated MNIST, capsules only", "Table 1a, Capsules", 94.68, 96.0),
    "rotated/without_poses": Goal("rotated MNIST, whole network without poses", "", None, None),
    "rotated/whole": Goal("rotated MNIST, whole network", "Table 1a, Whole", 98.42, 99.2),
    "mnist_rot/plain_cnn": Goal("MNIST-rot (regenerated), plain CNN", "Table 1a, CNN(*)", 90.19, None),
    "mnist_rot/capsules": Goal("MNIST-rot (regenerated), capsules only", "Table 1a, Capsules", 91.87, 93.0),
    "mnist_rot/without_poses": Goal("MNIST-rot (regenerated), whole network without poses", "", None, None),
    "mnist_rot/whole": Goal("MNIST-rot (regenerated), whole network", "Table 1a, Whole", 97.40, 98.7),
    "affnist/plain_cnn": Goal("affNIST (regenerated), plain CNN", "Table 1a, CNN(*)", 81.64, None),
    "affnist/capsules": Goal("affNIST (regenerated), capsules only", "Table 1a, Capsules", 71.86, 75.0),
    "affnist/without_poses": Goal("affNIST (regenerated), whole network without poses", "", None, None),
    "affnist/whole": Goal("affNIST (regenerated), whole network", "Table 1a, Whole", 89.10, 93.0),
    "pose/naive": Goal("pose error, naive hierarchical average", "Table 1b", 70.92, None, "°"),
    "pose/naive_at_once": Goal("pose error, naive average over the whole image", "", None, None, "°"),
    "pose/labels_only": Goal("pose error, without reconstruction loss", "Table 1b", 28.32, 9.0, "°"),
    "pose/reconstruction": Goal("pose error, with reconstruction loss", "Table 1b", 16.21, 8.0, "°"),
    "pose/consistency": Goal("pose error, with consistency and reconstruction losses", "", None, 3.5, "°"),
}
"""Goals by key. The paper's MNIST-rot and affNIST are the original sets; ours are regenerated from MNIST."""

PAPER_PARAMETERS = "145k + 90k"
"""Section 6.1: the parameters of the paper's network, in its capsules and in its convolutions."""

NUMERICAL_ERROR = 1e-4
"""Section 6.2: "occasional small numerical errors < 0.0001" under quarter turns."""

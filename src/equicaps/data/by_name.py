"""The images for a command: a data set by its name, or a folder of images."""

from pathlib import Path
from typing import Literal

from equicaps.data.catalogue import CATALOGUE
from equicaps.data.dataset import Dataset
from equicaps.data.folder import Splits, Survey, is_table, load_folder, survey_folder
from equicaps.data.reduced import Watch
from equicaps.errors import NotFoundError, UsageError
from equicaps.images import ImageFormat

NAMES = ("digits", "mnist", "galaxies")
"""The data sets that the commands know; the others of the catalogue serve the paper's protocols."""


def load_training_splits(data: str, *, size: int, angles: Path | None = None, watch: Watch | None = None) -> Splits:
    """The images to train on and those to evaluate on; the validation split, where there is one, spares the test split.

    Args:
        data: one of :data:`NAMES`, or a folder of classes.
        size: the largest side of a folder's images. They get this side or, if that is less, the median of their own,
            so none is enlarged beyond what half of them have.
        angles: a list of the known angles of a folder's images, see :func:`load_folder`.
        watch: see :func:`load_folder`.
    """
    if data in NAMES:
        if angles is not None:
            raise UsageError(
                f"known angles ({angles}) belong to images of a folder or a CSV file of your own, not to the data set "
                f"{data!r}."
            )
        entry = CATALOGUE[data]
        return Splits(entry.load("train"), entry.load("valid" if "valid" in entry.parts else "test"))
    return load_folder(_folder(data), size=min(size, survey(data).side), angles=angles, watch=watch)


def survey(data: str) -> Survey:
    """The number and the median side of a folder's images."""
    return survey_folder(_folder(data))


def load_test_split(data: str, to: ImageFormat, *, watch: Watch | None = None) -> Dataset:
    """The images to test on.

    Args:
        data: one of :data:`NAMES`, or a folder of classes.
        to: the format of a folder's images: that of the model, so that they are prepared as for a prediction.
        watch: see :func:`load_folder`.
    """
    if data in NAMES:
        return CATALOGUE[data].load("test")
    channels: Literal[1, 3] = 3 if to.channels == 3 else 1
    return load_folder(_folder(data), size=to.size, frame=to.frame, channels=channels, watch=watch).test


def _folder(data: str) -> Path:
    path = Path(data).expanduser()
    if not path.is_dir() and not is_table(path):
        raise NotFoundError(
            f"{data!r} is neither a data set ({', '.join(NAMES)}), nor a folder of images, nor a CSV file of them."
        )
    return path

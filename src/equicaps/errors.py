"""Every error of this library, below one root; each is also the built-in error that people already catch.

The message says what was expected, what came, and what to do. Functions and constructors that only look at the type,
shape or range of an argument raise plain ``TypeError`` and ``ValueError``, as PyTorch does.
"""


class EquicapsError(Exception):
    """The root: ``except EquicapsError`` catches everything that this library raises on purpose."""


class UsageError(EquicapsError, ValueError):
    """The request cannot be carried out as it was made: an unknown name, or options that contradict each other."""


class NotFoundError(UsageError, FileNotFoundError):
    """A file, folder or data set that was asked for does not exist."""


class FileError(EquicapsError, OSError):
    """A file cannot be read or written."""


class DamagedFileError(FileError, ValueError):
    """A file is truncated, altered, or not what its name says."""


class DamagedFilesError(DamagedFileError):
    """Several files are; each has a line of the message, in which names are escaped."""


class FetchError(EquicapsError, OSError):
    """A file could not be downloaded from any of its sources."""


class MissingPackageError(EquicapsError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class TrainingError(EquicapsError, RuntimeError):
    """A training cannot continue."""


class WorkersError(EquicapsError, RuntimeError):
    """The processes or machines that compute have failed."""


class UnansweredError(EquicapsError, ArithmeticError):
    """A network computes something for an image that is not a finite number: that is no answer."""


class ExportError(EquicapsError, RuntimeError):
    """A network cannot be exported with the installed version of torch."""


class LawViolationError(EquicapsError, AssertionError):
    """A group or a layer breaks a law that it should obey."""

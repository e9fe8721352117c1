"""What can go wrong that is not a fault of the program: each message says what to do."""


class TrainingError(Exception):
    """The training cannot start or go on."""


class MisuseError(TrainingError):
    """Something impossible was asked for."""


class CheckpointError(TrainingError):
    """A file cannot be read or written."""


class DamagedCheckpointError(CheckpointError):
    """A file is truncated or altered."""

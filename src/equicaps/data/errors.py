"""What can go wrong with data files."""


class DamagedFileError(ValueError):
    """A file that is truncated, corrupted or something else than its name says; the message names it."""


class FetchError(OSError):
    """A file that could not be fetched from anywhere; the message says what was tried."""

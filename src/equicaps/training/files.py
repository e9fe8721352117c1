"""Files that are either whole or not there.

One safetensors file holds everything: tensors, and in its header a JSON text, the kind and version of the format and a
checksum. No pickle: a file from anywhere can be read without running anything from it.
"""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from equicaps.training.errors import CheckpointError, DamagedCheckpointError

VERSION = 1
_PREFIX = "equicaps "


def write_tensors(
    path: Path, kind: str, tensors: Mapping[str, Tensor], content: Mapping[str, Any], *, keep: Path | None = None
) -> None:
    """Write tensors and JSON content in one step: a reader sees the old file or the new one, whatever happens."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {
        "format": _PREFIX + kind,
        "version": str(VERSION),
        "content": json.dumps(content),
        "checksum": _checksum(plain, json.dumps(content)),
    }
    write_bytes(path, serialise(plain, header), keep=keep)


def write_bytes(path: Path, content: bytes, *, keep: Path | None = None) -> None:
    """Replace a file in one step; with ``keep`` the old one stays under that name.

    Between the two renames only ``keep`` exists: a reader tries both names.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if keep is not None and path.exists():
            os.replace(path, keep)
        os.replace(partial, path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise CheckpointError(explain(path, error)) from error


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`write_tensors` wrote; anything else is refused with the reason."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}.") from error
    header = _header(path, raw)
    found = header.get("format", "")
    if not found.startswith(_PREFIX):
        raise CheckpointError(f"{path} is a safetensors file, but was not written by equicaps.")
    version = header.get("version", "")
    if not version.isdecimal() or "content" not in header:
        raise DamagedCheckpointError(f"{path} is damaged: its header lacks what equicaps writes there.")
    if int(version) > VERSION:
        raise CheckpointError(
            f"{path} has format version {header['version']}, this equicaps reads up to {VERSION}: update equicaps."
        )
    if found != _PREFIX + kind:
        raise CheckpointError(f"{path} is an {found}, but an {_PREFIX}{kind} is needed.")
    try:
        tensors = deserialise(raw)
    except Exception as error:  # safetensors raises its own error, and KeyError for types it does not know
        raise DamagedCheckpointError(f"{path} is damaged or truncated ({error}).") from error
    if _checksum(tensors, header["content"]) != header.get("checksum"):
        raise DamagedCheckpointError(f"{path} is damaged: its content does not match its checksum.")
    try:
        content = json.loads(header["content"])
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: its description is not JSON.") from error
    if not isinstance(content, dict):
        raise DamagedCheckpointError(f"{path} is damaged: its description is not what equicaps writes.")
    return tensors, content


def explain(path: Path, error: OSError) -> str:
    """Why a file cannot be written, and what to do."""
    folder = path.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write {path}: the disk is full. Free some space; what was there before is untouched."
    if error.errno == errno.EFBIG:
        return f"cannot write {path}: it is larger than this system allows a file to be."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"cannot write {path}: {folder} is read-only for this user. Choose another folder."
    return f"cannot write {path}: {error.strerror or error}. Choose another folder."


def prepare_folder(folder: Path) -> None:
    """Create a folder and make sure, before hours of work, that files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot create the folder {folder}: {error.strerror or error}.") from error
    write_bytes(folder / ".writable", b"")
    (folder / ".writable").unlink(missing_ok=True)


def _header(path: Path, raw: bytes) -> dict[str, str]:
    """The metadata of a safetensors file: eight bytes of length, then JSON."""
    length = int.from_bytes(raw[:8], "little")
    if raw[8:9] != b"{":
        what = "is empty" if not raw else "is not a safetensors file"
        raise DamagedCheckpointError(f"{path} {what}: it was written by something else, or is damaged.")
    if len(raw) < 8 + length:
        raise DamagedCheckpointError(f"{path} is truncated: its header alone should have {length} bytes.")
    try:
        header = json.loads(raw[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpointError(f"{path} is damaged: its header is not JSON.") from error
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict):
        raise DamagedCheckpointError(f"{path} is damaged: its header is not what safetensors writes.")
    return {str(key): str(value) for key, value in metadata.items()}


def _checksum(tensors: Mapping[str, Tensor], content: str) -> str:
    digest = hashlib.blake2b(content.encode(), digest_size=16)
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system lets us."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

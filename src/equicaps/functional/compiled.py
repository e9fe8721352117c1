"""C code beside Python: compiled on first use by the system's compiler, kept in the user's cache, loaded with ctypes.

Nothing is compiled at installation. Without a compiler, or where anything goes wrong, there is no library, one line in
the log says so, and the callers use their implementation in torch. A library is kept under a key of its source, its
flags, the compiler and the CPU, and ends with a seal, a checksum of that key and of all bytes before it: a stale, cut
or damaged one is not loaded, which could end the program, but compiled again.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from torch import Tensor

from equicaps._cache import cache_folder

_log = logging.getLogger(__name__)
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC")
"""No -ffast-math: the order of sums matters, see the source."""
_LANES = {"avx512f": 16, "avx2": 8}
"""Instruction set -> floats in a vector; the best that the CPU has. Fused multiply-add comes with both."""
_SHARED = "vectors.h"
_SEAL = hashlib.sha256().digest_size
_TIMEOUT = 120.0  # seconds


@functools.cache
def library(name: str) -> ctypes.CDLL | None:
    """The library of ``functional/NAME.c``, compiled now if necessary; None where it cannot be had."""
    try:
        return _load(name)
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        reason = str(getattr(error, "stderr", None) or error).strip() or type(error).__name__
        what = name.replace("_", " ")
        _log.warning(
            "%s runs in torch, several times slower, because its fast version cannot be compiled here (%s).",
            what, reason.splitlines()[0],
        )  # fmt: skip
        return None


def address(tensor: Tensor) -> ctypes.c_void_p:
    """Where a tensor's values start, which must be contiguous."""
    return ctypes.c_void_p(tensor.data_ptr())


def _load(name: str) -> ctypes.CDLL:
    compiler = next(
        (found for word in (os.environ.get("CC"), "cc", "gcc", "clang") if word and (found := shutil.which(word))), None
    )
    if compiler is None:
        raise LookupError("no C compiler was found; install gcc or clang, or name one in CC")
    cpu = _cpu()
    lanes = next((width for feature, width in _LANES.items() if feature in cpu.split()), None)
    if lanes is None:
        raise LookupError("this CPU has neither AVX2 nor AVX-512")
    sources = {file: (files("equicaps.functional") / file).read_bytes() for file in (f"{name}.c", _SHARED)}
    version = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, timeout=_TIMEOUT, check=True
    ).stdout
    flags = (*_FLAGS, f"-DLANES={lanes}")
    key = hashlib.sha256(b"\0".join((*sources.values(), repr((flags, version, cpu)).encode()))).hexdigest()[:32]
    folder = cache_folder() / "kernels"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}-{key}.so"
    if not (_is_ours(path) and _is_sealed(path, key)):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / path.name
            for file, source in sources.items():
                (Path(scratch) / file).write_bytes(source)
            subprocess.run(
                [compiler, *flags, "-o", str(built), str(Path(scratch) / f"{name}.c"), "-lm"],
                capture_output=True, text=True, timeout=_TIMEOUT, check=True,
            )  # fmt: skip
            with open(built, "r+b") as made:
                made.write(_seal(made.read(), key))
                made.flush()
                os.fsync(made.fileno())
            built.chmod(0o700)  # whatever the umask
            os.replace(built, path)
        if not _is_sealed(path, key):  # the owner may be another one, as on some network drives
            path.unlink(missing_ok=True)
            raise LookupError(f"{path} changed while it was made and has been removed; the next program makes it again")
    return ctypes.CDLL(str(path))


def _is_ours(path: Path) -> bool:
    """Whether the file is there and nobody else could have written it."""
    if not path.is_file():
        return False
    status = path.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _is_sealed(path: Path, key: str) -> bool:
    """Whether the bytes of the file are those that were made under this key."""
    content = path.read_bytes()
    return content[-_SEAL:] == _seal(content[:-_SEAL], key)


def _seal(content: bytes, key: str) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _cpu() -> str:
    """What the code is compiled for: the CPU's features where Linux lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    features = next((line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()} {features}"

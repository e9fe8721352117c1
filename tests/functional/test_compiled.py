"""C code beside Python: compiled once, never stale, never necessary."""

import ctypes
import os
import shutil

import pytest

from equicaps.functional import compiled

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUICAPS_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def build():
    return compiled.library.__wrapped__("fused_routing")


def test_it_is_compiled_once_and_then_found(cache, monkeypatch):
    first = build()
    [made] = cache.iterdir()
    changed = made.stat().st_mtime_ns
    assert first.lanes() in (8, 16)
    assert build().lanes() == first.lanes()
    assert [made] == list(cache.iterdir())
    assert made.stat().st_mtime_ns == changed


def test_another_source_flag_or_cpu_is_another_library(cache, monkeypatch):
    build()
    monkeypatch.setattr(compiled, "_FLAGS", (*compiled._FLAGS, "-DOTHER"))
    build()
    assert len(list(cache.iterdir())) == 2
    cpu = compiled._cpu()
    monkeypatch.setattr(compiled, "_cpu", lambda: cpu + " other")
    build()
    assert len(list(cache.iterdir())) == 3


def test_a_library_that_is_not_what_its_name_says_is_not_used(cache, monkeypatch, caplog):
    """Another build under the right name: a stale or planted file."""
    build()
    [made] = cache.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "_FLAGS", (*compiled._FLAGS, "-DOTHER"))
        patch.setattr(os, "replace", lambda built, path: shutil.copy(made, path))
        assert build() is None
    assert "was not what its name says" in caplog.text
    assert [made] == list(cache.iterdir())  # the other one is removed


def test_a_file_that_others_can_write_is_compiled_again(cache):
    build()
    [made] = cache.iterdir()
    made.unlink()  # not written to: the one that is loaded is still in use
    made.write_bytes(b"")
    made.chmod(0o666)
    assert isinstance(build(), ctypes.CDLL)


def test_without_a_compiler_one_line_says_so(cache, monkeypatch, caplog):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert build() is None
    [record] = caplog.records
    assert "runs in torch, several times slower" in record.message
    assert "install gcc or clang" in record.message


def test_a_compiler_that_fails_is_no_error(cache, monkeypatch, caplog):
    monkeypatch.setattr(compiled, "_FLAGS", ("--no-such-flag",))
    assert build() is None
    assert "cannot be compiled here" in caplog.text
    assert list(cache.iterdir()) == []

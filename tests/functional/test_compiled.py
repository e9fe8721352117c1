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
    monkeypatch.setattr(compiled, "_FLAGS", ("-O0", *compiled._FLAGS[1:]))  # compiled in a fraction of the time
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


def damaged(made, content):
    """The same file with other bytes; not written to, because the one that is loaded is still in use."""
    mode = made.stat().st_mode
    made.unlink()
    made.write_bytes(content)
    made.chmod(mode)


@pytest.mark.parametrize("damage", ["empty", "cut", "a bit", "no library", "of another key"])
def test_a_file_that_is_not_what_was_made_is_compiled_again(cache, monkeypatch, damage, caplog):
    """A library that was cut short would end the program when it is loaded."""
    build()
    [made] = cache.iterdir()
    content = made.read_bytes()
    if damage == "of another key":  # intact, but stale under its name
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "_FLAGS", (*compiled._FLAGS, "-DOTHER"))
            build()
        [other] = set(cache.iterdir()) - {made}
        changed = other.read_bytes()
        other.unlink()
    else:
        flipped = content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]
        changed = {"empty": b"", "cut": content[:3000], "a bit": flipped, "no library": b"x" * len(content)}[damage]
    assert changed != content
    key = made.stem.split("-")[1]
    assert compiled._is_sealed(made, key)
    damaged(made, changed)
    assert not compiled._is_sealed(made, key)
    assert isinstance(build(), ctypes.CDLL)
    assert compiled._is_sealed(made, key)
    assert caplog.text == ""


def test_a_file_that_changes_while_it_is_made_is_not_used(cache, monkeypatch, caplog):
    monkeypatch.setattr(os, "replace", lambda built, path: path.write_bytes(built.read_bytes()[:3000]))
    assert build() is None
    assert "changed while it was made" in caplog.text
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_it_is_found_again_whatever_the_umask(cache, umask):
    before = os.umask(umask)
    try:
        build()
        [made] = cache.iterdir()
        changed = made.stat().st_mtime_ns
        build()
    finally:
        os.umask(before)
    assert made.stat().st_mtime_ns == changed


def test_a_file_that_others_can_write_is_compiled_again(cache):
    build()
    [made] = cache.iterdir()
    made.chmod(0o666)
    assert isinstance(build(), ctypes.CDLL)
    assert not made.stat().st_mode & 0o022


def test_where_files_belong_to_somebody_else_it_is_compiled_by_every_program(cache, monkeypatch, caplog):
    """As on network drives that map users; nothing that others could have written is loaded."""
    if not hasattr(os, "getuid"):
        pytest.skip("no users")
    build()
    [made] = cache.iterdir()
    changed = made.stat().st_mtime_ns
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert isinstance(build(), ctypes.CDLL)
    assert made.stat().st_mtime_ns != changed
    assert caplog.text == ""


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

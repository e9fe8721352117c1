"""An archive that several processes of one training ask for at the same moment."""

import io
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from equicaps.data import archive
from equicaps.data.archive import fetch_from_zip
from equicaps.errors import FetchError

FILES = ("one.txt", "folder/two.txt")


@pytest.fixture
def packed(server):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for file in FILES:
            zipped.writestr(f"deep/inside/{file.split('/')[-1]}", f"content of {file}")
    server.files["archive.zip"] = content.getvalue()
    return server


def at_once(count, function):
    """Each in a thread of its own; a lock on a file holds between them as between processes."""
    barrier = Barrier(count)

    def run(_):
        barrier.wait()
        return function()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_one_fetches_and_unpacks_while_the_others_wait(packed, tmp_path, monkeypatch):
    """Unpacking takes a while: who comes in between finds neither half of the files nor a missing archive."""
    read = archive.read_member
    monkeypatch.setattr(archive, "read_member", lambda *given: time.sleep(0.1) or read(*given))

    def fetch():
        fetch_from_zip(f"{packed.url}archive.zip", None, tmp_path, FILES)
        return [(tmp_path / file).read_text() for file in FILES]

    assert at_once(4, fetch) == [[f"content of {file}" for file in FILES]] * 4
    assert [name for name, _ in packed.requests] == ["archive.zip"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "folder", "one.txt"]


def test_a_file_that_is_not_in_the_archive_is_named_and_the_lock_is_free_again(packed, tmp_path):
    for _ in range(2):
        with pytest.raises(FetchError, match=r"no three.txt in .*archive.zip"):
            fetch_from_zip(f"{packed.url}archive.zip", None, tmp_path, [*FILES, "three.txt"])

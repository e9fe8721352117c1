"""Images in a store: on a small server that speaks S3, and by file:// addresses."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from equicaps.errors import FileError, NotFoundError

pytest.importorskip("pyarrow", reason="addresses need pyarrow: pip install 'equicaps[parquet]'")
from equicaps.images.remote import read_remote, remote_images

OBJECTS = {
    "scans/b/2.png": b"two", "scans/a b.png": b"one", "scans/b.txt": b"text", "scans/.x.png": b"hidden",
    "notes/b.txt": b"text",
}  # fmt: skip
FOUND = ["scans/a%20b.png", "scans/b/2.png"]


class Store(BaseHTTPRequestHandler):
    """The part of S3 that reading needs: listing a bucket, and getting an object or a range of it."""

    def do_GET(self):
        address = urlsplit(self.path)
        bucket, _, key = unquote(address.path).lstrip("/").partition("/")
        if bucket != "bucket":
            self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        elif not key:
            self.answer(200, listing(parse_qs(address.query)))
        elif key in OBJECTS:
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            content = OBJECTS[key][int(first) : int(last) + 1 if last else None]
            self.answer(206 if "Range" in self.headers else 200, content)
        else:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_HEAD = do_GET  # noqa: N815

    def answer(self, code, content):
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *words):
        pass


def listing(query):
    prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    inside = [key for key in sorted(OBJECTS) if key.startswith(prefix)]
    folders = {key[: key.index("/", len(prefix)) + 1] for key in inside if delimiter and "/" in key[len(prefix) :]}
    keys = [key for key in inside if not any(key.startswith(folder) for folder in folders)]
    entries = [
        f"<Contents><Key>{escape(key)}</Key><Size>{len(OBJECTS[key])}</Size>"
        "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    ] + [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
    count = f"<KeyCount>{len(entries)}</KeyCount><IsTruncated>false</IsTruncated>"
    return f"<ListBucketResult><Name>bucket</Name>{count}{''.join(entries)}</ListBucketResult>".encode()


@pytest.fixture
def bucket():
    """The address of the bucket as a function of what is in it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = f"scheme=http&region=us-east-1&endpoint_override=127.0.0.1%3A{server.server_port}"
        yield lambda path: f"s3://key:secret@bucket/{path}?{options}"
        server.shutdown()


def test_the_images_of_a_bucket_are_listed_and_read(bucket):
    found = list(remote_images(bucket("scans")))
    assert found == [bucket(path) for path in FOUND]
    assert [read_remote(address) for address in found] == [b"one", b"two"]
    assert list(remote_images(bucket("scans/b.txt"))) == [bucket("scans/b.txt")]  # asked for by its own name


def test_files_by_their_addresses_are_those_of_the_folder(tmp_path):
    for name, content in OBJECTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = list(remote_images((tmp_path / "scans").as_uri()))
    assert found == [f"file://{quote(str(tmp_path))}/{path}" for path in FOUND]
    assert [read_remote(address) for address in found] == [b"one", b"two"]


def test_what_is_not_there_is_said(bucket):
    with pytest.raises(NotFoundError, match="does not exist"):
        list(remote_images(bucket("nowhere")))
    with pytest.raises(NotFoundError, match="holds no image"):
        list(remote_images(bucket("notes")))
    with pytest.raises(OSError, match="nowhere"):
        read_remote(bucket("nowhere.png"))
    with pytest.raises(FileError, match="cannot list strange://x"):
        list(remote_images("strange://x"))

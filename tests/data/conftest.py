import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch, tmp_path_factory):
    """No data folder, an empty cache, no network: a test that needs one of them says so."""
    monkeypatch.delenv("EQUICAPS_DATA", raising=False)
    monkeypatch.setenv("EQUICAPS_CACHE", str(tmp_path_factory.mktemp("data") / "cache"))
    monkeypatch.setenv("EQUICAPS_OFFLINE", "1")


class Server:
    """A mirror on this machine that records the names it is asked for; `cut` ends connections after so many bytes."""

    def __init__(self):
        self.files, self.requests, self.cut = {}, [], None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answer(self, handler):
        self.requests.append(handler.path[1:])
        content = self.files.get(handler.path[1:])
        if content is None:
            return handler.send_error(404)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: self.cut])
        return None

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()

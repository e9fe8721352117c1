"""Hostile requests to the page, on this machine's loopback."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Generator
from pathlib import Path
from random import Random

from serving import untrained

from attack.damage import damaged
from equicaps.serve import Playground, listen, make_app, make_server

METHODS = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT", "XYZ", "get", "")
PATHS = ("/", "/api/model", "/api/digits", "/api/answer", "/api/picture", "/api/picture?centre=maybe",
         "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//evil", "/style.css", "*",
         "/api/answer\x00", "/\udcff", "/" + "a" * 70_000)  # fmt: skip
VALUES = ("nan", 1e999, -1, 2**70, None, "x", [], {}, [[0.0]], True, "\x1b[2J")


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Every request gets a status or the connection is closed; the page still answers afterwards."""
    with listen(0) as on:
        port = on.getsockname()[1]
        server = make_server(make_app(Playground(untrained("steerable"), untrained("plain_cnn"))))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            complaints = _complaints()
            for number in range(count):
                found = sent(port, hostile(random, port))
                alive = (number + 1) % 50 and number + 1 < count
                yield found or (None if alive or is_alive(port) else "the page answers no more")
            yield from (f"the server complains: {text}" for text in complaints)
        finally:
            server.should_exit = True
            thread.join()


def _complaints() -> list[str]:
    """The errors that the server will log."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    return found


def sent(port: int, content: bytes) -> str | None:
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
        connection.sendall(content)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except TimeoutError:
            return f"no answer to {content[:100]!r}"
        status = answer.split(b" ", 2)[1:2]
        if status and ((status[0][:1] == b"5" and status[0] != b"503") or b"Traceback" in answer):
            return f"{answer[:200]!r} to {content[:100]!r}"
    return None


def is_alive(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
        connection.sendall(f"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return connection.recv(100).startswith(b"HTTP/1.1 200")


def hostile(random: Random, port: int) -> bytes:
    body = _body(random)
    headers = {
        "Host": random.choice(
            (f"127.0.0.1:{port}", f"localhost:{port}", f"localhost:{port}", "evil.example", "", "[::1", "127.0.0.1:1")
        ),
        "Content-Type": random.choice(("application/json", "image/png", "text/plain", "", "image/" + "x" * 500)),
        "Content-Length": random.choice(
            (str(len(body)), str(len(body)), str(len(body)), "-1", "0", "1e9", str(2**63), "x")
        ),
    }
    extra = {
        "Origin": random.choice((f"http://127.0.0.1:{port}", "http://127.0.0.1:1", "null", "http://evil.example", "://")),
        "Transfer-Encoding": random.choice(("chunked", "gzip", "chunked, chunked")),
        "Expect": "100-continue",
        "Connection": random.choice(("close", "keep-alive", "upgrade")),
        "Upgrade": "websocket",
        "Sec-Fetch-Site": random.choice(("cross-site", "same-origin", "none", "x")),
        "X" * random.randrange(1, 300): "y" * random.randrange(3000),
        "Cookie": "\x00\x01",
    }  # fmt: skip
    for name in random.sample(list(extra), random.randrange(3)):
        headers[name] = extra[name]
    lines = [f"{random.choice(METHODS)} {random.choice(PATHS)} HTTP/{random.choice(('1.1', '1.1', '1.0', '2.0', 'x'))}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    content = "\r\n".join([*lines, "", ""]).encode(errors="surrogateescape") + body
    return damaged(random, content) if random.random() < 0.3 else content


def _body(random: Random) -> bytes:
    kind = random.random()
    if kind < 0.6:
        pixels = [random.random() for _ in range(random.choice((784, 1024, 10, 0)))]
        question = {
            "pixels": pixels,
            "degrees": random.choice((0, 90.0, *VALUES)),
            "model": random.choice(("x", None, 3)),
        }
        if random.random() < 0.5:
            question[random.choice(list(question))] = random.choice(VALUES)
        return json.dumps(question).encode()
    if kind < 0.7:
        return b"[" * random.choice((10, 100_000))
    return random.randbytes(random.randrange(2000))

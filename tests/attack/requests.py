"""Hostile requests to the page, on this machine's loopback."""

import contextlib
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image
from serving import untrained
from small_shapes import point_model

from attack.damage import damaged
from equicaps.serve import Limits, Playground, ShapePlayground, listen, make_app, make_server

JSON, BINARY = "application/json", "application/octet-stream"
METHODS = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT", "XYZ", "get", "")
PATHS = ("/", "/api/model", "/api/digits", "/api/answer", "/api/picture", "/api/picture?centre=maybe",
         "/api/shapes", "/api/shapes/answer", "/api/shapes/file", "/api/shapes/file?kind=ply",
         "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//evil", "/style.css", "*",
         "/api/answer\x00", "/\udcff", "/" + "a" * 70_000)  # fmt: skip
HOSTS = ("evil.example", "", "[::1", "127.0.0.1:1")
LENGTHS = ("-1", "0", "1e9", str(2**63), "x")
VALUES = ("nan", 1e999, -1, 2**70, None, "x", [], {}, [[0.0]], True, "\x1b[2J")


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Every request gets a status or the connection is closed; the page still answers what is right."""
    with listen(0) as on:
        port = on.getsockname()[1]
        limits = Limits(head_seconds=0.5, body_seconds=0.5)
        shapes = ShapePlayground(point_model())
        playground = Playground(untrained("steerable"), untrained("plain_cnn"), shapes=shapes)
        server = make_server(make_app(playground, limits), limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            complaints = _complaints()
            for number in range(count):
                found = sent(port, hostile(random, port), hang_up=random.random() < 0.3)
                due = (number + 1) % 50 == 0 or number + 1 == count
                yield found or ("the page answers no more" if due and not is_alive(random, port) else None)
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


def sent(port: int, content: bytes, *, hang_up: bool = True) -> str | None:
    """What is wrong with the answer."""
    answer = answered(port, content, hang_up=hang_up)
    if answer is None:
        return f"no answer to {content[:100]!r}"
    status = answer.split(b" ", 2)[1:2]
    if status and ((status[0][:1] == b"5" and status[0] != b"503") or b"Traceback" in answer):
        return f"{answer[:200]!r} to {content[:100]!r}"
    return None


def answered(port: int, content: bytes, *, hang_up: bool = False) -> bytes | None:
    """What comes until the connection is closed; None if it is not closed.

    With ``hang_up``, the server is told that nothing more will be sent, and need not answer.
    """
    answer = b""
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
        connection.sendall(content)
        if hang_up:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        try:
            while part := connection.recv(65536):
                answer += part
        except TimeoutError:
            return None
    return answer


def is_alive(random: Random, port: int) -> bool:
    """Whether questions, images and shapes are answered."""
    requests = [polite(random, port) for _ in range(4)]
    return all((answered(port, request) or b"").startswith(b"HTTP/1.1 200") for request in requests)


def hostile(random: Random, port: int) -> bytes:
    """Half of them are right but for one part, so that they come as far as that part; a few are right."""
    return _nearly_right(random, port) if random.random() < 0.5 else _wrong(random, port)


def polite(random: Random, port: int) -> bytes:
    """A question or a file, as the page sends it."""
    return _written(*_right(random, port))


def _right(random: Random, port: int) -> tuple[str, dict[str, str], bytes]:
    path, media, body = random.choice(
        (
            ("/api/answer", JSON, json.dumps(_question(random)).encode()),
            ("/api/shapes/answer", JSON, json.dumps(_shape_question(random)).encode()),
            ("/api/picture?centre=true", "image/png", _image(random)),
            _shape_file(random),
        )
    )
    headers = {"Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}", "Connection": "close"}
    return f"POST {path} HTTP/1.1", {**headers, "Content-Type": media, "Content-Length": str(len(body))}, body


def _written(line: str, headers: dict[str, str], body: bytes) -> bytes:
    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
    return head.encode(errors="surrogateescape") + body


def _nearly_right(random: Random, port: int) -> bytes:
    line, headers, body = _right(random, port)
    part = random.choice(("none", "body", "body", "body", "length", "header", "line"))
    if part == "body":
        if headers["Content-Type"] == JSON:
            body = (_wrong_shape_question if "shapes" in line else _wrong_question)(random)
        else:
            body = damaged(random, body)
        headers["Content-Length"] = str(len(body))
    elif part == "length":
        headers["Content-Length"] = random.choice(LENGTHS)
    elif part == "header":
        headers |= [_extra(random, port), {"Host": random.choice(HOSTS)}][random.random() < 0.3]
    elif part == "line":
        line = line.replace("POST", random.choice(METHODS)).replace("true", random.choice(("maybe", "\udcff", "1")))
    return _written(line, headers, body)


def _question(random: Random) -> dict[str, Any]:
    return {"pixels": [random.random() for _ in range(784)], "degrees": random.uniform(-180, 180), "model": None}


def _wrong_question(random: Random) -> bytes:
    question: Any = _question(random)
    kind = random.choice(("field", "pixel", "length", "depth", "text"))
    if kind == "field":
        question[random.choice(["pixels", "degrees", "model", "other"])] = random.choice(VALUES)
    elif kind == "pixel":
        question["pixels"][random.randrange(784)] = random.choice(VALUES)
    elif kind == "length":
        question["pixels"] = question["pixels"][: random.randrange(784)] * random.choice((1, 3))
    elif kind == "depth":
        return b"[" * random.choice((10, 10_000))
    text = json.dumps(question).encode()
    return damaged(random, text) if kind == "text" else text


def _shape_question(random: Random) -> dict[str, Any]:
    return {"points": [[random.gauss() for _ in range(3)] for _ in range(random.choice((1, 20, 300)))]}


def _wrong_shape_question(random: Random) -> bytes:
    question: Any = _shape_question(random)
    kind = random.choice(("field", "point", "coordinate", "length", "text"))
    if kind == "field":
        question[random.choice(["points", "other"])] = random.choice(VALUES)
    elif kind == "point":
        question["points"][0] = random.choice(VALUES)
    elif kind == "coordinate":
        question["points"][-1][random.randrange(3)] = random.choice(VALUES)
    elif kind == "length":
        question["points"] = question["points"] * random.choice((0, 301))
    text = json.dumps(question).encode()
    return damaged(random, text) if kind == "text" else text


def _shape_file(random: Random) -> tuple[str, str, bytes]:
    """The path to send it to, its type and its content; a triangle, or random points."""
    corners = [[random.gauss() for _ in range(3)] for _ in range(3)]
    lines = "\n".join(" ".join(map(str, corner)) for corner in corners)
    file = io.BytesIO()
    np.save(file, corners)
    header = "ply\nformat ascii 1.0\nelement vertex 3\n" + "".join(f"property float {axis}\n" for axis in "xyz")
    kind, content = random.choice(
        (
            ("xyz", lines.encode()),
            ("npy", file.getvalue()),
            ("off", f"OFF\n3 1 0\n{lines}\n3 0 1 2\n".encode()),
            ("ply", f"{header}end_header\n{lines}\n".encode()),
        )
    )
    return f"/api/shapes/file?kind={kind}", BINARY, content


def _image(random: Random) -> bytes:
    file = io.BytesIO()
    Image.frombytes("L", (40, 30), random.randbytes(1200)).save(file, "PNG")
    return file.getvalue()


def _extra(random: Random, port: int) -> dict[str, str]:
    """Some headers that a page would not send."""
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
    return {name: extra[name] for name in random.sample(list(extra), random.randrange(3))}


def _wrong(random: Random, port: int) -> bytes:
    body = random.choice((_wrong_question(random), random.randbytes(random.randrange(2000))))
    line = f"{random.choice(METHODS)} {random.choice(PATHS)} HTTP/{random.choice(('1.1', '1.1', '1.0', '2.0', 'x'))}"
    headers = {
        "Host": random.choice((f"127.0.0.1:{port}", f"localhost:{port}", *HOSTS)),
        "Content-Type": random.choice(("application/json", "image/png", "text/plain", "", "image/" + "x" * 500)),
        "Content-Length": random.choice((str(len(body)), *LENGTHS)),
    }
    content = _written(line, headers | _extra(random, port), body)
    return damaged(random, content) if random.random() < 0.3 else content

"""Connections on which no request arrives: they are closed in time, and keep nobody out until then."""

import contextlib
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from serving import served, untrained

from equicaps.serve import Limits, Playground

SOON = 10.0
"""Seconds in which things happen at the latest, on a busy machine."""


@pytest.fixture(scope="module")
def small():
    """A playground whose pictures are 3x3."""
    return Playground(untrained("steerable", frame=3))


@pytest.fixture(scope="module")
def crowded(small):
    """A server with few places, which would wait long for a request."""
    limits = Limits(connections=6, connections_of_a_client=4, head_seconds=60.0, body_seconds=60.0)
    with served(small, limits) as address:
        yield address


@pytest.fixture(scope="module")
def hasty(small):
    """A server with short time-outs."""
    with served(small, Limits(head_seconds=0.5, body_seconds=0.5, request_seconds=1.5)) as address:
        yield address


@pytest.fixture
def begun(connect):
    """Opens connections and sends half a head."""
    return lambda address, *source: connect(address, *source).head("GET /")


def test_half_open_connections_do_not_keep_a_browser_out(crowded, begun):
    wires = [begun(crowded) for _ in range(20)]
    assert httpx.get(crowded, timeout=SOON).status_code == 200
    assert [wire.is_open for wire in wires] == [False] * 17 + [True] * 3  # the fourth place was the browser's


def test_half_sent_bodies_do_not_keep_a_browser_out(crowded, connect):
    wires = [connect(crowded).head("POST /api/answer", "Content-Length: 99").send("\r\n{") for _ in range(20)]
    assert httpx.get(crowded, timeout=SOON).status_code == 200
    assert not wires[0].is_open


def test_with_room_for_all_none_is_closed(small, begun):
    """Control: it is the limit that closes them."""
    with served(small, Limits(head_seconds=60.0)) as address:
        wires = [begun(address) for _ in range(20)]
        assert httpx.get(address, timeout=SOON).status_code == 200
        assert all(wire.is_open for wire in wires)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere this machine has no second local address")
def test_one_client_takes_the_places_of_no_other(crowded, begun):
    """Each client may have four of the six connections; a client is an address."""
    others = [begun(crowded, "127.0.0.2") for _ in range(2)]
    mine = [begun(crowded) for _ in range(12)]
    assert httpx.get(crowded, timeout=SOON).status_code == 200
    assert all(wire.is_open for wire in others)  # though they have waited longest
    assert not mine[0].is_open
    more = [begun(crowded, "127.0.0.2") for _ in range(2)]  # theirs; now those of all are too many
    assert httpx.get(crowded, timeout=SOON).status_code == 200
    assert all(wire.is_open for wire in more)


def trickled(wire, text, pause=0.05):
    """Send a text byte by byte; gives how many seconds it took until the other side closed the connection."""
    started = time.monotonic()
    try:
        for letter in text:
            wire.send(letter)
            time.sleep(pause)
            if time.monotonic() - started > SOON:
                pytest.fail("the connection is still open")
    except ConnectionError:
        pass
    return time.monotonic() - started


@pytest.mark.parametrize(
    "text", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\n"], ids=["none", "line", "head"]
)
def test_a_connection_without_a_request_is_closed(hasty, text, connect):
    started = time.monotonic()
    assert connect(hasty).send(text).read() == ""
    assert 0.4 < time.monotonic() - started < SOON


def test_a_head_that_comes_byte_by_byte_is_too_late(hasty, connect):
    """The deadline holds for the whole: a connection that is never quiet for long is closed, too."""
    assert 0.4 < trickled(connect(hasty).head("GET /"), "X-Slow: " + 200 * "x") < SOON


def test_so_is_the_second_head_on_a_connection(hasty, connect):
    wire = connect(hasty).head("GET /api/model").send("\r\n")
    assert wire.socket.recv(100).startswith(b"HTTP/1.1 200")
    assert 0.4 < trickled(wire, "GET / HTTP/1.1\r\nX-Slow: " + 200 * "x") < SOON


def test_a_head_in_two_parts_is_in_time(hasty, connect):
    """Control: not every pause is too long."""
    wire = connect(hasty).head("GET /api/model", "Connection: close")
    time.sleep(0.1)
    assert wire.send("\r\n").read().startswith("HTTP/1.1 200")


def test_a_body_that_comes_byte_by_byte_is_refused(hasty, connect):
    wire = connect(hasty).head("POST /api/answer", "Content-Type: application/json", "Content-Length: 300").send("\r\n")
    assert 0.4 < trickled(wire, 300 * " ") < SOON
    found = connect(hasty).head("POST /api/answer", "Content-Type: application/json", "Content-Length: 9").send("\r\n")
    reply = found.read()
    assert reply.startswith("HTTP/1.1 408")
    assert "the request did not arrive within 0.5 seconds" in reply


def test_who_does_not_read_the_responses_keeps_no_browser_out(crowded, connect):
    wires = [connect(crowded) for _ in range(4)]
    for wire in wires:
        wire.socket.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            for _ in range(10**4):
                wire.socket.send(50 * f"GET /page.js HTTP/1.1\r\nHost: {wire.place}\r\n\r\n".encode())
    until, found = time.monotonic() + SOON, None
    while found is None and time.monotonic() < until:  # a slow server notices only when nothing more can be sent
        with contextlib.suppress(httpx.TransportError):
            found = httpx.get(crowded, timeout=SOON).status_code
    assert found == 200


@pytest.mark.parametrize(("pause", "cut_off"), [(2.5, True), (0.0, False)], ids=["too late", "control"])
def test_who_does_not_read_the_responses_is_cut_off(hasty, connect, pause, cut_off):
    """Requests one after the other, whose responses fill everything between the server and the client."""
    wire, sent = connect(hasty), 0
    request = f"GET /page.js HTTP/1.1\r\nHost: {wire.place}\r\n\r\n"
    wire.socket.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while sent < 10**5:
            sent += wire.socket.send(50 * request.encode())
    wire.socket.settimeout(20)
    time.sleep(pause)
    answered = wire.read().count("HTTP/1.1 200")
    assert answered > 10
    assert (answered < sent // len(request)) == cut_off


def test_a_request_whose_body_ends_early_is_not_answered(small, monkeypatch, connect):
    """What has arrived of it must not be taken for the whole."""
    asked = []
    monkeypatch.setattr(small, "picture", lambda content, *, centre: asked.append(content))
    with served(small) as address:
        for length in (4, 3):  # control: the complete one arrives
            lines = (f"Content-Length: {length}", "Content-Type: image/png", "Connection: close")
            wire = connect(address).head("POST /api/picture", *lines).send("\r\nabc")
            wire.socket.shutdown(socket.SHUT_WR) if length == 3 else wire.socket.close()
        wire.read()
    assert asked == [b"abc"]


IMAGE = {"Content-Type": "image/png"}


def test_half_sent_images_make_room_for_others(small, connect):
    """The oldest is given up, and told so."""
    with served(small, Limits(uploads=2)) as address:
        lines = ("Content-Type: image/png", "Content-Length: 9")
        wires = [connect(address).head("POST /api/picture", *lines).send("\r\n") for _ in range(2)]
        assert all(wire.is_open for wire in wires)
        answered = httpx.post(f"{address}/api/picture", content=b"x", headers=IMAGE)
        assert answered.status_code == 422  # it was looked at, and is no image
        assert wires[1].is_open
        assert "others needed its place" in wires[0].read()


def test_no_more_images_are_read_at_once_than_there_is_memory_for(small, monkeypatch):
    """Who is refused is told so, however long the image is that it sends."""
    looked, done = threading.Semaphore(0), threading.Event()

    def slow(content, *, centre):
        looked.release()
        done.wait(SOON)
        raise ValueError("no image")

    monkeypatch.setattr(small, "picture", slow)

    def upload(address):
        return httpx.post(f"{address}/api/picture", content=bytes(7 * 10**6), headers=IMAGE, timeout=2 * SOON)

    with served(small, Limits(uploads=2)) as address, ThreadPoolExecutor() as pool:
        uploads = [pool.submit(upload, address) for _ in range(2)]
        assert looked.acquire(timeout=SOON)
        time.sleep(0.3)  # until the second is there as well
        refused = upload(address)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert "too many files" in refused.json()["detail"]
        question = httpx.post(f"{address}/api/answer", json={"pixels": [0] * 9})  # takes little memory
        assert question.status_code == 200
        done.set()
        assert [found.result().status_code for found in uploads] == [422, 422]
        assert httpx.post(f"{address}/api/picture", content=b"x", headers=IMAGE).status_code == 422


def test_a_long_question_is_refused_before_it_is_parsed(small):
    with served(small) as address:
        spaces = httpx.post(f"{address}/api/answer", content=b" " * 5000)
        assert (spaces.status_code, spaces.json()["detail"]) == (413, "the request is longer than 4,672 bytes.")

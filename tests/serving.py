"""For the tests of the page: untrained models (labels mean nothing, guarantees hold) and a server in a thread."""

import contextlib
import socket
import threading

import torch

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.models import GroupCapsNet
from equicaps.serve import Limits, listen, make_app, make_server


def untrained(preset, *, classes="0123456789", frame=28, channels=1, decoder=False):
    """A model with random weights whose normalisation has seen some digits."""
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset(preset, num_classes=len(classes), in_channels=channels, decoder=decoder)
    images = rotate(embedded_digits("train").images[:16], torch.zeros(16), 32)
    network.train()(images.expand(-1, channels, -1, -1))
    return PoseModel(network, Card("untrained", "a test", "", tuple(classes), (0.0,) * len(classes), frame=frame))


@contextlib.contextmanager
def running(playground, limits=None):
    """Run the app in a thread; gives the server and its address."""
    limits = limits or Limits()
    with listen(0) as on:
        server = make_server(make_app(playground, limits), limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        try:
            yield server, f"http://127.0.0.1:{on.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def served(playground, limits=None):
    """Run the app in a thread; gives its address."""
    with running(playground, limits) as (_, address):
        yield address


class Wire:
    """A bare connection to a server, for requests that no client would make."""

    def __init__(self, address, source="127.0.0.1"):
        self.place = address.removeprefix("http://")
        host, port = self.place.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))

    def send(self, text):
        self.socket.sendall(text.encode())
        return self

    def head(self, request, *lines):
        """Send a request line and headers, without the blank line at their end."""
        return self.send("\r\n".join([f"{request} HTTP/1.1", f"Host: {self.place}", *lines, ""]))

    def read(self):
        """All that comes until the other side closes the connection."""
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := self.socket.recv(10**5):
                parts.append(part)
        return b"".join(parts).decode()

    @property
    def is_open(self):
        """Whether the other side has not closed the connection; only if it has sent nothing."""
        self.socket.settimeout(0.05)
        try:
            return self.socket.recv(1) != b""
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self.socket.settimeout(20)

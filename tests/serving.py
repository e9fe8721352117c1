"""Shared by the tests of the page: untrained networks (labels mean nothing, guarantees hold), a server in a thread."""

import contextlib
import threading

import torch

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.models import GroupCapsNet
from equicaps.serve import listen, make_app, make_server


def untrained(preset, *, classes="0123456789", frame=28, channels=1, decoder=False):
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset(preset, num_classes=len(classes), in_channels=channels, decoder=decoder)
    images = rotate(embedded_digits("train").images[:16], torch.zeros(16), 32)
    network.train()(images.expand(-1, channels, -1, -1))
    return PoseModel(network, Card("untrained", "a test", "", tuple(classes), (0.0,) * len(classes), frame=frame))


@contextlib.contextmanager
def served(answers):
    """The address at which the app answers meanwhile."""
    with listen(0) as on:
        server = make_server(make_app(answers))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{on.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

"""For the tests of the page: untrained models (labels mean nothing, guarantees hold) and a server in a thread."""

import contextlib
import threading

import torch

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.models import GroupCapsNet
from equicaps.serve import listen, make_app, make_server


def untrained(preset, *, classes="0123456789", frame=28, channels=1, decoder=False):
    """A model with random weights whose normalisation has seen some digits."""
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset(preset, num_classes=len(classes), in_channels=channels, decoder=decoder)
    images = rotate(embedded_digits("train").images[:16], torch.zeros(16), 32)
    network.train()(images.expand(-1, channels, -1, -1))
    return PoseModel(network, Card("untrained", "a test", "", tuple(classes), (0.0,) * len(classes), frame=frame))


@contextlib.contextmanager
def served(playground):
    """Run the app in a thread; gives its address."""
    with listen(0) as on:
        server = make_server(make_app(playground))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{on.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

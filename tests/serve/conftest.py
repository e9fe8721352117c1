"""A real server on a real socket, which offers our network and the paper's."""

from dataclasses import replace

import httpx
import pytest
from serving import Wire, served, untrained

from equicaps.inference import PoseModel
from equicaps.serve import Playground


@pytest.fixture(scope="session")
def paper():
    """The paper's network: five layers, here without a decoder, and with a name of its own."""
    model = untrained("paper")
    return PoseModel(model.network, replace(model.card, name="untrained-paper"))


@pytest.fixture(scope="session")
def playground(paper):
    return Playground(untrained("steerable", decoder=True), untrained("plain_cnn"), [paper])


@pytest.fixture(scope="session")
def address(playground):
    with served(playground) as found:
        yield found


@pytest.fixture(scope="session")
def client(address):
    with httpx.Client(base_url=address) as found:
        yield found


@pytest.fixture
def connect():
    """Opens bare connections, which are closed after the test."""
    made = []

    def make(address, source="127.0.0.1"):
        made.append(Wire(address, source))
        return made[-1]

    yield make
    for wire in made:
        wire.socket.close()

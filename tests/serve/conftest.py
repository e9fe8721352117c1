"""A real server on a real socket, which offers our network and the paper's."""

from dataclasses import replace

import httpx
import pytest
from browsing import CHROMIUM, Page
from playwright.sync_api import sync_playwright
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


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, request):
    pages = []

    def make(address=None, **options):
        """Open the page of the real command, or the one at an address."""
        address = address or request.getfixturevalue("server")
        pages.append((address.partition("#")[0], Page(browser, address, **options)))
        return pages[-1][1]

    yield make
    for address, page in pages:
        assert page.messages == []
        assert page.requests
        assert all(url.startswith(address) for url in page.requests)  # nothing leaves this machine
        page.context.close()

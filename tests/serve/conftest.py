"""A real server on a real socket."""

import httpx
import pytest
from serving import served, untrained

from equicaps.serve import Playground


@pytest.fixture(scope="session")
def playground():
    return Playground(untrained("steerable", decoder=True), untrained("plain_cnn"))


@pytest.fixture(scope="session")
def address(playground):
    with served(playground) as found:
        yield found


@pytest.fixture(scope="session")
def client(address):
    with httpx.Client(base_url=address) as found:
        yield found

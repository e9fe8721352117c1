"""The real server on a real socket."""

import httpx
import pytest
from serving import served, untrained

from equicaps.serve import Answers


@pytest.fixture(scope="session")
def answers():
    return Answers(untrained("steerable", decoder=True), untrained("plain_cnn"))


@pytest.fixture(scope="session")
def address(answers):
    with served(answers) as found:
        yield found


@pytest.fixture(scope="session")
def client(address):
    with httpx.Client(base_url=address) as found:
        yield found

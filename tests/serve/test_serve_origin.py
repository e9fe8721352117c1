"""Who may ask: the page itself and programs on this machine, but no page from elsewhere."""

import pytest
from starlette.datastructures import Headers

from equicaps.serve.origin import refusal


def refused(response, code, message):
    assert response.status_code == code, response.text
    assert message in response.json()["detail"], response.text
    return True


@pytest.fixture(scope="module")
def port(address):
    return int(address.rpartition(":")[2])


@pytest.fixture(scope="module")
def question(client):
    return {"pixels": client.get("/api/digits").json()[0]["pixels"]}


@pytest.mark.parametrize(
    "host", ["evil.example:PORT", "127.0.0.1.evil.example:PORT", "192.168.0.1:PORT", "[::1]:PORT", "[::1", "a:b:c", "",
             "127.0.0.1", "localhost", "127.0.0.1:1", "localhost:80", "127.0.0.1:PORT0", "u@127.0.0.1:PORT"],
)  # fmt: skip
def test_other_names_and_ports_are_refused(client, port, host):
    """A foreign host name that resolves to 127.0.0.1 (DNS rebinding) gets no answer, nor does another port."""
    response = client.get("/api/model", headers={"Host": host.replace("PORT", str(port))})
    assert refused(response, 421, f"answers only to 127.0.0.1:{port} and localhost:{port}")


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT"])
def test_the_names_of_this_server_are_accepted(client, port, host):
    assert client.get("/api/model", headers={"Host": host.replace("PORT", str(port))}).status_code == 200


def test_a_rebound_page_gets_no_answer(client, question, port):
    """To its browser the page and this server are one origin, http://evil.example: only the Host reveals it."""
    headers = {
        "Host": f"evil.example:{port}",
        "Origin": f"http://evil.example:{port}",
        "Sec-Fetch-Site": "same-origin",
    }
    assert refused(client.post("/api/answer", json=question, headers=headers), 421, "answers only to")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://[", "", "http://127.0.0.1", "http://localhost:1", "http://127.0.0.1:PORT0",
     "https://127.0.0.1:PORT", "http://127.0.0.1:PORT/", "http://127.0.0.1:PORT.evil.example"],
)  # fmt: skip
def test_requests_from_other_pages_are_refused(client, question, port, origin):
    """Also from one on another port of this machine."""
    headers = {"Origin": origin.replace("PORT", str(port))}
    assert refused(client.post("/api/answer", json=question, headers=headers), 403, "other pages")
    assert refused(client.get("/api/model", headers=headers), 403, "other pages")


@pytest.mark.parametrize("site", ["same-site", "cross-site", "nonsense"])
def test_what_the_browser_says_of_a_request_counts(client, question, port, site):
    """Pages on two ports of this machine are one site; links from elsewhere, which only read, are let in."""
    own = {"Origin": f"http://localhost:{port}", "Sec-Fetch-Site": site}
    assert refused(client.post("/api/answer", json=question, headers=own), 403, "other pages")
    assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("more", [{"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}], ids=str)
def test_the_page_itself_is_answered(client, question, port, name, more):
    headers = {"Origin": f"http://{name}:{port}", **more}
    assert client.post("/api/answer", json=question, headers=headers).status_code == 200


def test_a_second_origin_does_not_help(address, connect):
    wire = connect(address).head("GET /api/model", f"Origin: {address}", "Origin: http://evil.example").send("\r\n")
    assert wire.read().startswith("HTTP/1.1 403")


def test_port_80_may_be_left_out_and_no_other():
    for port, expected in ((80, None), (8080, 421)):
        found = refusal("GET", Headers({"host": "localhost"}), port)
        assert (found and found[0]) == expected
    assert refusal("POST", Headers({"host": "localhost", "origin": "http://localhost"}), 80) is None

"""Who may ask: the page itself, and programs on this machine, but no page from elsewhere."""

from starlette.datastructures import Headers

NAMES = ("127.0.0.1", "localhost")
"""The names under which this machine is reached."""
READING = ("GET", "HEAD")
"""The methods that change nothing and cost little: a link on any page may lead here."""
OWN_PAGE = ("same-origin", "none")
"""What a browser says in Sec-Fetch-Site of a request from the page itself, or from the address bar."""


def refusal(method: str, headers: Headers, port: int) -> tuple[int, str] | None:
    """The status code and the reason if a request to this port must be refused, else None.

    The Host must name this machine and the port: a foreign page whose host name resolves to 127.0.0.1 (DNS rebinding)
    sends that name. An Origin must be that of the page: a page on another port of this machine has another. Programs
    other than browsers send none.
    """
    places = [name + suffix for name in NAMES for suffix in _suffixes(port)]
    hosts = headers.getlist("host")
    if len(hosts) != 1 or hosts[0].lower() not in places:
        return 421, f"this page answers only to {' and '.join(places)}, not to {', '.join(hosts)!r}."
    if any(origin not in [f"http://{place}" for place in places] for origin in headers.getlist("origin")):
        return 403, "requests from other pages are refused."
    if method not in READING and any(site not in OWN_PAGE for site in headers.getlist("sec-fetch-site")):
        return 403, "requests from other pages are refused."
    return None


def _suffixes(port: int) -> list[str]:
    """How the port is written after a host name; port 80 may be left out."""
    return [f":{port}", ""] if port == 80 else [f":{port}"]

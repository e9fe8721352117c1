"""The checks on every request and the security headers of every response."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost"})
MEGABYTES = 8
"""The longest request that is accepted."""
DISCARDED = 16
"""Of a longer request, this many times :data:`MEGABYTES` is still read, so that the sender gets to see the refusal."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Middleware that admits only requests of bounded length, from the page itself, to this machine by its own name.

    A foreign page could let its own host name resolve to 127.0.0.1 (DNS rebinding); the Host header reveals that.
    """

    def __init__(self, app: ASGIApp, *, megabytes: float = MEGABYTES) -> None:
        self.app = app
        self.largest = int(megabytes * 10**6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        problem = self._problem(headers)
        if problem is None:
            body = await self._body(receive)
            problem = None if body is not None else (413, f"the request is longer than {self.largest:,} bytes.")
        if problem is not None:
            code, text = problem
            response = JSONResponse({"detail": text}, code, {"Connection": "close"})
            await response(scope, receive, send_with_headers)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        await self.app(scope, replay, send_with_headers)

    def _problem(self, headers: Headers) -> tuple[int, str] | None:
        host = _name(f"//{headers.get('host', '')}")
        if host not in HOSTS:
            return 421, f"this page answers only to {' and '.join(sorted(HOSTS))}, not to {host!r}."
        origin = headers.get("origin")
        if origin is not None and _name(origin) not in HOSTS:
            return 403, "requests from other pages are refused."
        return None

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body, or None if it is too long."""
        body, length, more = bytearray(), 0, True
        while more and length <= DISCARDED * self.largest:
            message = await receive()
            part = message.get("body", b"")
            length += len(part)
            if length <= self.largest:
                body += part
            more = message["type"] == "http.request" and message.get("more_body", False)
        return bytes(body) if length <= self.largest else None


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""

"""The checks on every request and the security headers of every response."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from equicaps.serve.limits import Limits
from equicaps.serve.origin import refusal
from equicaps.serve.refused import Refused

DISCARDED = 16
"""Of a request that is too long, this many times the limit is still read, so that the sender sees the refusal."""
PATIENCE = 2.0
"""The seconds that are spent on reading what a request that is refused goes on to send."""
BYTES = 4096
"""The longest request that is neither a file nor a question."""

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
    """Middleware that admits only complete requests of bounded length, from the page itself, to this machine by name.

    Args:
        app: the application behind it.
        limits: how long a request may be and take to arrive.
        uploads: the paths to which files are sent; only these are allowed ``limits.megabytes``.
        questions: the paths to which questions are sent, with the bytes that each is allowed.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, uploads: Collection[str], questions: Mapping[str, int]) -> None:
        self.app, self.limits, self.uploads, self.questions = app, limits, uploads, questions
        self._uploads = 0
        self._arriving: dict[asyncio.Timeout, None] = {}
        """The deadlines of files of which the rest has yet to arrive, the oldest first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        try:
            await self._handle(scope, receive, _with_headers(send))
        except asyncio.CancelledError:
            # Only the end of the server cancels a request, after it has closed the connection: nobody waits for it.
            return

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_upload = scope["path"] in self.uploads
        self._uploads += is_upload
        try:
            body = await self._admitted(scope, receive, is_upload=is_upload)
            if body is not None:
                await self.app(scope, _replay(body, receive), send)
        except Refused as refused:
            await refused.response()(scope, receive, send)
        finally:
            self._uploads -= is_upload

    async def _admitted(self, scope: Scope, receive: Receive, *, is_upload: bool) -> bytes | None:
        """The body of a request that may be handled, or None if its connection was closed before all of it was there.

        Raises:
            Refused: if the request may not be handled.
        """
        problem = refusal(scope["method"], Headers(scope=scope), scope["server"][1])
        if problem is not None:
            await self._discard(receive)
            raise Refused(*problem)
        if self._uploads > self.limits.uploads and is_upload:
            await self._make_room(receive)
        largest = self.limits.largest
        if not is_upload:
            largest = min(self.questions.get(scope["path"], BYTES), largest)
        try:
            async with asyncio.timeout(self.limits.body_seconds) as deadline:
                if is_upload:
                    self._arriving[deadline] = None
                return await _body(receive, largest)
        except TimeoutError:
            late = (
                f"the request did not arrive within {self.limits.body_seconds:g} seconds, or others needed its place."
            )
            raise Refused(408, late) from None
        finally:
            self._arriving.pop(deadline, None)

    async def _make_room(self, receive: Receive) -> None:
        """End the oldest of the files that have not arrived; if all have, refuse the new one."""
        oldest = next(iter(self._arriving), None)
        if oldest is not None:
            del self._arriving[oldest]
            if not oldest.expired():  # otherwise it makes room already
                oldest.reschedule(asyncio.get_running_loop().time())
            return
        await self._discard(receive)
        raise Refused(503, "too many files are being read: try again in a second.")

    async def _discard(self, receive: Receive) -> None:
        """Read what follows of a request that is refused: a sender that is cut off does not see the refusal."""
        length, more = 0, True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(PATIENCE, self.limits.body_seconds)):
                while more and length <= self.limits.largest:
                    message = await receive()
                    length += len(message.get("body", b""))
                    more = message["type"] != "http.disconnect" and message.get("more_body", False)


async def _body(receive: Receive, largest: int) -> bytes | None:
    """The whole body, or None if its connection was closed before its end."""
    content, length, more = bytearray(), 0, True
    while more and length <= DISCARDED * largest:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        length += len(part)
        if length <= largest:
            content += part
        more = message.get("more_body", False)
    if length > largest:
        raise Refused(413, f"the request is longer than {largest:,} bytes.")
    return bytes(content)


def _replay(body: bytes, receive: Receive) -> Receive:
    """What an application receives of a request whose body has been read already."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        return next(messages, None) or await receive()

    return replay


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_with_headers

"""A connection with deadlines; uvicorn knows none for the head of a request."""

import asyncio
import contextlib
from typing import Any

from h11 import LocalProtocolError
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from equicaps.serve.limits import Limits


class Connection(H11Protocol):
    """One connection, which is closed when its request does not arrive in time, or to make room for another.

    When there are as many connections as there may be, of one client or of all, a new one takes the place of the one
    that has waited longest for its client, to send the rest of a request or to read a response. So connections on which
    nothing moves, however many, do not keep a browser out, not even until they are overdue. A request that has arrived
    is never dropped, if its client reads what it is sent.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.since = self.loop.time()
        """Since when it waits for a request."""
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether the rest of its request has yet to arrive, or its client has yet to read."""
        return self._idle or bool(self.cycle.more_body) or self.transport.get_write_buffer_size() > 0

    @property
    def _idle(self) -> bool:
        """Whether the head of its request has yet to arrive."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Make room for it if necessary, and wait for its first request."""
        super().connection_made(transport)
        self._make_room()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Give a request whose head has arrived the time to be answered."""
        was_idle = self._idle
        super().data_received(data)
        if was_idle and not self._idle:
            self._close_after(self.limits.request_seconds)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and hang up; one that came before it is not answered any more."""
        with contextlib.suppress(LocalProtocolError):  # the answer to that one may be on its way already
            super().send_400_response(msg)
        self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to read its response if this was the last."""
        super().on_response_complete()
        self._unset_keepalive_if_required()  # the deadline takes its place
        if self._idle:
            self._wait()
        else:  # the next request had arrived already
            self._close_after(self.limits.request_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def shutdown(self) -> None:
        """Close it at once if its request has not arrived, else after the response."""
        if self.waits:
            self.drop()
        else:
            super().shutdown()

    def drop(self) -> None:
        """Close it now, whatever is still to be sent."""
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self) -> None:
        self.since = self.loop.time()
        self._close_after(self.limits.head_seconds)

    def _close_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.drop)

    def _make_room(self) -> None:
        everyone = [other for other in self.connections if isinstance(other, Connection)]
        mine = [other for other in everyone if other.address == self.address]
        limits = self.limits
        for crowd, most in ((mine, limits.connections_of_a_client), (everyone, limits.connections)):
            if len(crowd) > most:
                waiting = [other for other in crowd if other.waits and other is not self]
                min(waiting, key=lambda other: other.since, default=self).drop()
                return

    @property
    def address(self) -> str | None:
        """The address of the client, which programs on one machine usually share."""
        return self.client[0] if self.client else None

"""How much of the server one client, and all of them together, may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Every limit of the server. The time-outs are deadlines for the whole, so that sending slowly does not help.

    Attributes:
        connections: the most open connections.
        connections_of_a_client: the most from one address. Programs on this machine usually share one.
        head_seconds: how long a connection may wait for the head of its next request, from its opening or its last
            response on.
        body_seconds: how long the rest of a request may take.
        request_seconds: how long a request and its response may take together.
        megabytes: the longest request.
        uploads: how many files may arrive or be read at once; each may take ``megabytes``.
        waiting: how many questions about images may wait for the networks, and how many about shapes.
        batch: how many of them pass through a network together.
    """

    connections: int = 128
    connections_of_a_client: int = 96
    head_seconds: float = 5.0
    body_seconds: float = 10.0
    request_seconds: float = 60.0
    megabytes: float = 8.0
    uploads: int = 4
    waiting: int = 64
    batch: int = 16

    @property
    def largest(self) -> int:
        """The longest request in bytes."""
        return int(self.megabytes * 10**6)

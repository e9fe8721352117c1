"""The local socket and the server that listens on it."""

import asyncio
import errno
import functools
import socket

import torch
import uvicorn
from fastapi import FastAPI

from equicaps.serve.connection import Connection
from equicaps.serve.limits import Limits

ADDRESS = "127.0.0.1"
GRACE = 2.0
"""Seconds that requests have to be answered after Ctrl-C."""


def listen(port: int) -> socket.socket:
    """A listening socket that only this machine can reach; port 0 picks any free port.

    Raises:
        OSError: if the port cannot be opened; the message says what to do.
    """
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
        found.listen()
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use: choose another with --port, or any free one with --port 0."
            ) from error
        raise OSError(f"port {port} cannot be opened: {error.strerror}; choose another with --port.") from error
    return found


class Server(uvicorn.Server):
    """A server that ends without a word, however many requests there are at that moment."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what has no complete request, answer the rest within :data:`GRACE` seconds, and drop what is left."""
        overdue = asyncio.get_running_loop().call_later(GRACE, self._drop)
        await super().shutdown(sockets)  # returns early at a second Ctrl-C
        overdue.cancel()
        self._drop()

    def _drop(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()


def make_server(app: FastAPI, limits: Limits | None = None) -> Server:
    """A server for one person that logs only errors."""
    return Server(
        uvicorn.Config(
            app, log_level="error", access_log=False, server_header=False, proxy_headers=False, lifespan="off",
            ws="none", http=functools.partial(Connection, limits=limits or Limits()),  # type: ignore[arg-type] # makes one
        )
    )  # fmt: skip


def run(app: FastAPI, on: socket.socket) -> None:
    """Serve until Ctrl-C, then close all connections and raise KeyboardInterrupt."""
    torch.set_num_threads(1)  # pictures are small: more threads would only wait for each other
    make_server(app).run(sockets=[on])

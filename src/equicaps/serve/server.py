"""The local socket and the server that listens on it."""

import errno
import socket

import torch
import uvicorn
from fastapi import FastAPI

ADDRESS = "127.0.0.1"
CONNECTIONS = 64
"""The most connections at once; a browser opens six."""


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


def make_server(app: FastAPI) -> uvicorn.Server:
    """A server for one person that logs only warnings."""
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )  # fmt: skip


def run(app: FastAPI, on: socket.socket) -> None:
    """Serve until Ctrl-C, then close all connections and raise KeyboardInterrupt."""
    torch.set_num_threads(1)  # pictures are small: more threads would only wait for each other
    make_server(app).run(sockets=[on])

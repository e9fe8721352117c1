"""A socket on this machine, and the server on it."""

import errno
import socket

import torch
import uvicorn
from fastapi import FastAPI

ADDRESS = "127.0.0.1"
CONNECTIONS = 64
"""At once; a browser opens six."""


def listen(port: int) -> socket.socket:
    """A socket that only this machine can reach; port 0 takes any that is free.

    Raises:
        OSError: naming what to do.
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
                f"port {port} is in use: take another with --port, or any that is free with --port 0."
            ) from error
        raise OSError(f"port {port} cannot be opened: {error.strerror}; take another with --port.") from error
    return found


def make_server(app: FastAPI) -> uvicorn.Server:
    """Quiet, and for one person."""
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )  # fmt: skip


def run(app: FastAPI, on: socket.socket) -> None:
    """Serve until Ctrl-C, which is raised again when all is closed."""
    torch.set_num_threads(1)  # pictures are small: more threads only wait for each other
    make_server(app).run(sockets=[on])

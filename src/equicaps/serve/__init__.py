"""A page to play with, on this machine only: ``equicaps serve``; needs ``pip install equicaps[serve]``."""

from equicaps.errors import MissingPackageError

try:
    import fastapi  # noqa: F401 - only to see whether it is there
    import uvicorn  # noqa: F401 - likewise
except ImportError as error:
    raise MissingPackageError("The page needs FastAPI and uvicorn: pip install 'equicaps[serve]'.") from error

from equicaps.serve.answers import Answers
from equicaps.serve.app import make_app
from equicaps.serve.server import listen, make_server, run

__all__ = ["Answers", "listen", "make_app", "make_server", "run"]

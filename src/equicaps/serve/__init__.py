"""The interactive page of ``equicaps serve``, for this machine only; needs ``pip install 'equicaps[serve]'``."""

from equicaps.errors import MissingPackageError

try:
    import fastapi  # noqa: F401 - only to see whether it is installed
    import uvicorn  # noqa: F401 - likewise
except ImportError as error:
    raise MissingPackageError("equicaps serve needs FastAPI and uvicorn: pip install 'equicaps[serve]'.") from error

from equicaps.serve.app import make_app
from equicaps.serve.limits import Limits
from equicaps.serve.playground import Playground, interchangeable
from equicaps.serve.server import listen, make_server, run
from equicaps.serve.shape_playground import ShapePlayground

__all__ = ["Limits", "Playground", "ShapePlayground", "interchangeable", "listen", "make_app", "make_server", "run"]

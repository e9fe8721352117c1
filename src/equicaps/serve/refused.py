"""A request that gets a reason instead of an answer."""

from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse

RETRY_AFTER = 1
"""In how many seconds to come back when too many others are waiting."""

REASONS = {
    400: "The request cannot be parsed",
    403: "The request comes from another page",
    408: "The request did not arrive in time",
    413: "The request is too long",
    415: "The content type is not that of such a file",
    421: "The request is for another host name",
    422: "The request is not valid",
    500: "What the network computes is not finite",
    503: "Too many others are waiting; Retry-After says when to come back",
}


class Problem(BaseModel):
    """Why a request was refused, in words for a person."""

    detail: str


class Refused(Exception):  # noqa: N818 - it is no error of the server's
    """The status code and the reason of a refusal, after which the connection is closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason

    def response(self) -> JSONResponse:
        """The reason in the form of all refusals."""
        retry = {"Retry-After": str(RETRY_AFTER)} if self.code == 503 else {}
        return JSONResponse({"detail": self.reason}, self.code, {"Connection": "close", **retry})


def refusals(*more: int) -> dict[int | str, dict[str, Any]]:
    """The refusals that a POST may get, and some more, for the description of the interface."""
    codes = sorted({400, 403, 408, 413, 421, 422, 503, *more})
    return {code: {"model": Problem, "description": REASONS[code]} for code in codes}

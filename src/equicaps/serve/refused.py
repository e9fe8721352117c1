"""A request that gets a reason instead of an answer."""

from starlette.responses import JSONResponse

RETRY_AFTER = 1
"""In how many seconds to come back when too many others are waiting."""


class Refused(Exception):  # noqa: N818 - it is no error of the server's
    """The status code and the reason of a refusal, after which the connection is closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason

    def response(self) -> JSONResponse:
        """The reason in the form of all refusals."""
        retry = {"Retry-After": str(RETRY_AFTER)} if self.code == 503 else {}
        return JSONResponse({"detail": self.reason}, self.code, {"Connection": "close", **retry})

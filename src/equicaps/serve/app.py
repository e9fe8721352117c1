"""The page and its HTTP interface."""

from importlib.resources import files
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.responses import JSONResponse

import equicaps
from equicaps.errors import DamagedFileError
from equicaps.serve.answers import About, Answers, Picture, Question, Reply
from equicaps.serve.limits import Guard

PAGE = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/canvas.js": ("canvas.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Address -> file and type. They are read once, when the app is made: no address ever becomes a path."""

Upload = Annotated[bytes, Body(media_type="image/png", description="A PNG, JPEG, WebP, GIF or BMP file.")]


class Problem(BaseModel):
    """Why a request is refused, in words for a person."""

    detail: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text}
    for code, text in {
        400: "Not readable at all",
        413: "Too long",
        415: "Not an image by its content type",
        422: "Not what was expected",
    }.items()
}


def make_app(answers: Answers) -> FastAPI:
    """The app around one model; ``/openapi.json`` describes it."""
    app = FastAPI(title="equicaps", version=equicaps.__version__, docs_url=None, redoc_url=None)
    app.add_middleware(Guard)
    app.add_exception_handler(RequestValidationError, _explain)
    for address, (name, kind) in PAGE.items():
        app.add_api_route(address, _file(name, kind), include_in_schema=False)

    @app.get("/api/model")
    def model() -> About:
        """What the model tells apart."""
        return answers.about()

    @app.get("/api/digits")
    def digits() -> list[Picture]:
        """Real digits to pick from."""
        return answers.digits()

    @app.post("/api/answer", responses={code: REFUSALS[code] for code in (400, 413, 422)})
    def answer(question: Question) -> Reply:
        """A picture, turned, through both networks."""
        try:
            answers.check(question)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return answers.answer(question)

    @app.post("/api/picture", responses=REFUSALS)
    def picture(request: Request, content: Upload, centre: bool = False) -> Picture:
        """An image file as a picture for ``/api/answer``; ``centre`` sets a digit as MNIST has it."""
        kind = request.headers.get("content-type", "")
        if not kind.startswith("image/"):
            raise HTTPException(415, f"an image is expected, but the content type is {kind or 'missing'!r}.")
        try:
            return answers.picture(content, centre=centre)
        except (DamagedFileError, ValueError) as error:
            raise HTTPException(422, str(error)) from error

    described = app.openapi

    def openapi() -> dict[str, Any]:
        schema = described()
        count = answers.channels * answers.side**2
        schema["components"]["schemas"]["Question"]["properties"]["pixels"] |= {"minItems": count, "maxItems": count}
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # the way FastAPI documents
    return app


def _file(name: str, kind: str) -> Any:
    content = (files("equicaps.serve") / "static" / name).read_bytes()

    def send() -> Response:
        return Response(content, media_type=kind)

    return send


def _explain(request: Request, error: Exception) -> JSONResponse:
    """One line instead of a tree."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return JSONResponse({"detail": f"{place}: {first['msg']}."}, 422)

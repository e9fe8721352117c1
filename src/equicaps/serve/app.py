"""The HTTP interface of the page."""

from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.responses import JSONResponse

from equicaps import __version__
from equicaps.errors import UnansweredError
from equicaps.serve.batches import Batches
from equicaps.serve.guard import Guard
from equicaps.serve.limits import Limits
from equicaps.serve.messages import About, Picture, Question, Reply
from equicaps.serve.playground import Playground

FILES = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/canvas.js": ("canvas.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""URL path -> file and media type. The files are read once, when the app is made: no URL ever becomes a file path."""

BYTES_PER_PIXEL, BYTES_BESIDE = 64, 4096
"""What a question may take at most: for each of its numbers, with blanks, and for everything else."""

Upload = Annotated[bytes, Body(media_type="image/png", description="A PNG, JPEG, WebP, GIF or BMP file.")]


class Problem(BaseModel):
    """Why a request was refused, in words for a person."""

    detail: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text}
    for code, text in {
        400: "The request cannot be parsed",
        403: "The request comes from another page",
        408: "The request did not arrive in time",
        413: "The request is too long",
        415: "The content type is not that of an image",
        421: "The request is for another host name",
        422: "The request is not valid",
        500: "What the network computes is not finite",
        503: "Too many others are waiting; Retry-After says when to come back",
    }.items()
}


def make_app(playground: Playground, limits: Limits | None = None) -> FastAPI:
    """The web application around a playground; ``/openapi.json`` describes it."""
    limits = limits or Limits()
    app = FastAPI(title="equicaps", version=__version__, docs_url=None, redoc_url=None)
    question_bytes = BYTES_PER_PIXEL * playground.pixel_count + BYTES_BESIDE
    app.add_middleware(Guard, limits=limits, question_bytes=question_bytes)
    app.add_exception_handler(RequestValidationError, _explain)
    app.add_exception_handler(UnansweredError, _unanswered)
    for path, (name, media_type) in FILES.items():
        app.add_api_route(path, _file(name, media_type), include_in_schema=False)
    questions = Batches(playground.answers, batch=limits.batch, waiting=limits.waiting)
    uploads = Batches(partial(_pictures, playground), batch=1, waiting=limits.uploads)  # to bound memory

    @app.get("/api/model")
    async def model() -> About:
        """Describe the models between which the user can switch."""
        return playground.about()

    @app.get("/api/digits")
    async def digits() -> list[Picture]:
        """Return real digits to choose from."""
        return playground.digits

    @app.post("/api/answer", responses=_refusals(400, 403, 408, 413, 421, 422, 500, 503))
    async def answer(question: Question) -> Reply:
        """Rotate a picture and run the chosen model and the plain CNN on it."""
        if len(question.pixels) != playground.pixel_count:
            shape = f"{playground.channels} x {playground.side} x {playground.side}"
            expected = f"pixels must be {playground.pixel_count} numbers ({shape})"
            raise HTTPException(422, f"{expected}, not {len(question.pixels)}.")
        if question.model is not None and question.model not in playground.models:
            raise HTTPException(422, f"model must be one of {', '.join(playground.models)}, not {question.model!r}.")
        return await questions.ask(question)

    @app.post("/api/picture", responses=_refusals(400, 403, 408, 413, 415, 421, 422, 503))
    async def picture(request: Request, content: Upload, centre: bool = False) -> Picture:
        """Turn an image file into a picture for ``/api/answer``; ``centre`` lays a digit out as MNIST does."""
        media_type = request.headers.get("content-type", "")
        if not media_type.startswith("image/"):
            raise HTTPException(415, f"expected an image, but the content type is {media_type or 'missing'!r}.")
        try:
            return await uploads.ask((content, centre))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    generate = app.openapi

    def openapi() -> dict[str, Any]:
        schema, count = generate(), playground.pixel_count
        question = schema["components"]["schemas"]["Question"]["properties"]
        question["pixels"] |= {"minItems": count, "maxItems": count}
        question["model"] |= {"enum": [*playground.models, None]}
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI documents this way of extending the schema
    return app


def _pictures(playground: Playground, uploads: Sequence[tuple[bytes, bool]]) -> list[Picture | Exception]:
    found: list[Picture | Exception] = []
    for content, centre in uploads:
        try:
            found.append(playground.picture(content, centre=centre))
        except ValueError as error:
            found.append(ValueError(str(error)))  # without the traceback, which would keep the image in memory
    return found


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: REFUSALS[code] for code in codes}


def _file(name: str, media_type: str) -> Any:
    content = (files("equicaps.serve") / "static" / name).read_bytes()

    async def send() -> Response:
        return Response(content, media_type=media_type)

    return send


def _explain(request: Request, error: Exception) -> JSONResponse:
    """The first problem as one line, instead of pydantic's list of all."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return JSONResponse({"detail": f"{place}: {first['msg']}."}, 422)


def _unanswered(request: Request, error: Exception) -> JSONResponse:
    """A network without a finite answer is no mistake of the client's."""
    return JSONResponse({"detail": str(error)}, 500)

"""The HTTP interface of the page."""

from functools import partial
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse

from equicaps import __version__
from equicaps.errors import UnansweredError
from equicaps.serve.batches import Batches
from equicaps.serve.guard import Guard
from equicaps.serve.limits import Limits
from equicaps.serve.messages import About, Picture, Question, Reply
from equicaps.serve.playground import Playground
from equicaps.serve.refused import refusals
from equicaps.serve.shape_routes import ANSWER, FILE, describe_shapes, shape_routes
from equicaps.serve.uploads import Uploads

FILES = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/tabs.js": ("tabs.js", "text/javascript"),
    "/server.js": ("server.js", "text/javascript"),
    "/bars.js": ("bars.js", "text/javascript"),
    "/canvas.js": ("canvas.js", "text/javascript"),
    "/shapes.js": ("shapes.js", "text/javascript"),
    "/space.js": ("space.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""URL path -> file and media type. The files are read once, when the app is made: no URL ever becomes a file path."""

BYTES_PER_NUMBER, BYTES_BESIDE = 64, 4096
"""What a question may take at most: for each pixel or coordinate, with blanks, and for everything else."""

QUESTION, PICTURE = "/api/answer", "/api/picture"

Upload = Annotated[bytes, Body(media_type="image/png", description="A PNG, JPEG, WebP, GIF or BMP file.")]


def make_app(playground: Playground, limits: Limits | None = None) -> FastAPI:
    """The web application around a playground; ``/openapi.json`` describes it."""
    limits = limits or Limits()
    app = FastAPI(title="equicaps", version=__version__, docs_url=None, redoc_url=None)
    to_upload = (PICTURE,) if playground.shapes is None else (PICTURE, FILE)
    app.add_middleware(Guard, limits=limits, uploads=to_upload, questions=_longest(playground))
    app.add_exception_handler(RequestValidationError, _explain)
    app.add_exception_handler(UnansweredError, _unanswered)
    for path, (name, media_type) in FILES.items():
        app.add_api_route(path, _file(name, media_type), include_in_schema=False)
    questions = Batches(playground.answers, batch=limits.batch, waiting=limits.waiting)
    uploads = Uploads(limits.uploads)

    @app.get("/api/model")
    async def model() -> About:
        """Describe the models between which the user can switch."""
        return playground.about()

    @app.get("/api/digits")
    async def digits() -> list[Picture]:
        """Return real digits to choose from."""
        return playground.digits

    @app.post(QUESTION, responses=refusals(500))
    async def answer(question: Question) -> Reply:
        """Rotate a picture and run the chosen model and the plain CNN on it."""
        if len(question.pixels) != playground.pixel_count:
            shape = f"{playground.channels} x {playground.side} x {playground.side}"
            expected = f"pixels must be {playground.pixel_count} numbers ({shape})"
            raise HTTPException(422, f"{expected}, not {len(question.pixels)}.")
        if question.model is not None and question.model not in playground.models:
            raise HTTPException(422, f"model must be one of {', '.join(playground.models)}, not {question.model!r}.")
        return await questions.ask(question)

    @app.post(PICTURE, responses=refusals(415))
    async def picture(request: Request, content: Upload, centre: bool = False) -> Picture:
        """Turn an image file into a picture for ``/api/answer``; ``centre`` lays a digit out as MNIST does."""
        media_type = request.headers.get("content-type", "")
        if not media_type.startswith("image/"):
            raise HTTPException(415, f"expected an image, but the content type is {media_type or 'missing'!r}.")
        return await uploads.read(partial(playground.picture, content, centre=centre))

    if playground.shapes is not None:
        app.include_router(shape_routes(playground.shapes, limits, uploads))
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        schema, count = generate(), playground.pixel_count
        question = schema["components"]["schemas"]["Question"]["properties"]
        question["pixels"] |= {"minItems": count, "maxItems": count}
        question["model"] |= {"enum": [*playground.models, None]}
        if playground.shapes is not None:
            describe_shapes(schema, playground.shapes)
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI documents this way of extending the schema
    return app


def _longest(playground: Playground) -> dict[str, int]:
    """The path of each kind of question, and its length in bytes at most."""
    numbers = {QUESTION: playground.pixel_count}
    if playground.shapes is not None:
        numbers[ANSWER] = 3 * playground.shapes.most_points
    return {path: BYTES_PER_NUMBER * count + BYTES_BESIDE for path, count in numbers.items()}


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

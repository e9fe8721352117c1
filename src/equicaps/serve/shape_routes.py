"""The part of the HTTP interface that is about shapes."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, HTTPException, Request

from equicaps.serve.batches import Batches
from equicaps.serve.limits import Limits
from equicaps.serve.messages import ShapePoints, ShapeQuestion, ShapeReply
from equicaps.serve.refused import refusals
from equicaps.serve.shape_playground import ShapePlayground
from equicaps.serve.uploads import Uploads

ANSWER, FILE = "/api/shapes/answer", "/api/shapes/file"
FILE_TYPE = "application/octet-stream"

Kind = Literal["off", "obj", "ply", "stl", "xyz", "npy"]
ShapeFile = Annotated[bytes, Body(media_type=FILE_TYPE, description="An OFF, OBJ, PLY, STL, XYZ or NPY file.")]


def shape_routes(shapes: ShapePlayground, limits: Limits, uploads: Uploads) -> APIRouter:
    """The requests that the second tab makes."""
    router, most = APIRouter(), shapes.most_points
    questions = Batches(shapes.answers, batch=limits.batch, waiting=limits.waiting)

    @router.get("/api/shapes")
    async def examples() -> list[ShapePoints]:
        """Return shapes to choose from."""
        return shapes.examples

    @router.post(ANSWER, responses=refusals(500))
    async def answer(question: ShapeQuestion) -> ShapeReply:
        """Run the model on the points of a shape."""
        if not 1 <= len(question.points) <= most:
            raise HTTPException(422, f"points must be a list of 1 to {most:,} points, not {len(question.points):,}.")
        return await questions.ask(question)

    @router.post(FILE, responses=refusals(415))
    async def shape(request: Request, content: ShapeFile, kind: Kind) -> ShapePoints:
        """Turn the file of a shape, of the given kind, into points for ``/api/shapes/answer``."""
        media_type = request.headers.get("content-type", "")
        if media_type != FILE_TYPE:
            raise HTTPException(415, f"expected {FILE_TYPE}, but the content type is {media_type or 'missing'!r}.")
        return await uploads.read(partial(shapes.shape, content, kind))

    return router


def describe_shapes(schema: dict[str, Any], shapes: ShapePlayground) -> None:
    """Add how many points a question may have to the description of the interface."""
    points = schema["components"]["schemas"]["ShapeQuestion"]["properties"]["points"]
    points |= {"minItems": 1, "maxItems": shapes.most_points}

"""What the page and the server send each other, as JSON."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from equicaps.inference import Answer, PointAnswer

Brightness = Annotated[float, Field(ge=0, le=255, allow_inf_nan=False)]
Degrees = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Point = Annotated[list[Coordinate], Field(min_length=3, max_length=3)]


class Question(BaseModel):
    """A picture and the angles to rotate it and its pose by, in degrees counter-clockwise."""

    model_config = ConfigDict(strict=True, extra="forbid")
    pixels: list[Brightness]
    degrees: Degrees = 0.0
    pose_degrees: Degrees = 0.0
    """The angle by which the user rotates the poses before they are decoded."""
    model: str | None = None
    """The name of the model that answers; None for the first of :class:`About`."""


@dataclass(frozen=True)
class Picture:
    """A square image as bytes: channel by channel, row by row."""

    pixels: list[int]
    label: str | None = None


@dataclass(frozen=True)
class Layer:
    """The poses of one layer as arrows (x right, y up), row by row; the more active a capsule, the longer its arrow.

    On a grid of several positions the arrows belong to one capsule, always the same. At a single position they belong
    to all capsules of the layer, and ``shown`` is None. The longest possible arrow has length 1.
    """

    side: int
    capsules: int
    shown: int | None
    arrows: list[tuple[float, float]]


@dataclass(frozen=True)
class Reply:
    """The rotated picture, the answers of the chosen model and of the plain CNN, and the capsules behind the former."""

    image: list[int]
    capsules: Answer
    plain: Answer | None
    layers: list[Layer]
    reconstruction: list[int] | None
    cpu_milliseconds: float


@dataclass(frozen=True)
class AboutModel:
    """What the page needs to know about one model; ``label`` says in plain words whose network it is."""

    name: str
    task: str
    label: str
    layers: int
    reconstruction_side: int | None


class ShapeQuestion(BaseModel):
    """The points of a shape, as the user has rotated it."""

    model_config = ConfigDict(strict=True, extra="forbid")
    points: list[Point]


@dataclass(frozen=True)
class ShapePoints:
    """The points of a shape around the origin, with radius 1; ``label`` is its class, if known."""

    points: list[list[float]]
    label: str | None = None


@dataclass(frozen=True)
class ShapeReply:
    """The answer of the model of shapes; its rotation is in the axes of the points that it was asked about."""

    capsules: PointAnswer
    cpu_milliseconds: float


@dataclass(frozen=True)
class AboutShapes:
    """What the page needs to know about the model of shapes; ``examples`` says where the shapes to choose come from."""

    name: str
    task: str
    classes: list[str]
    most_points: int
    examples: str


@dataclass(frozen=True)
class About:
    """What the page needs to know before the first question; its models share classes and pictures."""

    models: list[AboutModel]
    classes: list[str]
    channels: int
    side: int
    digits: bool
    plain: bool
    shapes: AboutShapes | None

"""The server keeps to its OpenAPI description, on requests that schemathesis generates."""

import io
from dataclasses import replace

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from serving import served, untrained
from small_shapes import point_model

from equicaps.inference import PointModel
from equicaps.serve import Playground, ShapePlayground

load_all_checks()


def png(side):
    file = io.BytesIO()
    picture = Image.new("L", (side, side))
    picture.putpixel((side // 2, side // 3), 255)
    picture.save(file, format="PNG")
    return file.getvalue()


schemathesis.openapi.media_type("image/png", st.integers(3, 40).map(png))
schemathesis.openapi.media_type("application/octet-stream", st.just(b"0 0 0\n1 0 0\n0 1 0\n"))


@pytest.fixture(scope="module")
def address():
    """A server whose pictures are 3x3, and whose shapes have three points, so that generated requests are small."""
    model = point_model()
    shapes = ShapePlayground(PointModel(model.network, replace(model.card, points=3)))
    with served(Playground(untrained("steerable", frame=3), shapes=shapes)) as found:
        yield found


def check(operation, mode, address, examples=8):
    # No content is a valid file of every kind, so some may be refused.
    excluded = CHECKS.get_by_names(["positive_data_acceptance"]) if operation.path == "/api/shapes/file" else []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case):
        case.call_and_validate(base_url=address, excluded_checks=excluded)

    holds()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
def test_the_server_does_what_its_description_says(address, mode):
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 7
    for operation in operations:
        if (
            mode == GenerationMode.POSITIVE or operation.method == "post"
        ):  # these GET requests have no arguments to get wrong
            check(operation, mode, address)


def test_a_false_description_is_noticed(address):
    """Control: a wrong type in the description is an error."""
    description = httpx.get(f"{address}/openapi.json").json()
    description["components"]["schemas"]["About"]["properties"]["side"] = {"type": "string"}
    schema = schemathesis.openapi.from_dict(description)
    with pytest.raises(BaseExceptionGroup, match="1 distinct failure"):
        check(schema["/api/model"]["GET"], GenerationMode.POSITIVE, address, examples=1)

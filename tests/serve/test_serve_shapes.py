"""The part of the HTTP interface that is about shapes: what it answers and what it refuses."""

import copy
import io
import math

import httpx
import numpy as np
import pytest
import torch
from serving import served, untrained
from small_shapes import SOLIDS, point_model, write_off

from equicaps.groups import SO3
from equicaps.inference import PointModel
from equicaps.inference.clouds import prepared, read_clouds
from equicaps.serve import Limits, Playground, ShapePlayground
from equicaps.serve.messages import ShapeQuestion

BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def images():
    """The first tab, as small as can be."""
    return untrained("steerable", frame=3)


@pytest.fixture(scope="module")
def shapes():
    return ShapePlayground(point_model())


@pytest.fixture(scope="module")
def address(images, shapes):
    with served(Playground(images, shapes=shapes)) as found:
        yield found


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address) as found:
        yield found


@pytest.fixture(scope="module")
def chair(client):
    return np.array(client.get("/api/shapes").json()[1]["points"])


def asked(client, points):
    response = client.post("/api/shapes/answer", json={"points": points.tolist()})
    assert response.status_code == 200, response.text
    return response.json()["capsules"]


def uploaded(client, content, kind="off", headers=BINARY):
    return client.post("/api/shapes/file", content=content, headers=headers, params={"kind": kind})


def refused(response, code, message):
    assert response.status_code == code, response.text
    assert message in response.json()["detail"], response.text
    return True


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_rotation_changes_nothing_but_the_pose_which_follows(client, chair, seed):
    """For points R x, the scores of x and the rotation R ∘ that of x."""
    turn = SO3().random(generator=torch.Generator().manual_seed(seed), dtype=torch.float64).reshape(3, 3).numpy()
    assert np.abs(turn - np.eye(3)).max() > 0.5  # guard: a large rotation
    first, rotated = asked(client, chair), asked(client, chair @ turn.T)
    assert rotated["label"] == first["label"]
    assert rotated["confidence"] == pytest.approx(first["confidence"], abs=1e-4)
    assert rotated["scores"] == pytest.approx(first["scores"], abs=1e-3)
    np.testing.assert_allclose(rotated["rotation"], turn @ first["rotation"], atol=1e-3)
    assert np.abs(np.subtract(rotated["rotation"], first["rotation"])).max() > 0.1  # guard: the pose does move
    mirrored = asked(client, chair * [-1, 1, 1])
    assert mirrored["scores"] != pytest.approx(first["scores"], abs=1e-3)  # control


def test_the_answer_is_that_of_the_model(client, chair, shapes):
    """With the angle of the matrix; where a shape is and how large does not matter."""
    [expected] = shapes.model.predict(torch.from_numpy(chair))
    for points in (chair, 40 * chair + 7):
        found = asked(client, points)
        assert (found["label"], set(found["scores"])) == (expected.label, set(SOLIDS.classes))
        assert found["scores"] == pytest.approx(expected.scores, abs=1e-3)
        np.testing.assert_allclose(found["rotation"], expected.rotation, atol=1e-3)
        cosine = (np.trace(found["rotation"]) - 1) / 2
        assert found["angle"] == pytest.approx(math.degrees(math.acos(cosine)), abs=0.1)


def test_a_shape_without_a_pose_has_no_rotation(client, chair):
    found = asked(client, 0 * chair)
    assert found["rotation"] is found["angle"] is None
    assert asked(client, chair)["rotation"] is not None  # control


def test_questions_that_wait_together_are_answered_as_alone(shapes, chair):
    """Also with different numbers of points."""
    clouds = [chair, chair[:200], -chair, chair[:200] * [1, 2, 3]]
    questions = [ShapeQuestion(points=cloud.tolist()) for cloud in clouds]
    alone = [shapes.answers([question])[0] for question in questions]
    for found, expected in zip(shapes.answers(questions), alone, strict=True):
        assert found.capsules.scores == pytest.approx(expected.capsules.scores, abs=1e-3)
    assert alone[0].capsules.scores != pytest.approx(alone[3].capsules.scores, abs=1e-3)  # control


def test_there_are_regenerated_shapes_to_choose_from(client):
    about = client.get("/api/model").json()["shapes"]
    assert (about["name"], about["classes"], about["most_points"]) == ("solids", list(SOLIDS.classes), 300)
    assert about["examples"] == "solids (regenerated, seed 0)"
    found = client.get("/api/shapes").json()
    assert [shape["label"] for shape in found] == 2 * list(SOLIDS.classes)
    clouds = np.array([shape["points"] for shape in found])
    assert clouds.shape == (10, 300, 3)
    np.testing.assert_allclose(np.linalg.norm(clouds, axis=-1).max(1), 1, atol=1e-5)


def test_a_page_without_a_model_of_shapes_says_so_and_has_none_of_this(images):
    with served(Playground(images)) as address, httpx.Client(base_url=address) as client:
        assert client.get("/api/model").json()["shapes"] is None
        assert "/api/shapes/answer" not in client.get("/openapi.json").json()["paths"]
        assert client.get("/api/shapes").status_code == 404
        assert client.post("/api/shapes/answer", json={"points": [[0, 0, 0]]}).status_code == 404
        assert uploaded(client, b"0 0 0\n", "xyz").status_code == 404
        assert uploaded(client, bytes(10**5)).status_code == 413  # nobody reads files there


@pytest.mark.parametrize("kind", ["off", "xyz", "npy"])
def test_a_file_becomes_the_points_that_predict_would_see(client, tmp_path, shapes, kind):
    path, chair = tmp_path / f"a.{kind}", SOLIDS.surfaces[1]
    if kind == "off":
        write_off(path, chair.triangles)
    else:
        points = 3 * chair.sample(500, torch.Generator().manual_seed(3)).double().numpy() + 5
        np.savetxt(path, points) if kind == "xyz" else np.save(path, points)
    response = uploaded(client, path.read_bytes(), kind)
    assert response.status_code == 200, response.text
    [expected] = read_clouds(path, shapes.most_points)
    assert len(expected) == 300
    np.testing.assert_allclose(response.json()["points"], prepared(expected), atol=1e-6)
    assert response.json()["label"] is None


def promising(count):
    """The header of an array, without the array."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (count, 3)})
    return file.getvalue() + bytes(48)


def pickled():
    file = io.BytesIO()
    np.save(file, np.array([[{}] * 3]), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "kind", "code", "message"),
    [
        (b"not a mesh", "off", 422, "the upload is truncated, corrupted or not in the format OFF"),
        (b"OFF\n9000000 1 0\n", "off", 422, "it has 9,000,000 points, more than 4,500,000"),
        (b"0 0 0\nnan 1 0\n", "xyz", 422, "NaN or infinite, in 1 of 2 points"),
        (b"1 2 3\n1 2 3\n", "xyz", 422, "no extent"),
        (b"1 2\n", "xyz", 422, "at least three numbers in each line"),
        (promising(10**12), "npy", 422, "which is more than there is"),
        (promising(-1), "npy", 422, "the upload is"),
        (pickled(), "npy", 422, "not an array of numbers"),
        (b"glTF", "glb", 422, "kind: Input should be 'off', 'obj', 'ply', 'stl', 'xyz' or 'npy'"),
        (b"0 0 0\n", "../xyz", 422, "kind: "),
        (b"", "xyz", 422, "required"),
        (bytes(Limits().largest + 1), "stl", 413, "longer than 8,000,000 bytes"),
    ],
    ids=["text", "too many", "nan", "a point", "pairs", "promise", "negative", "pickle", "glb", "path", "empty",
         "long"],
)  # fmt: skip
def test_bad_files_are_refused_with_a_message(client, content, kind, code, message):
    assert refused(uploaded(client, content, kind), code, message)


@pytest.mark.parametrize("kind", ["text/plain", "image/png", "application/octet-stream; charset=x"])
def test_files_of_other_content_types_are_refused(client, kind):
    assert refused(
        uploaded(client, b"0 0 0\n1 0 0\n", "xyz", {"Content-Type": kind}), 415, "expected application/octet"
    )
    assert uploaded(client, b"0 0 0\n1 0 0\n", "xyz").status_code == 200  # control


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"points": []}', "points must be a list of 1 to 300 points, not 0"),
        (f'{{"points": {[[0, 0, 0]] * 301}}}', "points must be a list of 1 to 300 points, not 301"),
        ('{"points": [[0, 0, 0], [0, 0]]}', "points.1: "),
        ('{"points": [[0, 0, 0, 0]]}', "points.0: "),
        ('{"points": [[0, NaN, 0]]}', "points.0.1: "),
        ('{"points": [[0, 0, -Infinity]]}', "points.0.2: "),
        ('{"points": [[0, 0, 1e999]]}', "points.0.2: "),
        ('{"points": [[0, 0, 1e10]]}', "points.0.2: Input should be less than or equal to 1000000000"),
        (f'{{"points": [[0, 0, {10**400}]]}}', "points.0.2: "),
        ('{"points": [[0, true, 0]]}', "points.0.1: "),
        ('{"points": [[0, "1", 0]]}', "points.0.1: "),
        ('{"points": [[0, null, 0]]}', "points.0.1: "),
        ('{"points": [0, 0, 0]}', "points.0: "),
        ('{"points": "chair.off"}', "points: "),
        ('{"points": [[0, 0, 0]], "path": "/etc/passwd"}', "path: Extra inputs are not permitted"),
        ("{}", "points: "),
    ],
    ids=lambda text: text[:40],
)
def test_bad_questions_are_refused_with_a_message(client, body, message):
    response = client.post("/api/shapes/answer", content=body, headers={"Content-Type": "application/json"})
    assert refused(response, 422, message)


def test_a_long_question_is_refused_before_it_is_parsed(client):
    assert refused(client.post("/api/shapes/answer", content=b" " * 70_000), 413, "longer than 61,696 bytes")


@pytest.mark.parametrize("path", ["/api/shapes/answer", "/api/shapes/file?kind=xyz"])
def test_other_pages_may_not_ask(client, path):
    for header in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert refused(client.post(path, content=b"0 0 0\n", headers={**BINARY, **header}), 403, "other pages")


def test_weights_that_give_no_finite_answer_are_no_mistake_of_the_client(images, shapes, chair):
    network = copy.deepcopy(shapes.model.network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(torch.nan)
    damaged = ShapePlayground(PointModel(network, shapes.model.card))
    with served(Playground(images, shapes=damaged)) as address:
        response = httpx.post(f"{address}/api/shapes/answer", json={"points": chair.tolist()})
    assert refused(response, 500, "finite")


def test_images_and_shapes_share_the_places_of_uploads(images, shapes, connect):
    """A shape takes the place of an image that has not arrived."""
    with served(Playground(images, shapes=shapes), Limits(uploads=1)) as address:
        wire = connect(address).head("POST /api/picture", "Content-Type: image/png", "Content-Length: 9").send("\r\n")
        assert wire.is_open
        with httpx.Client(base_url=address) as client:
            assert uploaded(client, b"0 0 0\n1 0 0\n", "xyz").status_code == 200
        assert "others needed its place" in wire.read()

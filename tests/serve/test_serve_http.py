"""The HTTP interface of the page: what it answers and what it refuses."""

import io
import re
import socket
import struct
import time
import zlib
from dataclasses import replace

import httpx
import numpy as np
import pytest
import torch
from PIL import Image
from serving import served, untrained

import equicaps
from equicaps.inference import PoseModel
from equicaps.serve import Limits, Playground, interchangeable
from equicaps.serve.app import FILES
from equicaps.serve.guard import HEADERS
from equicaps.serve.messages import Question

SIDES = {"untrained": [16, 16, 8, 1], "untrained-paper": [16, 8, 4, 2, 1]}
"""The sides of the layers of each model."""


@pytest.fixture(scope="module")
def digit(client):
    """A digit that is clearly different from its rotations."""
    return client.get("/api/digits").json()[14]["pixels"]


def asked(client, pixels, **options):
    response = client.post("/api/answer", json={"pixels": pixels, **options})
    assert response.status_code == 200, response.text
    return response.json()


def refused(response, code, message):
    assert response.status_code == code, response.text
    assert message in response.json()["detail"], response.text
    return True


def png(picture):
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()


def uploaded(client, content, kind="image/png", **query):
    return client.post("/api/picture", content=content, headers={"Content-Type": kind}, params=query)


@pytest.mark.parametrize("model", SIDES)
@pytest.mark.parametrize("quarters", [1, 2, 3, -1])
def test_quarter_turns_move_pixels_and_poses_and_nothing_else(client, digit, quarters, model):
    upright, rotated = asked(client, digit, model=model), asked(client, digit, model=model, degrees=90 * quarters)
    square = np.array(digit).reshape(28, 28)
    assert upright["image"] == digit
    assert np.array_equal(np.reshape(rotated["image"], (28, 28)), np.rot90(square, quarters))
    assert rotated["image"] != digit
    for kind in ("scores", "agreements"):
        assert rotated["capsules"][kind] == pytest.approx(upright["capsules"][kind], abs=1e-3)
    assert (rotated["capsules"]["angle"] - upright["capsules"]["angle"] - 90 * quarters + 180) % 360 - 180 == (
        pytest.approx(0, abs=0.1)
    )
    assert rotated["plain"]["scores"] != pytest.approx(upright["plain"]["scores"], abs=1e-2)  # control


@pytest.mark.parametrize("model", SIDES)
def test_the_arrows_of_every_layer_rotate_with_the_picture(client, digit, model):
    """The arrows of rot90(x) are those of x, with their positions and directions rotated."""
    upright, rotated = asked(client, digit, model=model), asked(client, digit, model=model, degrees=90)
    assert [layer["side"] for layer in upright["layers"]] == SIDES[model]
    for before, after in zip(upright["layers"], rotated["layers"], strict=True):
        shape = (-1, before["side"], before["side"], 2)
        x, y = np.moveaxis(np.reshape(before["arrows"], shape), -1, 0)
        expected = np.stack((-np.rot90(y, 1, (1, 2)), np.rot90(x, 1, (1, 2))), -1)
        found = np.reshape(after["arrows"], shape)
        assert np.abs(found).max() > 0.9
        np.testing.assert_allclose(found, expected, atol=0.01)
        assert np.abs(found - np.reshape(before["arrows"], shape)).max() > 0.1  # guard: they do rotate


def test_rotating_the_pose_changes_only_the_reconstruction(client, digit):
    upright, rotated = asked(client, digit), asked(client, digit, pose_degrees=120)
    assert rotated["reconstruction"] != upright["reconstruction"]
    assert len(upright["reconstruction"]) == 32 * 32
    for same in ("image", "capsules", "plain", "layers"):
        assert rotated[same] == upright[same]


def test_the_page_learns_which_models_there_are(client):
    keys = ("name", "label", "layers", "reconstruction_side")
    assert [tuple(model[key] for key in keys) for model in client.get("/api/model").json()["models"]] == [
        ("untrained", "our network (steerable)", 4, 32),
        ("untrained-paper", "the paper's network", 5, None),
    ]


def test_the_chosen_model_answers_and_the_first_one_if_none_is_chosen(client, digit, paper):
    ours, theirs = (asked(client, digit, degrees=33, model=name) for name in SIDES)
    image = torch.tensor(ours["image"]).reshape(1, 1, 28, 28) / 255
    assert theirs["capsules"]["scores"] == pytest.approx(next(iter(paper.predict(image))).scores, abs=0.05)
    assert theirs["capsules"]["scores"] != pytest.approx(ours["capsules"]["scores"], abs=0.05)  # control
    assert (len(ours["layers"]), len(theirs["layers"])) == (4, 5)
    assert theirs["reconstruction"] is None
    assert ours["reconstruction"] is not None
    for same in ("image", "plain"):  # the comparison stays the same
        assert theirs[same] == ours[same]
    for options in ({}, {"model": None}):
        unnamed = asked(client, digit, degrees=33, **options)
        assert {**unnamed, "cpu_milliseconds": 0} == {**ours, "cpu_milliseconds": 0}


@pytest.mark.parametrize("model", SIDES)
def test_an_answer_is_cheap(playground, digit, model):
    """benchmarks/serve.py measures against 50 ms; shape checks and a busy machine make it slower here."""
    started = time.process_time()
    question = Question(pixels=digit, degrees=33, model=model)
    costs = [reply.cpu_milliseconds for _ in range(5) for reply in playground.answers([question])]
    assert min(costs) < 150
    assert sum(costs) <= 1000 * (time.process_time() - started) + 1  # guard: it reports CPU time,
    assert min(costs) > 1  # and does not leave out the work


def test_a_model_of_other_classes_has_no_digits_no_plain_cnn_and_its_own_size():
    with (
        served(Playground(untrained("steerable", classes="ab", frame=20, channels=3))) as address,
        httpx.Client(base_url=address) as client,
    ):
        about = client.get("/api/model").json()
        assert (about["classes"], about["side"], about["channels"]) == (["a", "b"], 20, 3)
        assert not about["digits"]
        assert not about["plain"]
        assert [model["reconstruction_side"] for model in about["models"]] == [None]  # one model, not decoded
        assert client.get("/api/digits").json() == []
        found = uploaded(client, png(Image.new("RGB", (60, 40), (255, 0, 10))))
        assert found.status_code == 200, found.text
        pixels = found.json()["pixels"]
        assert len(pixels) == 3 * 20 * 20
        found = asked(client, pixels, degrees=17)
        assert found["plain"] is found["reconstruction"] is None
        assert set(found["capsules"]["scores"]) == {"a", "b"}


def test_networks_of_different_classes_are_not_compared(playground):
    model = playground.models["untrained"].model
    other = replace(model.card, classes=tuple("abcdefghij"))
    with pytest.raises(ValueError, match="must have the same classes"):
        Playground(model, PoseModel(model.network, other))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": tuple("abcdefghij")}, "must have the same classes"),
        ({"frame": 20}, "not 1 x 28 x 28 and 1 x 20 x 20"),
        ({"name": "untrained"}, "must have different names, not untrained, untrained"),
    ],
    ids=["classes", "frame", "name"],
)
def test_the_page_switches_only_between_models_of_the_same_pictures(playground, paper, change, message):
    model = playground.models["untrained"].model
    with pytest.raises(ValueError, match=message):
        Playground(model, others=[PoseModel(paper.network, replace(paper.card, **change))])
    assert len(Playground(model, others=[paper]).models) == 2  # control: unchanged it is accepted


def test_models_of_other_channels_are_not_interchangeable(playground, paper):
    assert interchangeable(playground.models["untrained"].model, paper)
    assert not interchangeable(untrained("paper", channels=3), paper)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_images_of_every_common_format_are_read(client, digit, kind):
    file = io.BytesIO()
    Image.fromarray(np.uint8(digit).reshape(28, 28)).resize((84, 84)).save(file, format=kind)
    found = uploaded(client, file.getvalue(), f"image/{kind.lower()}")
    assert found.status_code == 200, found.text
    assert np.abs(np.subtract(found.json()["pixels"], digit)).mean() < 6


def test_an_image_of_the_right_size_keeps_its_bytes(client, digit):
    assert uploaded(client, png(Image.fromarray(np.uint8(digit).reshape(28, 28)))).json()["pixels"] == digit


def test_a_dark_digit_anywhere_on_paper_is_laid_out_as_in_mnist(client, digit):
    """White on black, 20 pixels long, centred on its centre of mass."""
    paper = Image.new("L", (300, 200), 230)
    ink = Image.fromarray(np.uint8(digit).reshape(28, 28)).resize((84, 84))
    paper.paste(20, (10, 100), ink)
    found = np.reshape(uploaded(client, png(paper), centre=True).json()["pixels"], (28, 28)).astype(float)
    rows, columns = (np.flatnonzero(found.max(axis) > 80) for axis in (1, 0))
    assert 18 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 20
    centre = [(found.sum(1 - axis) * np.arange(28)).sum() / found.sum() for axis in (0, 1)]
    assert centre == pytest.approx([14, 14], abs=0.6)
    assert np.corrcoef(found.ravel(), digit)[0, 1] > 0.8
    assert refused(uploaded(client, png(Image.new("L", (50, 50), 230)), centre=True), 422, "only one shade")


def bomb(side):
    """A small PNG whose header promises side x side pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(10**6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "kind", "code", "message"),
    [
        (b"hello", "text/plain", 415, "expected an image, but the content type is 'text/plain'"),
        (b"<svg/>", "image/svg+xml", 422, "not a readable image: its format is not known"),
        (b"\x89PNG\r\n\x1a\nnonsense", "image/png", 422, "the upload is"),
        (bomb(8000), "image/png", 422, "more than 50 megapixels"),
        (bomb(60000), "image/png", 422, "refused"),
        (bomb(2000)[:200], "image/png", 422, "the upload is"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "image/png", 422, "format is not known"),
        (bytes(Limits().largest + 1), "image/png", 413, "longer than 8,000,000 bytes"),
        (b"", "image/png", 422, "required"),
    ],
    ids=["text", "svg", "broken", "bomb", "larger bomb", "truncated", "postscript", "too long", "empty"],
)  # fmt: skip
def test_bad_uploads_are_refused_with_a_message(client, content, kind, code, message):
    assert refused(uploaded(client, content, kind), code, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pixels": [0] * 783}, "pixels must be 784 numbers (1 x 28 x 28), not 783"),
        ({"pixels": [256] * 784}, "pixels.0: "),
        ({"pixels": "7"}, "pixels: "),
        ({"degrees": 361}, "degrees: "),
        ({"degrees": "90"}, "degrees: "),
        ({"pose_degrees": None}, "pose_degrees: "),
        ({"model": "digits"}, "model must be one of untrained, untrained-paper, not 'digits'"),
        ({"model": ""}, "model must be one of untrained, untrained-paper, not ''"),
        ({"model": 1}, "model: "),
        ({"path": "/etc/passwd"}, "path: Extra inputs are not permitted"),
    ],
    ids=str,
)
def test_bad_questions_are_refused_with_a_message(client, digit, change, message):
    assert refused(client.post("/api/answer", json={"pixels": digit, **change}), 422, message)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999", "[", "\udcff"])
def test_invalid_json_is_refused(client, word):
    content = f'{{"pixels": [], "degrees": {word}}}'.encode(errors="surrogateescape")
    response = client.post("/api/answer", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["detail"]


def test_a_body_without_a_length_is_bounded_too(address):
    """A chunked body has no length to check beforehand: the excess is discarded as it arrives."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        head = f"POST /api/picture HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: image/png\r\n"
        wire.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(10):
            wire.sendall(f"{10**6:x}\r\n".encode() + bytes(10**6) + b"\r\n")
        wire.sendall(b"0\r\n\r\n")
        assert wire.recv(100).startswith(b"HTTP/1.1 413")


def test_every_response_carries_the_security_headers(client):
    responses = [
        client.get("/"), client.get("/page.js"), client.get("/api/model"), client.get("/nowhere"),
        client.delete("/api/model"), client.get("/", headers={"Host": "evil.example"}), client.post("/api/answer"),
    ]  # fmt: skip
    assert {response.status_code for response in responses} == {200, 404, 405, 421, 422}
    for response in responses:
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS
        assert "server" not in response.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script_or_style(client):
    page = client.get("/").text
    files = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(files) >= 4
    texts = [page, *(client.get(file).raise_for_status().text for file in set(files) | set(FILES))]
    for text in texts:
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"<style|<script>|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize(
    "path", ["/../app.py", "/..%2f..%2fapp.py", "/static/page.js", "/app.py", "//etc/passwd", "/%00", "/docs", "/redoc"]
)
def test_no_url_becomes_a_file_path(address, path):
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        assert wire.recv(50).startswith(b"HTTP/1.1 404")


def test_the_interface_states_its_version_the_number_of_pixels_and_the_models(client):
    found = client.get("/openapi.json").json()
    assert found["info"]["version"] == equicaps.__version__
    question = found["components"]["schemas"]["Question"]["properties"]
    assert (question["pixels"]["minItems"], question["pixels"]["maxItems"]) == (784, 784)
    assert question["model"]["enum"] == [*SIDES, None]

"""The tab of shapes in a real, headless Chromium: the cloud is dragged, the class stays, the frame turns with it."""

import base64
import io
import json

import numpy as np
import pytest
from browsing import needs_chromium
from PIL import Image
from playwright.sync_api import expect
from serving import served, untrained
from small_shapes import point_model

from equicaps.serve import Playground, ShapePlayground

pytestmark = needs_chromium
ANSWERED = '#shape-answer[aria-busy="false"]'
X_AXIS = (255, 90, 67)
AZIMUTH, ELEVATION = np.radians(-35), np.radians(22)
"""From where the page looks: zero is along the second axis, with the first to the right and the third up."""


@pytest.fixture(scope="module")
def address():
    with served(Playground(untrained("steerable"), shapes=ShapePlayground(point_model()))) as found:
        yield found


class Tab:
    """The tab, with what it has asked the server and what it was answered."""

    def __init__(self, opened, address, **options):
        self.opened = opened(f"{address}/#shapes", ready=ANSWERED, **options)
        self.page = self.opened.page
        self.exchanges = []
        self.page.on("requestfinished", self._remember)
        self.page.get_by_role("button", name="cup").first.click()
        self.answered()

    def _remember(self, request):
        if request.url.endswith("/api/shapes/answer"):
            points = np.array(json.loads(request.post_data)["points"])
            self.exchanges.append((points, request.response().json()["capsules"]))

    def answered(self):
        """Wait for the answer to the shape as it is now; the points that were sent last, and the answer."""
        self.page.wait_for_selector(ANSWERED)
        self.page.wait_for_timeout(50)  # until the last request is remembered
        return self.exchanges[-1]

    def text(self, name):
        return self.page.locator(f"#{name}").inner_text()

    def tip(self):
        """The place of the first axis on the canvas, in parts of its width from the middle: the mean of its pixels."""
        address = self.page.locator("#cloud").evaluate("(canvas) => canvas.toDataURL()")
        with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as picture:
            pixels = np.array(picture.convert("RGB"))
        rows, columns = np.nonzero((pixels == X_AXIS).all(-1))
        if not len(rows):
            return None
        return np.array([columns.mean(), rows.mean()]) / len(pixels) - 0.5


def rotation_between(before, after):
    """The rotation that takes points to others, and how far it misses them (Kabsch)."""
    u, _, v = np.linalg.svd(after.T @ before)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ v)]) @ v
    return turn, np.abs(before @ turn.T - after).max()


def projected(rotation):
    """The direction of the first axis of a frame on the screen: right and down."""
    x, y, z = np.array(rotation)[:, 0]
    right, away = np.cos(AZIMUTH) * x + np.sin(AZIMUTH) * y, np.cos(AZIMUTH) * y - np.sin(AZIMUTH) * x
    return np.array([right, -np.cos(ELEVATION) * z - np.sin(ELEVATION) * away])


def aligned(a, b):
    """The cosine of the angle between two directions."""
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_dragging_rotates_the_points_and_the_frame_and_leaves_the_class(opened, address):
    tab = Tab(opened, address)
    points, first = tab.answered()
    shown = [tab.text(name) for name in ("shape-label", "shape-confidence", "shape-bars")]
    tip, picture = tab.tip(), tab.opened.pixels("#cloud")[1]
    assert (tab.text("shape-label"), tab.text("shape-change")) == (first["label"], "")
    tab.opened.drag("#cloud", [(0.4, 0.5), (0.75, 0.65)])
    moved, answer = tab.answered()
    turn, off = rotation_between(points, moved)
    assert off < 1e-9  # all points are rotated together,
    assert np.degrees(np.arccos((np.trace(turn) - 1) / 2)) == pytest.approx(
        47.4, abs=1
    )  # by what was dragged (0.38 / 0.46 radii)
    assert answer["label"] == first["label"]
    np.testing.assert_allclose(answer["rotation"], turn @ first["rotation"], atol=1e-3)
    assert [tab.text(name) for name in ("shape-label", "shape-confidence", "shape-bars")] == shown
    assert float(tab.text("shape-change").removeprefix("confidence changed by ")) < 1e-4
    assert "of where your rotation takes it" in tab.text("follows")
    assert aligned(tip, projected(first["rotation"])) > 0.99
    assert aligned(tab.tip(), projected(answer["rotation"])) > 0.99  # the axes are those of the answer,
    assert aligned(tab.tip(), tip) < 0.95  # and have moved,
    assert tab.opened.pixels("#cloud")[1] != picture
    assert tab.text("shape-degrees") == "47°"

    tab.page.click("#first-view")
    again, _ = tab.answered()
    assert np.array_equal(again, points)
    np.testing.assert_allclose(tab.tip(), tip, atol=1e-3)  # and back

    cloud = tab.page.locator("#cloud")  # by keys
    cloud.press("Shift+ArrowRight")
    tab.answered()
    assert tab.text("shape-degrees") == "90°"
    for key in ("ArrowUp", "ArrowDown", "Shift+ArrowLeft"):
        cloud.press(key)
    np.testing.assert_allclose(tab.answered()[0], points, atol=1e-9)
    tab.page.click("#random")
    moved, answer = tab.answered()
    turn, off = rotation_between(points, moved)
    assert off < 1e-9
    assert np.abs(turn - np.eye(3)).max() > 0.01
    assert answer["label"] == first["label"]
    np.testing.assert_allclose(answer["rotation"], turn @ first["rotation"], atol=1e-3)


DROP = """(stage) => {
    const data = new DataTransfer();
    data.items.add(new File(["0 0 0\\n1 0 0\\n0 1 0\\n0 0 1\\n"], "a.XYZ"));
    stage.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def test_files_are_read_without_a_pose_there_are_no_axes_and_a_bad_file_gets_a_message(opened, address, tmp_path):
    tab = Tab(opened, address, color_scheme="dark")
    assert tab.tip() is not None  # control
    line = tmp_path / "line.xyz"
    line.write_text("0 0 0\n0 0 1\n" * 100)
    tab.page.set_input_files("#shape-file", line)
    expect(tab.page.locator("#frame-hint")).to_contain_text("has no pose")
    assert tab.text("shape-angle") == "none"
    assert tab.tip() is None
    bad = tmp_path / "bad.off"
    bad.write_bytes(b"not a mesh")
    tab.page.set_input_files("#shape-file", bad)
    expect(tab.page.locator("#shape-problem")).to_contain_text("not in the format OFF")
    tab.opened.messages = [
        text for text in tab.opened.messages if "422" not in text
    ]  # Chromium logs the refusal itself


def test_tabs_are_chosen_by_click_and_key_and_fit_a_phone(opened, address):
    tab = Tab(opened, address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    shapes, images = tab.page.locator("#shapes"), tab.page.locator("#images")
    expect(images).to_be_hidden()
    assert tab.text("model").startswith("model solids: ")
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= 360
    tab.page.get_by_role("tab", name="Images").tap()
    tab.opened.at(0)
    expect(images).to_be_visible()
    expect(shapes).to_be_hidden()
    assert tab.text("model").startswith("model untrained: ")
    tab.page.get_by_role("tab", name="Images").press("ArrowRight")
    expect(shapes).to_be_visible()
    assert tab.opened.pixels("#cloud")[0] < 0.995  # still there

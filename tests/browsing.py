"""For the tests of the page in a real, headless Chromium."""

import base64
import io
import shutil

import pytest
from PIL import Image
from playwright.sync_api import expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000  # milliseconds; the machine may be busy

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium found (apt-get install chromium): the page was not tested in a browser"
)


class Page:
    """The page as a person sees it; collects console messages and requests."""

    def __init__(self, browser, address, *, ready='[data-degrees="0"]', **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 1000}, **options})
        self.context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = self.context.new_page()
        self.messages, self.requests = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector(ready, state="attached")

    def at(self, degrees, pose_degrees=0, model=None):
        """Wait until the answer for these angles, and of this model if given, is shown."""
        angles = f'[data-degrees="{degrees}"][data-pose-degrees="{pose_degrees}"]'
        chosen = "" if model is None else f'[data-model="{model}"]'
        self.page.wait_for_selector(f"body{angles}{chosen}", state="attached")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def angle(self):
        return float(self.page.locator("#angle").get_attribute("data-degrees"))

    def shown(self):
        """Everything written about the capsule network's answer except the angle."""
        return self.text("#label"), self.text("#confidence"), self.text("#capsule-bars tbody")

    def pixels(self, selector):
        """The share of a canvas that its most frequent colour covers, and its content."""
        address = self.page.locator(selector).evaluate("(canvas) => canvas.toDataURL()")
        with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as found:
            picture = found.convert("RGB")
        return max(count for count, _ in picture.getcolors(10**6)) / (picture.width * picture.height), picture.tobytes()

    def drag(self, selector, points, steps=4):
        box = self.page.locator(selector).bounding_box()
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=steps)
        self.page.mouse.up()

"""The page of the real command in a real, headless Chromium; also takes a screenshot.

`EQUICAPS_SCREENSHOT=docs/figures/serve.png python -m pytest tests/serve/test_serve_browser.py` makes the README's.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import needs_chromium
from PIL import Image
from playwright.sync_api import expect
from serving import served, untrained

from equicaps.serve import Playground

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def server():
    """`equicaps serve`, started as a user would."""
    command = [sys.executable, "-m", "equicaps.cli.main", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            yield re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        finally:
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=60)[1]
    assert (process.returncode, errors) == (0, "")  # Ctrl-C ends quietly


def rotation_error(page, before, degrees):
    """The difference between how far the pose has rotated and ``degrees``."""
    return abs((page.angle() - before - degrees + 180) % 360 - 180)


def test_quarter_turns_change_no_figure_and_rotate_the_arrow_by_90_degrees(opened, tmp_path):
    page = opened()
    page.page.get_by_role("button", name="digit 4").first.click()
    expect(page.page.locator("#label")).to_have_text("4")
    upright, angle, plain = page.shown(), page.angle(), page.text("#plain-bars tbody")
    page.page.click("#left")
    page.at(90)
    assert page.shown() == upright
    assert rotation_error(page, angle, 90) < 0.1
    assert page.text("#plain-bars tbody") != plain  # control: those of the plain CNN do change
    assert "quarter turn" in page.text("#change")
    page.page.locator("#picture").press("Shift+ArrowRight")
    page.at(180)
    assert page.shown() == upright
    assert rotation_error(page, angle, 180) < 0.1
    page.page.click("#right")
    page.page.click("#right")
    page.at(0)

    fields = [page.pixels(f"#layers figure:nth-child({k}) canvas") for k in (1, 2, 3, 4)]
    page.page.fill("#degrees", "40")
    page.at(40)
    assert rotation_error(page, angle, 40) < 20
    assert "in between" in page.text("#change")
    for k, (covered, field) in enumerate(fields, 1):
        assert covered < 0.97  # not empty
        assert page.pixels(f"#layers figure:nth-child({k}) canvas")[1] != field  # the arrows rotate

    page.drag("#picture", [(0.9, 0.5), (0.8, 0.2), (0.5, 0.1)])  # a quarter, counter-clockwise
    page.at(130)
    reconstruction = page.pixels("#reconstruction")
    assert reconstruction[0] < 0.97
    page.page.fill("#pose-degrees", "90")
    page.at(130, pose_degrees=90)
    assert page.pixels("#reconstruction")[1] != reconstruction[1]
    assert page.text("#pose-degrees-out") == "90°"

    page.page.fill("#pose-degrees", "0")
    requested = os.environ.get("EQUICAPS_SCREENSHOT")
    for degrees in (*range(-180, 181, 6 if requested else 90), 90):
        page.page.fill("#degrees", str(degrees))
        page.at(degrees)
    page.page.mouse.move(0, 0)
    page.page.locator("#degrees").blur()
    target = Path(requested or tmp_path / "serve.png")
    page.page.screenshot(path=target, full_page=True)
    with Image.open(target) as picture:
        assert picture.width == 1280


def test_a_drawn_digit_is_classified_and_bad_uploads_get_a_message(opened, tmp_path):
    page = opened(color_scheme="dark")
    page.page.click("#mode-draw")
    page.drag("#picture", [(0.5, 0.2), (0.5, 0.8)])
    expect(page.page.locator("#label")).to_have_text("1")
    expect(page.page.locator("#plain-label")).to_have_text("1")
    page.page.click("#mode-rotate")
    page.page.click("#right")
    page.at(-90)
    assert page.text("#label") == "1"
    assert page.pixels("#picture")[0] < 0.97

    bad = tmp_path / "bad.png"
    bad.write_bytes(b"not an image")
    page.page.set_input_files("#file", bad)
    expect(page.page.locator("#problem")).to_contain_text("is not a readable image")
    assert page.text("#label") == "1"
    page.messages = [text for text in page.messages if "422" not in text]  # Chromium logs the refusal itself
    good = tmp_path / "paper.png"
    paper = Image.new("L", (200, 200), 240)
    paper.paste(10, (90, 40, 105, 160))
    paper.save(good)
    page.page.set_input_files("#file", good)
    expect(page.page.locator("#problem")).to_be_hidden()
    page.at(0)
    assert page.text("#label") == "1"


def test_the_page_fits_a_phone_without_scrolling_sideways(opened):
    page = opened(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.page.locator("#digits button").nth(2).tap()
    expect(page.page.locator("#label")).to_have_text("2")
    page.page.locator("#left").tap()
    page.at(90)
    assert page.text("#label") == "2"
    assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_switching_to_the_papers_network_shows_its_layers_and_switching_back_ours(opened, address):
    """The picture and its rotation stay, everything that depends on the network changes."""
    page = opened(address)
    group = page.page.get_by_role("group", name="Which capsule network answers")
    ours, theirs = (
        group.get_by_role("radio", name=name, exact=True) for name in ("our network (steerable)", "the paper's network")
    )
    layers, reconstruction = page.page.locator("#layers figure"), page.page.locator("#reconstruction")
    page.page.fill("#degrees", "40")
    page.at(40, model="untrained")
    expect(ours).to_be_checked()
    expect(layers).to_have_count(4)
    expect(reconstruction).to_be_visible()
    before, picture, plain = page.shown(), page.pixels("#picture"), page.text("#plain-bars tbody")

    ours.press("ArrowDown")  # radio buttons by keyboard
    page.at(40, model="untrained-paper")
    expect(theirs).to_be_checked()
    expect(layers).to_have_count(5)
    expect(layers.last).to_contain_text("Layer 5: all 10 capsules, 1×1")
    for k in range(1, 6):
        assert page.pixels(f"#layers figure:nth-child({k}) canvas")[0] < 0.97  # not empty
    expect(reconstruction).to_be_hidden()
    assert page.text("#model").startswith("model untrained-paper: ")
    assert page.shown() != before
    assert page.text("#plain-bars tbody") == plain
    assert re.fullmatch(r"in between: largest change (?!0$).+", page.text("#change"))  # from its own answer at 0°

    page.page.get_by_text("our network (steerable)").click()
    page.at(40, model="untrained")
    expect(layers).to_have_count(4)
    expect(reconstruction).to_be_visible()
    assert page.text("#model").startswith("model untrained: ")
    assert (page.shown(), page.pixels("#picture")) == (before, picture)


def test_an_answer_that_arrives_after_the_switch_is_not_shown(opened, address):
    page = opened(address)
    held = []
    page.page.route("**/api/answer", lambda route: route.continue_() if held else held.append(route))
    page.page.click("#left")
    expect(page.page.locator("#degrees-out")).to_have_text("90°")
    page.page.get_by_text("the paper's network").click()
    held[0].continue_()  # the question to our network
    page.at(90, model="untrained-paper")
    expect(page.page.locator("#problem")).to_be_hidden()
    expect(page.page.locator("#layers figure").last).to_contain_text("Layer 5: all 10 capsules")


def test_a_single_model_leaves_nothing_to_choose(opened, address):
    with served(Playground(untrained("steerable"))) as alone:
        page = opened(f"{alone}/#shapes").page
        for name in ("#models", "#tabs", "#shapes"):  # nor is there a tab of shapes
            expect(page.locator(name)).to_be_hidden()
        expect(page.locator("#images")).to_be_visible()
        expect(opened(address).page.locator("#models")).to_be_visible()  # control

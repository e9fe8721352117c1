"""Questions that wait together are answered together, as they would be one by one; too many are refused."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import torch
from serving import running, served, untrained

from equicaps.errors import UnansweredError
from equicaps.serve import Limits, Playground
from equicaps.serve.messages import Question


@pytest.fixture(scope="module")
def digits(playground):
    return [digit.pixels for digit in playground.digits]


def assert_same(found, expected):
    """Two replies, up to rounding; pictures are those of the same bytes."""
    assert found.image == expected.image
    for one, other in ((found.capsules, expected.capsules), (found.plain, expected.plain)):
        assert one.label == other.label
        assert one.scores == pytest.approx(other.scores, abs=1e-4)
    assert found.capsules.agreements == pytest.approx(expected.capsules.agreements, abs=1e-4)
    assert (found.capsules.angle - expected.capsules.angle + 180) % 360 - 180 == pytest.approx(0, abs=0.05)
    assert [layer.shown for layer in found.layers] == [layer.shown for layer in expected.layers]
    for one, other in zip(found.layers, expected.layers, strict=True):
        np.testing.assert_allclose(one.arrows, other.arrows, atol=0.0021)
    if expected.reconstruction is None:
        assert found.reconstruction is None
    else:
        assert np.abs(np.subtract(found.reconstruction, expected.reconstruction)).max() <= 1


def test_answers_do_not_depend_on_who_waits_beside(playground, digits):
    """Different pictures, angles, poses and models in one batch: each answer is the one that it has alone."""
    questions = [
        Question(pixels=digits[k], degrees=45.0 * k, pose_degrees=10.0 * k, model=model)
        for k, model in enumerate(["untrained", "untrained-paper", None, "untrained", "untrained-paper", "untrained"])
    ]
    together = playground.answers(questions)
    alone = [playground.answers([question])[0] for question in questions]
    for found, expected in zip(together, alone, strict=True):
        assert_same(found, expected)
    with pytest.raises(AssertionError):  # control
        assert_same(together[0], alone[5])


@pytest.mark.parametrize("model", ["untrained", "untrained-paper"])
def test_quarter_turns_stay_exact_in_a_batch(playground, digits, model):
    angles = [0.0, 33.0, 90.0, 123.0, 180.0, 270.0]
    replies = dict(
        zip(
            angles,
            playground.answers([Question(pixels=digits[14], degrees=angle, model=model) for angle in angles]),
            strict=True,
        )
    )
    for quarters in (1, 2, 3):
        upright, rotated = replies[0.0], replies[90.0 * quarters]
        assert np.array_equal(
            np.reshape(rotated.image, (28, 28)), np.rot90(np.reshape(upright.image, (28, 28)), quarters)
        )
        assert rotated.capsules.scores == pytest.approx(upright.capsules.scores, abs=1e-3)
        turn = rotated.capsules.angle - upright.capsules.angle - 90 * quarters
        assert (turn + 180) % 360 - 180 == pytest.approx(0, abs=0.1)
    assert replies[33.0].capsules.scores != pytest.approx(replies[0.0].capsules.scores, abs=1e-3)  # control


class Gate:
    """In place of a playground's answers: waits until it is opened, and counts how many questions come at once."""

    def __init__(self, playground):
        self.answers, self.counts = playground.answers, []
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, questions):
        self.counts.append(len(questions))
        self.entered.set()
        assert self.opened.wait(60)
        return self.answers(questions)


@pytest.fixture
def small():
    """A playground whose pictures are 3x3."""
    return Playground(untrained("steerable", frame=3))


@pytest.fixture
def gate(small, monkeypatch):
    found = Gate(small)
    monkeypatch.setattr(small, "answers", found)
    yield found
    found.opened.set()


def ask(address, value=0):
    return httpx.post(f"{address}/api/answer", json={"pixels": [value] * 9}, timeout=60)


def test_what_waits_together_is_answered_together_and_more_than_may_wait_is_refused(small, gate):
    limits = Limits(waiting=5, batch=3)
    with served(small, limits) as address, ThreadPoolExecutor(20) as clients:
        first = clients.submit(ask, address)
        assert gate.entered.wait(60)
        later = [clients.submit(ask, address, value) for value in range(8)]
        refused = [future.result() for future in wait_for(later, 3)]
        for response in refused:
            assert response.status_code == 503
            assert response.headers["Retry-After"] == "1"
            assert "too many others are waiting" in response.json()["detail"]
        assert httpx.get(f"{address}/api/model").status_code == 200  # everything else goes on
        gate.opened.set()
        codes = [future.result().status_code for future in (first, *later)]
    assert sorted(codes) == [200] * 6 + [503] * 3
    assert gate.counts == [1, 3, 2]


def wait_for(futures, count):
    """The first ``count`` futures that are done."""
    over = threading.Event()
    done = []

    def note(future):
        done.append(future)
        if len(done) >= count:
            over.set()

    for future in futures:
        future.add_done_callback(note)
    assert over.wait(60)
    return done[:count]


def test_the_server_ends_at_once_and_without_a_word_while_questions_wait(small, gate, capsys):
    """Those that are being answered, half sent or not sent; a second Ctrl-C does not wait for any answer."""
    with running(small) as (server, address), ThreadPoolExecutor(5) as clients:
        futures = [clients.submit(ask, address) for _ in range(3)]
        assert gate.entered.wait(60)
        begun = httpx.Client(base_url=address)
        assert begun.get("/api/model").status_code == 200  # stays connected
        server.should_exit = server.force_exit = True
        for future in futures:
            with pytest.raises(httpx.TransportError):
                future.result(timeout=60)
        gate.opened.set()  # the thread that computes cannot be interrupted
        begun.close()
    assert capsys.readouterr().err == ""


def test_who_waits_when_the_server_ends_is_answered(small, gate, capsys):
    with running(small) as (server, address), ThreadPoolExecutor(5) as clients:
        future = clients.submit(ask, address)
        assert gate.entered.wait(60)
        server.should_exit = True
        gate.opened.set()
        assert future.result(timeout=60).status_code == 200
    assert capsys.readouterr().err == ""


def test_a_network_without_an_answer_is_a_message_and_no_trace(capsys):
    """Weights that are not finite: :class:`UnansweredError` tells what to do."""
    model = untrained("steerable", frame=3)
    with served(Playground(model)) as address:
        assert ask(address).status_code == 200  # control
        with torch.no_grad():
            next(model.network.parameters()).fill_(torch.nan)
        response = ask(address)
    assert response.status_code == 500
    assert "the network has no answer for image 1 of 1" in response.json()["detail"]
    assert "Content-Security-Policy" in response.headers
    assert capsys.readouterr().err == ""


def test_a_picture_without_an_answer_does_not_keep_the_others_from_theirs(small, monkeypatch):
    shown = small.models["untrained"]
    explain = type(shown).explain

    def explained(self, images, pose_degrees):
        if bool((images.amax((1, 2, 3)) == 1).any()):
            raise UnansweredError("none for white")
        return explain(self, images, pose_degrees)

    monkeypatch.setattr(type(shown), "explain", explained)
    found = small.answers([Question(pixels=[float(value)] * 9) for value in (0, 255, 9)])
    assert [type(reply).__name__ for reply in found] == ["Reply", "UnansweredError", "Reply"]
    assert found[2].image == [9] * 9

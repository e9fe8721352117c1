"""`equicaps serve` under load: how long an answer takes, how many there are, and how much memory. Prints JSON.

Run: OMP_NUM_THREADS=1 python benchmarks/serve.py [--clients 50] [--seconds 120]. Linux only: it reads /proc.

It starts the real command as a process of its own. Each client waits for its answer before it asks the next question;
the questions rotate the twenty digits of the page and take turns between the models. A client whose question is
refused with 503 waits as long as Retry-After says. Ctrl-C ends the server while the clients are still asking.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from equicaps.training.log import provenance

ALONE = 30
"""Questions that are asked one by one before the load, to measure an answer without company."""
SETTLED = 3.0
"""Seconds between the end of the load and the last look at the memory."""


class Server:
    """`equicaps serve` as a process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "equicaps.cli.main", "serve", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found is not None, "the server did not start"
        self.port = int(found[1])

    def megabytes(self) -> float:
        """The memory that the process has in use (its resident set)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index] # it is always there

    def stop(self) -> tuple[int, str]:
        """End it as Ctrl-C does; gives its exit code and what it wrote to standard error."""
        self.process.send_signal(signal.SIGINT)
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors


class Client:
    """One client on a connection of its own, which is opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self.wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, path: str) -> list[dict[str, object]]:
        self.wire.request("GET", path)
        return json.loads(self.wire.getresponse().read())

    def ask(self, body: bytes) -> tuple[int, float, bytes]:
        """The status, how many seconds to wait before the next question, and the content."""
        self.wire.request("POST", "/api/answer", body, {"Content-Type": "application/json"})
        response = self.wire.getresponse()
        return response.status, float(response.getheader("Retry-After", 0)), response.read()


class Load:
    """Clients that ask until they are told to stop, and what became of their questions."""

    def __init__(self, port: int, questions: list[bytes], clients: int) -> None:
        self.port, self.questions = port, questions
        self.seconds: list[float] = []
        self.outcomes: Counter[str] = Counter()
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Let no client ask another question."""
        self.stopped.set()

    def join(self) -> None:
        """Wait until the last client is gone."""
        for thread in self.threads:
            thread.join()

    def _run(self, number: int) -> None:
        client = Client(self.port)
        for body in itertools.islice(itertools.cycle(self.questions), number, None):
            if self.stopped.is_set():
                return
            started = time.perf_counter()
            try:
                status, pause, _ = client.ask(body)
            except (OSError, http.client.HTTPException) as error:
                client.wire.close()
                status, pause = type(error).__name__, 0.1
            taken = time.perf_counter() - started
            if self.stopped.is_set():  # the server may have been told to stop, too
                return
            self.outcomes[str(status)] += 1
            if status == 200:
                self.seconds.append(taken)
            self.stopped.wait(pause)


def questions(port: int) -> list[bytes]:
    """Every digit of the page at 36 angles, for each model in turn."""
    client = Client(port)
    models = [model["name"] for model in client.get("/api/model")["models"]]  # type: ignore[call-overload]
    pictures = [digit["pixels"] for digit in client.get("/api/digits")]
    found = itertools.product(range(0, 360, 10), pictures, models)
    return [json.dumps({"pixels": p, "degrees": d, "model": m}).encode() for d, p, m in found]


@contextlib.contextmanager
def watched(server: Server) -> Iterator[list[float]]:
    """The memory of the server, looked at ten times a second."""
    seen, over = [server.megabytes()], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            seen.append(server.megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def percentile(values: list[float], share: float) -> float | None:
    """The value below which this share of all values is; None if there are none."""
    return round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 3) if values else None


def main(clients: int, seconds: float) -> None:
    server = Server()
    try:
        asked = questions(server.port)
        alone = [json.loads(Client(server.port).ask(body)[2])["cpu_milliseconds"] for body in asked[:ALONE]]
        before = server.megabytes()
        with watched(server) as memory:
            load = Load(server.port, asked, clients)
            time.sleep(seconds)
            load.stop()
            load.join()
        time.sleep(SETTLED)
        after = server.megabytes()
        interrupted = Load(server.port, asked, clients)
        time.sleep(min(1.0, seconds))
        code, errors = server.stop()
        interrupted.stop()
        interrupted.join()
    finally:
        server.process.kill()
    refused = load.outcomes.pop("503", 0)
    answered = load.outcomes.pop("200", 0)
    found = {
        "clients": clients,
        "seconds": seconds,
        "answers_per_second": round(answered / seconds, 1),
        "seconds_of_an_answer": {"p50": percentile(load.seconds, 0.5), "p99": percentile(load.seconds, 0.99)},
        "answered": answered,
        "refused_with_503": refused,
        "errors": dict(load.outcomes),
        "megabytes": {"before": round(before), "peak": round(max(memory)), "after": round(after)},
        "exit": {"code": code, "lines_on_standard_error": len(errors.splitlines())},
        "cpu_milliseconds_of_an_answer_alone": round(statistics.median(alone), 1),
        **provenance(),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=50, help="how many clients ask at once (default: 50)")
    options.add_argument("--seconds", type=float, default=120, help="how long they ask (default: 120)")
    chosen = options.parse_args()
    main(chosen.clients, chosen.seconds)

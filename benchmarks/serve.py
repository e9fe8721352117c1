"""CPU time of one answer of `equicaps serve`: both networks, all layers and the reconstruction. Prints JSON.

Run: OMP_NUM_THREADS=1 python benchmarks/serve.py [NUMBER OF ANSWERS].
"""

import json
import statistics
import sys
import threading
import time

import httpx
import torch

import equicaps
from equicaps.serve import Playground, listen, make_app, make_server
from equicaps.training.log import provenance


def main(count: int) -> None:
    torch.set_num_threads(1)
    app = make_app(Playground(equicaps.load("digits"), equicaps.load("digits-plain")))
    with listen(0) as on:
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{on.getsockname()[1]}", timeout=60) as client:
            pictures = client.get("/api/digits").json()
            answers, requests = [], []
            for number in range(-5, count):  # the first five are for warming up
                question = {"pixels": pictures[number % len(pictures)]["pixels"], "degrees": 7 * number % 360}
                started = time.process_time()
                reply = client.post("/api/answer", json=question).raise_for_status().json()
                if number >= 0:
                    requests.append(1000 * (time.process_time() - started))
                    answers.append(reply["cpu_milliseconds"])
        server.should_exit = True
        thread.join()
    found = {"answers": count, "threads": 1, "cpu_milliseconds_of_an_answer": summary(answers),
             "cpu_milliseconds_of_a_request_with_server_and_client": summary(requests), **provenance()}  # fmt: skip
    print(json.dumps(found, indent=1))


def summary(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    worst = ordered[int(0.95 * len(ordered))]
    return {"median": round(statistics.median(ordered), 1), "percentile_95": round(worst, 1)}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)

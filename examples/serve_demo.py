"""A server with three models, fed by a market that drifts: watch it in a browser, kill it, start it again.

    python examples/serve_demo.py        # prints the address; Ctrl-C stops it

The stream is like the Australian electricity market's: a row each half hour, with demand, price, transfer and the time
of day. One model says whether the price will rise or fall, one forecasts the demand, one raises an alarm for rows that
are unlike the others. Every few weeks the market changes its ways.
"""

from __future__ import annotations

import argparse
import itertools
import math
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gossamer.serve import Client, ServerError

COLUMNS = ["hour_sin", "hour_cos", "demand", "price", "transfer"]
HALF_HOURS = 48
#: The market changes its ways: about the last 2,000 rows count.
FORGET = {"forgetting": 0.9995, "budget": 128}


def market(seed: int = 0, start: int = 0) -> Iterator[tuple[list[float], str, float]]:
    """Rows without end: the features, whether the price rises or falls next, and the next demand."""
    rng = np.random.default_rng(seed)
    level, weather, shape = 1.0, 0.0, np.array([0.0, 1.5, 0.4])
    row, price, demand = None, 40.0, 1.0
    for t in itertools.count():
        if t % (HALF_HOURS * 21) == 0:  # a new regime: other peaks, another price of demand
            shape = rng.normal([0.0, 1.2, 0.4], [0.8, 0.5, 0.4])
            level = float(rng.uniform(0.7, 1.5))
        hour = 2 * math.pi * (t % HALF_HOURS) / HALF_HOURS
        weather = 0.995 * weather + 0.06 * rng.normal()
        after = 1.0 + 0.35 * math.sin(hour - shape[0]) + 0.25 * math.sin(2 * hour - shape[1]) + 0.3 * weather
        after += 0.03 * rng.normal()
        next_price = 0.75 * price + 0.25 * 40 * level * math.exp(1.3 * (after - 1.0)) + 0.8 * rng.normal()
        if row is not None and t > start:
            yield row, "rise" if next_price > price else "fall", round(after, 4)
        price, demand = next_price, after
        transfer = 0.4 * math.tanh(price / 40 - 1) + 0.05 * rng.normal()
        if rng.random() < 0.004:  # a sensor that fails now and then
            transfer += 2.5 * rng.choice([-1, 1])
        row = [math.sin(hour), math.cos(hour), demand, price, transfer]
        row = [round(float(value), 4) for value in row]


def feed(client: Client, rate: float, seconds: float | None = None) -> None:
    """Send the stream to three models, some rows at a time, until somebody stops it."""
    known = {model["name"]: model["learned"] for model in client.models()["models"]}
    if "price" not in known:
        client.create("price", task="classification", params={"budget": 64}, columns=COLUMNS)
        client.create("demand", learner="NewtonRegressor", params=FORGET, columns=COLUMNS)
        client.create("sensors", task="novelty", columns=COLUMNS)
    stream = market(start=known.get("price", 0))
    end = None if seconds is None else time.monotonic() + seconds
    size = max(1, round(rate / 5))
    while end is None or time.monotonic() < end:
        begun = time.monotonic()
        rows, ups, demands = zip(*itertools.islice(stream, size), strict=True)
        client.learn("price", list(rows), list(ups))
        client.learn("demand", list(rows), list(demands))
        client.learn("sensors", list(rows))
        time.sleep(max(0.0, size / rate - (time.monotonic() - begun)))


def main() -> None:
    """Start the server in a process of its own and feed it; start it again if it ends."""
    parser = argparse.ArgumentParser(description="A server with three models on a drifting stream.")
    parser.add_argument("--data", default="out/serve-demo", help="the folder of the journal")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--rate", type=float, default=100.0, help="rows a second")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", options.port))
    Path(options.data).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "gossamer", "serve", "--data", options.data, "--port", str(options.port)]
    end = None if options.seconds is None else time.monotonic() + options.seconds
    process = subprocess.Popen(command)
    print(f"process {process.pid}: kill -9 it, and it starts again where it was; Ctrl-C stops the demo", flush=True)
    client = Client(f"http://127.0.0.1:{options.port}", retries=3)
    try:
        while end is None or time.monotonic() < end:
            try:
                feed(client, options.rate, None if end is None else end - time.monotonic())
            except (OSError, ServerError):
                if process.poll() is not None:
                    print("the server has ended; it starts again", flush=True)
                    process = subprocess.Popen(command)
                time.sleep(0.2)
    except KeyboardInterrupt:
        print()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait()
        client.close()


if __name__ == "__main__":
    main()

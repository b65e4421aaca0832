"""The page of a server that learns the market of examples/serve_demo.py.

python docs/draw_page.py        # writes docs/serve_page.png; needs Playwright and Chromium

From row 4,000 on a third of the labels of "price" are drawn at random: the drift alarm.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from gossamer.serve import Background

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "examples"))

from serve_demo import COLUMNS, FORGET, market  # noqa: E402

ROWS, BROKEN, BATCH = 6000, 4000, 200


def main() -> None:
    """Learn the market, open the page, keep what it shows."""
    rng = np.random.default_rng(0)
    rows, directions, demands = (list(part) for part in zip(*itertools.islice(market(), ROWS), strict=True))
    drawn, random = rng.random(ROWS) < 1 / 3, rng.choice(["rise", "fall"], ROWS).tolist()
    prices = [random[i] if drawn[i] and i >= BROKEN else directions[i] for i in range(ROWS)]
    with Background(tempfile.mkdtemp()) as server, server.client() as client:
        client.create("price", task="classification", params={"budget": 64}, columns=COLUMNS)
        client.create("demand", learner="NewtonRegressor", params=FORGET, columns=COLUMNS)
        client.create("sensors", task="novelty", columns=COLUMNS)
        for first in range(0, ROWS, BATCH):
            part = slice(first, first + BATCH)
            client.learn("price", rows[part], prices[part])
            client.learn("demand", rows[part], demands[part])
            client.learn("sensors", rows[part])
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            size = {"width": 1280, "height": 1180}
            page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce")
            page.goto(f"{server.address}/#price")
            page.wait_for_selector("#experts path")
            page.click("#try button")
            page.wait_for_selector("#answer .bar")
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=DOCS / "serve_page.png")
            browser.close()


if __name__ == "__main__":
    main()

"""The dashboard in a browser: it loads from this server alone, follows what is learned, and survives a restart.

Needs Playwright and Debian's Chromium; where they are missing the browser's tests are skipped.
"""

import re
import shutil

import pytest
from hubs import COLUMNS, jumping, stream
from load import free_port
from mixed_rows import mixed_stream

from gossamer.serve import Background
from gossamer.serve.pages import load_files
from gossamer.serve.tokens import Tokens

CHROMIUM = shutil.which("chromium")
NEEDS = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
#: Milliseconds after which a page that does not show what it should has failed.
PATIENCE = 20_000
#: The text of an element.
LOOK = "const text = id => document.querySelector(id)?.textContent;"


def test_files_ask_nobody_else():
    """No file names another site, and the page has no code or styles within, which its policy forbids."""
    files = load_files()
    assert {"/", "/page/app.js", "/page/panels.js", "/page/plot.js", "/page/style.css", "/page/icon.svg"} <= set(files)
    for path, (data, _) in files.items():
        text = data.decode().replace('"http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?://|//\w+\.\w+/|@import", text), path
        assert not re.search(r"<script>|<style|\son\w+=|\sstyle=|innerHTML|eval\(", text), path


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page, with all that it asked for and complained about."""

    def __init__(self, browser, address, **options):
        self.page = browser.new_page(reduced_motion="reduce", **options)
        self.complaints, self.asked = [], []
        self.page.on(
            "console", lambda message: self.complaints.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def wait(self, code):
        """Wait until an expression is true in the page."""
        for _ in range(PATIENCE // 50):  # wait_for_function would be an eval, which the page's policy forbids
            if self.page.evaluate(f"() => {{ {LOOK} return {code}; }}"):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not within {PATIENCE} ms: {code}")


@NEEDS
def test_the_page_follows_and_survives(browser, tmp_path):
    """Rows learned are shown without a reload, also after the server has stopped and started again."""
    X, y = stream("classification")
    port = free_port()
    with Background(tmp_path, port) as server:
        watched = Watched(browser, server.address)
        watched.wait("!document.querySelector('#empty').hidden")
        with server.client() as client:
            client.create("shop", task="classification", columns=COLUMNS)
            client.learn("shop", X[:200], y[:200])
            watched.wait("text('#rows') === '200'")
            client.learn("shop", X[200:], y[200:])
            watched.wait("text('#rows') === '400'")
        watched.wait("document.querySelectorAll('#latest tbody tr').length === 12")
        watched.wait("document.querySelector('#chart path.line0')?.getAttribute('d').length > 50")
        for i, value in enumerate((1.5, 1.5, 0.0)):
            watched.page.fill(f"#f{i}", str(value))
        watched.page.click("#try button")
        watched.wait("text('#answer strong') === 'b'")
        assert watched.page.locator("#answer .bar").count() == 2
        assert watched.complaints == []
    watched.wait("text('#state-text').startsWith('connecting')")
    with Background(tmp_path, port) as server, server.client() as client:
        watched.wait("text('#state-text') === 'ready'")
        assert watched.page.text_content("#rows") == "400"
        client.learn("shop", X, y)
        watched.wait("text('#rows') === '800'")
        assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in watched.asked)
        watched.page.close()


#: What each panel says of itself, by the id of its picture.
SAID = (
    "[...document.querySelectorAll('.picture svg')].map(e => e.parentElement.id + ': ' + e.getAttribute('aria-label'))"
)


@NEEDS
@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (390, "light")])
def test_the_page_shows_what_is_watched(browser, tmp_path, width, scheme):
    """Calibration and weights of experts, intervals and drift alarms: the panels of a model are there, no others."""
    X, y = jumping()
    _, labels = stream("classification", len(X))
    with Background(tmp_path) as server, server.client() as client:
        client.create("numbers", learner="NewtonRegressor", params={"budget": 32}, columns=COLUMNS)
        client.learn("numbers", X, y)
        client.create("classes", task="classification", params={"budget": 16}, columns=COLUMNS)
        client.learn("classes", X[:600], labels[:600])
        client.create("keys", task="regression", key="sensor", columns=COLUMNS)
        client.learn("keys", X[:100], y[:100], keys=["k"] * 100)
        watched = Watched(browser, f"{server.address}/#classes", viewport={"width": width, "height": 844},
                          color_scheme=scheme)  # fmt: skip
        page = watched.page
        watched.wait("document.querySelectorAll('#sure circle.dot').length > 3")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(CONTRAST) == []
        sure, trusts = sorted(page.evaluate(SAID), reverse=True)
        facts = client.describe("classes")
        assert sure.startswith(f"sure: Calibration over {facts['calibration']['rows']} rows")
        assert f"Off by {100 * facts['calibration']['error']:.1f} %" in page.text_content("#sure-words")
        best = client.story("classes")["pictures"]["experts"]["names"]
        assert trusts.startswith("experts: Weights of settings now: ")
        assert page.locator("#experts-legend li span").all_text_contents() == [*best, "all others"]
        assert page.locator("#experts path").count() == len(best)
        client.learn("classes", X[600:1200], labels[600:1200])  # the panels follow
        rows = client.describe("classes")["calibration"]["rows"]
        watched.wait(f"document.querySelector('#sure svg').getAttribute('aria-label').includes('over {rows} rows')")
        page.get_by_role("button", name="numbers").click()
        watched.wait("text('#name') === 'numbers' && document.querySelectorAll('#chart .flag').length === 1")
        assert page.text_content("#alarms") == "1"
        (mark,) = client.story("numbers")["pictures"]["drift"]
        assert f"drift alarms at rows {mark[0]}" in page.locator("#chart svg").get_attribute("aria-label")
        assert f"errs more since about row {mark[1]:,}" in page.text_content("#story")
        assert not page.locator("#experts-box").is_visible()
        (sure,) = [said for said in page.evaluate(SAID) if said.startswith("sure")]
        assert sure.startswith("sure: The last 120 targets: ")
        assert f"{100 * client.describe('numbers')['window']['coverage']:.1f} %" in page.text_content("#sure-words")
        assert page.locator("#sure path.band").count() == 1
        page.click("#try button")
        watched.wait("text('#answer')?.includes('nine times in ten')")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(CONTRAST) == []
        page.get_by_role("button", name="keys").click()
        watched.wait("text('#name') === 'keys'")
        assert not page.locator("#sure-box").is_visible()
        assert not page.locator("#experts-box").is_visible()
        assert watched.complaints == []
        page.close()


@NEEDS
def test_the_page_shows_mixed_rows(browser, tmp_path):
    """Texts, gaps and dates stand among the latest rows, and in the form, where an empty field is a gap."""
    rows, y = mixed_stream("classification", 120)
    with Background(tmp_path) as server, server.client() as client:
        client.learn("shop", rows, y, learner="NewtonClassifier")
        watched = Watched(browser, server.address)
        watched.wait("text('#rows') === '120'")
        shown = watched.page.locator("#latest tbody tr").first.locator("td").all_text_contents()[3:]
        for name, cell in zip(client.describe("shop")["columns"], shown, strict=True):
            value = rows[-1].get(name)
            assert cell == "\N{EN DASH}" if value in (None, "") else cell
            assert cell == value or not isinstance(value, str) or value == ""
        places = {name: i for i, name in enumerate(client.describe("shop")["columns"])}
        given = {"size": "1.5", "shop": "shop 3", "open": "true", "when": "2024-03-01T12:00", "note": "", "code": "2"}
        for name, value in given.items():
            watched.page.fill(f"#f{places[name]}", value)
        watched.page.click("#try button")
        watched.wait("text('#answer strong') !== undefined")
        row = {"size": 1.5, "shop": "shop 3", "open": True, "when": "2024-03-01T12:00", "note": None, "code": "2"}
        assert watched.page.text_content("#answer strong") == client.predict("shop", [row])["predictions"][0]
        assert watched.complaints == []
        watched.page.close()


@NEEDS
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_the_page_is_readable(browser, tmp_path, width, scheme):
    """Every control has a name, the plot says what it shows, nothing is wider than the screen or too faint."""
    with Background(tmp_path) as server:
        for task in ("classification", "regression", "novelty"):
            X, y = stream(task)
            with server.client() as client:
                client.create(task, task=task, columns=COLUMNS)
                client.learn(task, X, y)
        for task in ("classification", "regression", "novelty"):
            viewport = {"width": width, "height": 844}
            watched = Watched(browser, f"{server.address}/#{task}", viewport=viewport, color_scheme=scheme)
            watched.wait(f"text('#name') === '{task}'")
            watched.wait(
                "document.querySelector('#chart svg')?.getAttribute('aria-label').startsWith('Error over time')"
            )
            page = watched.page
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            for control in page.locator("button:visible, input:visible").all():
                named = "e => e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.[0]?.textContent.trim()"
                assert control.evaluate(named)
            assert page.evaluate(CONTRAST) == []
            assert page.get_by_role("button", name=task).get_attribute("aria-current") == "true"
            assert watched.complaints == []
            page.close()


#: The texts of the page whose contrast with the card behind them is below 4.5 (WCAG 2, level AA).
CONTRAST = """() => {
  const light = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
    const [r, g, b] = parts.map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const clear = node => getComputedStyle(node).backgroundColor.startsWith("rgba(0, 0, 0, 0");
  for (const node of document.querySelectorAll("h1, h2, h3, p, dt, dd, th, td, label, li, button, strong")) {
    if (!node.offsetParent || !node.textContent.trim()) continue;
    let behind = node;
    while (behind && clear(behind)) behind = behind.parentElement;
    const a = light(getComputedStyle(node).color), b = light(getComputedStyle(behind ?? document.body).backgroundColor);
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) found.push(node.textContent.slice(0, 30));
  }
  return found;
}"""


@NEEDS
def test_the_page_asks_for_a_token(browser, tmp_path):
    """Without a token nothing is shown; with one, everything."""
    token = Tokens(tmp_path).create("reader", ["predict"])
    with Background(tmp_path) as server:
        watched = Watched(browser, server.address)
        watched.wait("!document.querySelector('#token-form').hidden")
        assert watched.page.text_content("#state-text") == "locked"
        watched.page.fill("#token", token)
        watched.page.click("#token-form button")
        watched.wait("text('#state-text') === 'ready'")
        watched.page.close()

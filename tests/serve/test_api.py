"""The HTTP API: every route is described and guarded, rows come in every form, and predictions are of one moment.

The file is long because one server answers all of it: the routes share their fixtures.
"""

import asyncio
import contextlib
import http.client
import io
import json
import re
import threading

import numpy as np
import pytest
from hubs import stream
from load import request

from gossamer import OnlineScaler, SILKRegressor, from_bytes, load, pipeline
from gossamer.cli import main
from gossamer.serve import AsyncClient, Background, Client, Limits, ServerError
from gossamer.serve.api import ROUTES
from gossamer.serve.app import SECURITY
from gossamer.serve.counters import BOUNDS
from gossamer.serve.openapi import document
from gossamer.serve.tokens import Tokens

CHANGES = [(method, path) for method, path in ROUTES if method != "GET"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a model of each task."""
    with Background(tmp_path_factory.mktemp("data"), limits=Limits(body=200_000, rows=1000)) as server:
        client = server.client()
        for task in ("classification", "regression", "novelty"):
            X, y = stream(task)
            client.create(task, task=task, target="label", columns=["a", "b", "c"])
            client.learn(task, X, y)
        yield server


def send(server, method, path, body=b"", headers=None):
    """A request as it is; the status, the headers and the body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def path_of(pattern, name="classification"):
    return pattern.replace("*", name)


def test_every_route_is_described():
    """The OpenAPI document has every route, and no other."""
    found = document("1")["paths"]
    described = {(verb.upper(), re.sub(r"\{\w+\}", "*", path)) for path, verbs in found.items() for verb in verbs}
    assert described == {route for route in ROUTES if route[1] != "/file"}


@pytest.mark.parametrize(("method", "pattern"), ROUTES)
def test_every_answer_has_the_security_headers(server, method, pattern):
    """Whatever the answer is."""
    if pattern == "/v1/events":
        return
    _, headers, _ = send(server, "POST" if method == "DELETE" else method, path_of(pattern))
    for name, value in SECURITY:
        assert headers[name.decode()] == value.decode()
    assert "server" not in {name.lower() for name in headers}


BAD_BODIES = {
    "no JSON": b"{",
    "no object": b"[1, 2]",
    "another field": b'{"spam": 1}',
    "not UTF-8": b'{"rows": [{"\xff": 1}]}',
    "deep": b'{"rows": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "NaN": b'{"rows": [[NaN, 1, 2]], "y": ["b"]}',
    "a large number": b'{"rows": [[1e999, 1, 2]], "y": ["b"]}',
    "a long number": b'{"rows": [[' + b"9" * 500 + b', 1, 2]], "y": ["b"]}',
    "a text": b'{"rows": [["1", 1, 2]], "y": ["b"]}',
    "null": b'{"rows": [[null, 1, 2]], "y": ["b"]}',
    "no rows": b'{"rows": [], "y": []}',
    "rows twice": b'{"rows": [[1, 2, 3]], "row": [1, 2, 3], "y": ["b"]}',
    "too few columns": b'{"rows": [{"a": 1}], "y": ["b"]}',
    "another column": b'{"rows": [{"a": 1, "b": 2, "z": 3}], "y": ["b"]}',
    "too many labels": b'{"rows": [[1, 2, 3]], "y": ["b", "b"]}',
    "keys": b'{"rows": [[1, 2, 3]], "y": ["b"], "keys": ["k"]}',
    "a negative weight": b'{"rows": [[1, 2, 3]], "y": ["b"], "weights": [-1]}',
    "too many rows": json.dumps({"rows": [[1, 2, 3]] * 1001, "y": ["b"] * 1001}).encode(),
    "a long request id": b'{"rows": [[1, 2, 3]], "y": ["b"], "request": "' + b"x" * 300 + b'"}',
}


@pytest.mark.parametrize("body", BAD_BODIES)
@pytest.mark.parametrize("verb", ["predict", "learn", "predict_learn", "labels"])
def test_bad_bodies_are_told(server, verb, body):
    """400 or 422 with a sentence, and the model is as it was."""
    before = server.client().export("classification")
    status, _, answer = send(server, "POST", f"/v1/models/classification/{verb}", BAD_BODIES[body])
    assert status in (400, 422)
    assert json.loads(answer)["error"]["message"]
    assert server.client().export("classification") == before


@pytest.mark.parametrize(("method", "pattern"), CHANGES)
def test_limits_of_bodies(server, method, pattern):
    """A large body, a compressed one and a chunked one without end are refused where a body is read."""
    path = path_of(pattern)
    if method == "DELETE":
        return
    assert send(server, method, path, b"x" * 200_001)[0] == 413
    assert send(server, method, path, b"x", {"content-encoding": "gzip"})[0] == 415
    pieces = (b"x" * 50_000 for _ in range(10))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server may close it before all is sent
        connection.request(method, path, pieces, {"transfer-encoding": "chunked"}, encode_chunked=True)
        assert connection.getresponse().status == 413
    connection.close()


STRANGE = [
    "/v1/models/../../etc/passwd", "/page/../api.py", "/page/%2e%2e/api.py", "//etc/passwd", "/v1/models/a%00b", "/v1",
    "/v1/models/a/b/c", "/v1/models/", "/page/", "/" + "a" * 5000, "/v1/models/%F0%9F/predict",
]  # fmt: skip


@pytest.mark.parametrize("path", STRANGE)
def test_strange_paths_lead_nowhere(server, path):
    """No path reaches a file, and each has a plain answer."""
    for method in ("GET", "POST", "PUT", "DELETE"):
        assert send(server, method, path)[0] in (404, 405, 422)


def test_rows_come_in_every_form(server):
    """Lists, dicts, columns, one row, NDJSON and Arrow learn the same model; labels beside the rows or within."""
    arrow = pytest.importorskip("pyarrow")
    client, (X, y) = server.client(), stream("classification", 60)
    named = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
    within = [{**row, "label": label} for row, label in zip(named, y, strict=True)]
    table = arrow.table({**{name: X[:, i] for i, name in enumerate("abc")}, "label": y})
    sink = io.BytesIO()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    columns = {name: X[:, i].tolist() for i, name in enumerate("abc")}
    bodies = {
        "lists": ({"rows": X.tolist(), "y": y}, "application/json"),
        "dicts": ({"rows": named, "y": y}, "application/json"),
        "within": ({"rows": within}, "application/json"),
        "columns": ({"columns": columns, "y": y}, "application/json"),
        "ndjson": ("".join(json.dumps(row) + "\n" for row in within).encode(), "application/x-ndjson"),
        "arrow": (sink.getvalue(), "application/vnd.apache.arrow.stream"),
    }
    models = {}
    for name, (body, kind) in bodies.items():
        client.create(name, target="label", columns=["a", "b", "c"])
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, answer = send(server, "POST", f"/v1/models/{name}/learn", data, {"content-type": kind})
        assert status == 200, answer
        assert json.loads(answer)["learned"] == 60
        models[name] = client.export(name)
        client.delete(name)
    assert len(set(models.values())) == 1
    only = arrow.table({name: X[:, i] for i, name in enumerate("abc")})
    sink = io.BytesIO()
    with arrow.ipc.new_stream(sink, only.schema) as writer:
        writer.write_table(only)
    accept = {"content-type": "application/vnd.apache.arrow.stream", "accept": "application/vnd.apache.arrow.stream"}
    _, _, answer = send(server, "POST", "/v1/models/classification/predict", sink.getvalue(), accept)
    shown = client.predict("classification", X)["predictions"]
    assert arrow.ipc.open_stream(answer).read_all()["predictions"].to_pylist() == shown


def test_arrow_is_checked(server):
    """Compressed batches, dictionaries, texts, nulls and damaged streams are refused before they are read."""
    arrow = pytest.importorskip("pyarrow")
    kind = {"content-type": "application/vnd.apache.arrow.stream"}

    def stored(table, **options):
        sink = io.BytesIO()
        with arrow.ipc.new_stream(sink, table.schema, options=arrow.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table)
        return sink.getvalue()

    good = arrow.table({name: [0.5] * 900 for name in "abc"})
    assert send(server, "POST", "/v1/models/classification/predict", stored(good), kind)[0] == 200
    bad = [
        stored(good, compression="zstd"), stored(arrow.table({name: [0.5] * 1001 for name in "abc"})),
        stored(arrow.table({"a": [1.0], "b": [1.0], "c": ["x"]})), stored(arrow.table({"a": [1.0], "b": [1.0]})),
        stored(arrow.table({"a": [1.0], "b": [1.0], "c": arrow.array([None], arrow.float64())})),
        stored(arrow.table({"a": [1.0], "b": [1.0], "c": arrow.array(["x"]).dictionary_encode()})),
        stored(arrow.table({"a": [1.0], "b": [1.0], "c": [float("nan")]})), b"", b"ARROW1", stored(good)[:-300],
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(stored(good.slice(0, 3)))
        data[int(rng.integers(0, len(data) - 80))] = int(rng.integers(256))
        bad.append(bytes(data))
    for body in bad[:10]:
        assert send(server, "POST", "/v1/models/classification/predict", body, kind)[0] == 422
    for body in bad[10:]:
        assert send(server, "POST", "/v1/models/classification/predict", body, kind)[0] in (200, 422)


def test_what_comes_with_predictions(server):
    """Probabilities, scores and deviations where a model has them, and a sentence where it has none."""
    client, (X, _) = server.client(), stream("classification", 5)
    found = client.predict("classification", X, proba=True, scores=True)
    assert np.allclose(np.sum(found["proba"], axis=1), 1.0)
    assert [found["classes"][int(s >= 0)] for s in found["scores"]] == found["predictions"]
    assert len(client.predict("regression", X, std=True)["std"]) == 5
    assert set(client.predict("novelty", X)["predictions"]) <= {True, False}
    with pytest.raises(ServerError, match="has none"):
        client.predict("regression", X, proba=True)


def test_models_move_as_files(server):
    """A model is exported, learned further here, and imported; a file that is damaged or no model is refused."""
    client, (X, y) = server.client(), stream("regression", 50)
    client.create("small", task="regression", learner="NewtonRegressor")
    client.learn("small", X, y)
    model = from_bytes(client.export("small"))
    model.partial_fit(X, y)
    client.upload("moved", model.to_bytes())
    assert client.predict("moved", X)["predictions"] == model.predict(X).tolist()
    assert client.predict_learn("moved", X, y)["predictions"] == model.predict_learn(X, y).tolist()
    data = bytearray(model.to_bytes())
    data[len(data) // 2] ^= 1
    for bad in (bytes(data), b"", b"\x80\x04K\x01.", OnlineScaler().to_bytes(), SILKRegressor().to_bytes()):
        with pytest.raises(ServerError, match="422"):
            client.upload("moved", bad)
    client.delete("moved")


def test_files_of_the_shell_are_served(server, tmp_path):
    """A model of ``gossamer run --save`` over numbers goes on in a server."""
    client, (X, y) = server.client(), stream("regression", 50)
    lines = [",".join(map(str, [*row, target])) for row, target in zip(np.asarray(X).tolist(), list(y), strict=True)]
    saved = tmp_path / "model.gsm"
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,label", *lines]))
    arguments = ["run", str(tmp_path / "rows.csv"), "--target", "label", "--save", str(saved), "--quiet"]
    assert main([*arguments, "--learner", "newton", "--no-scale"]) == 0
    client.upload("shell", saved.read_bytes())
    assert client.predict("shell", X)["predictions"] == load(saved)["model"].predict(X).tolist()
    client.delete("shell")


def test_a_token_is_needed(tmp_path):
    """With a token in the folder every path but the health needs one, and each scope allows what it says."""
    tokens = Tokens(tmp_path)
    made = {scope: tokens.create(scope, [scope]) for scope in ("predict", "learn", "admin")}
    assert all(token not in tokens.path.read_text() for token in made.values())
    assert tokens.path.stat().st_mode & 0o077 == 0
    with Background(tmp_path) as server:
        X, y = stream("classification", 50)
        Client(server.address, made["admin"]).learn("m", X, y)
        for (method, pattern), (name, _) in ROUTES.items():
            if name in ("healthz", "readyz", "openapi", "file", "events"):
                continue
            assert send(server, method, path_of(pattern, "m"))[0] == 401
            wrong = {"authorization": "Bearer gsm_" + "x" * 43}
            assert send(server, method, path_of(pattern, "m"), headers=wrong)[0] == 403
        Client(server.address, made["predict"]).predict("m", X)
        Client(server.address, made["learn"]).learn("m", X, y)
        for scope, verb in (
            ("predict", "learn"),
            ("learn", "predict"),
            ("predict", "labels"),
            ("learn", "predict_learn"),
        ):
            header = {"authorization": f"Bearer {made[scope]}"}
            assert send(server, "POST", f"/v1/models/m/{verb}", headers=header)[0] == 403
        with pytest.raises(ServerError, match="404"):
            Client(server.address, made["learn"]).learn("other", X, y)  # may not make models
        tokens.revoke("predict")
        server.server.app.tokens._checked = 0.0
        with pytest.raises(ServerError, match="403"):
            Client(server.address, made["predict"]).predict("m", X)


def test_pages_of_other_sites_are_refused(server):
    """A browser's request from another site, or under another name of this machine, is refused."""
    path = "/v1/models/classification"
    assert send(server, "GET", path, headers={"origin": f"http://127.0.0.1:{server.port}"})[0] == 200
    assert send(server, "GET", path, headers={"origin": "http://evil.example"})[0] == 403
    assert send(server, "GET", path, headers={"origin": "null"})[0] == 403
    assert send(server, "GET", path, headers={"host": "evil.example"})[0] == 403
    assert send(server, "GET", path, headers={"host": f"localhost:{server.port}"})[0] == 200


def test_other_addresses_need_a_token(tmp_path):
    """The server does not listen beyond this machine without a token."""
    from gossamer.serve.start import make_server

    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="until there is a token"):
            make_server(tmp_path, host, 1)


def test_a_busy_server_says_when_to_come_back(tmp_path):
    """429 with Retry-After when too much waits; the client waits and goes on."""
    X, y = stream("classification")
    with Background(tmp_path, limits=Limits(queue=500)) as server:
        client = server.client()
        client.learn("m", X, y)
        app = server.server.app
        with app.hub.models["m"].lock:  # the writer waits
            first = threading.Thread(target=client.learn, args=("m", X, y))
            first.start()
            while not app.hub.queued_rows:
                pass
            body = json.dumps({"rows": X.tolist(), "y": y}).encode()
            status, headers, _ = send(server, "POST", "/v1/models/m/learn", body)
            assert (status, headers["retry-after"]) == (429, "1")
            second = threading.Thread(target=client.learn, args=("m", X, y))
            second.start()
        first.join()
        second.join()
        assert client.describe("m")["learned"] == 3 * len(X)


def test_predictions_are_of_one_moment(tmp_path):
    """While rows are learned, each prediction is that of scaler and model after some number of rows, told with it."""
    X, y = stream("regression", 6000)
    recipe = {"task": "regression", "learner": "SILKRegressor", "params": {"budget": 64}, "columns": ["a", "b", "c"]}
    seen = {}
    with Background(tmp_path, limits=Limits(rows=10_000)) as server:
        client = server.client()
        client.create("m", **recipe)
        client.learn("m", X[:100], y[:100])
        learner = threading.Thread(target=client.learn, args=("m", X[100:], y[100:]))

        async def ask():
            async with AsyncClient(server.address) as other:
                while learner.is_alive():
                    for answer in await asyncio.gather(*(other.predict("m", X[:2]) for _ in range(4))):
                        seen[answer["learned"]] = answer["predictions"]

        learner.start()
        asyncio.run(ask())
        learner.join()
        seen[6000] = client.predict("m", X[:2])["predictions"]
    assert len(seen) >= 2  # and mostly in the middle of the batch too, as fast as the machine asks
    from gossamer.kernels import Gaussian

    model, done = pipeline(OnlineScaler(), SILKRegressor(Gaussian(1 / 3), budget=64)), 0
    for learned, shown in sorted(seen.items()):
        if learned > done:
            model.partial_fit(X[done:learned], y[done:learned])
            done = learned
        assert model.predict(X[:2]).tolist() == shown


def test_how_sure_and_has_the_world_changed(server):
    """Intervals and sets are those of the estimator; coverage and drift alarms are facts and metrics of a model."""
    rng, client = np.random.default_rng(0), server.client()
    X = rng.normal(size=(2500, 2))
    numbers = X[:, 0] + 0.1 * rng.normal(size=2500)
    numbers[1500:] += 5 * rng.normal(size=1000)  # another world
    for name, y in (("sure numbers", numbers), ("sure labels", (X[:, 0] > 0).astype(int))):
        name = name.replace(" ", "-")
        learner = "SILKRegressor" if "numbers" in name else "SILKClassifier"
        client.create(name, learner=learner, params={"budget": 30})
        for part in np.split(np.arange(2500), 5):
            client.learn(name, X[part].tolist(), y[part].tolist())
        facts = client.describe(name)
        assert abs(facts["coverage"] - 0.9) < 0.03
        assert facts["drift"]["alarms"] == (1 if "numbers" in name else 0)
        assert re.search(rf'model_coverage\{{model="{name}"\}} 0\.[89]', client.metrics().decode())
    assert 1500 < client.describe("sure-numbers")["drift"]["last"] < 1700
    told = client.metrics().decode()
    assert 'model_drift_alarms_total{model="sure-numbers"} 1' in told
    assert re.search(r'model_coverage_window\{model="sure-numbers"\} 0\.[89]', told)
    assert float(re.search(r'model_calibration_error\{model="sure-labels"\} (\S+)', told)[1]) < 0.05
    assert 'model_calibration_error{model="sure-numbers"}' not in told
    (mark,) = client.story("sure-numbers")["pictures"]["drift"]
    assert mark[0] == client.describe("sure-numbers")["drift"]["last"]
    ends = np.array(client.predict("sure-numbers", X[:5].tolist(), interval=0.9)["interval"])
    made = np.array(client.predict("sure-numbers", X[:5].tolist())["predictions"])
    assert np.allclose(ends.mean(axis=1), made)
    sets = client.predict("sure-labels", X[:5].tolist(), set=0.95)["set"]
    assert all(set(found) <= {0, 1} for found in sets)


def test_metrics_are_read_by_prometheus(server):
    """Every line is a comment or a sample, and histograms add up."""
    text = server.client().metrics().decode()
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? -?[0-9.e+-]+', line), line
    buckets = re.findall(r'request_seconds_bucket\{route="learn",le="[^"]+"\} (\d+)', text)
    assert len(buckets) == len(BOUNDS) + 1
    assert buckets[-1] == re.search(r'request_seconds_count\{route="learn"\} (\d+)', text)[1]


def test_the_log_has_no_rows(tmp_path, capsys):
    """With a line for each request, what was in the rows, labels and tokens is not among them."""
    token = Tokens(tmp_path).create("all", ["admin"])
    with Background(tmp_path) as server:
        app = server.server.app
        app.log.quiet, app.log.requests = False, True
        client = Client(server.address, token)
        client.learn("m", [{"secret_column": 123.456}] * 2, ["secret label", "b"])
        with pytest.raises(ServerError):
            client.predict("m", [{"secret_column": "secret text"}])

        def fail(*_):
            raise RuntimeError("secret 123.456")

        app.hub.models["m"].predict = fail
        with pytest.raises(ServerError, match="500"):
            client.predict("m", [{"secret_column": 1.0}])
    log = capsys.readouterr().err
    assert [json.loads(line)["event"] for line in log.splitlines()].count("request") == 3
    assert not re.search(rf"secret|123\.456|{token}", log)


def test_slow_and_many_connections(tmp_path):
    """A client that never ends its headers is cut off, and one too many is told so; the others are served."""
    limits = Limits(connections=20, header_seconds=1, body_seconds=1)

    async def slow(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/models/m/learn HTTP/1.1\r\nhost: localhost\r\n")
        cut = await reader.read()
        reader, other = await asyncio.open_connection("127.0.0.1", port)
        other.write(request("POST", "/v1/models/m/learn", b"x" * 10)[:-5])
        late = await reader.read(200)
        reader, long = await asyncio.open_connection("127.0.0.1", port)
        long.write(b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10_000)
        told = await reader.read()
        many = [await asyncio.open_connection("127.0.0.1", port) for _ in range(25)]
        last = await many[-1][0].read()
        for _, one in [*many, (None, writer), (None, other), (None, long)]:
            one.close()
        return cut, late, told, last

    with Background(tmp_path, limits=limits) as server:
        server.client().learn("m", [[1.0]], [1.0])
        cut, late, told, last = asyncio.run(slow(server.port))
        assert cut == b""
        assert b" 408 " in late[:20]
        assert b" 400 " in told[:20]
        assert b" 503 " in last[:20]
        while True:
            try:
                assert server.client(retries=0).describe("m")["learned"] == 1
                break
            except (ServerError, OSError):
                pass

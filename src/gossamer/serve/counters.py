"""Counts and latencies of requests, and the page of numbers that Prometheus reads."""

from __future__ import annotations

import bisect
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.serve.app import App

#: The upper bounds of the latency histogram, in seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


#: Labels and values.
Samples = list[tuple[dict[str, Any], float]]


class Counters:
    """How many requests each route had, with which status, and how long they took.

    >>> counters = Counters()
    >>> counters.add("predict", 200, 0.004)
    >>> counters.total, counters.quantile("predict", 0.99)
    (1, 0.005)
    """

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.buckets: dict[str, list[int]] = {}
        self.seconds: dict[str, float] = {}
        self.total = 0

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.total += 1
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        found = self.buckets.get(route)
        if found is None:
            found = self.buckets[route] = [0] * (len(BOUNDS) + 1)
        found[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds

    def quantile(self, route: str, share: float) -> float | None:
        """The bound below which this share of a route's requests lies."""
        found = self.buckets.get(route)
        if not found:
            return None
        wanted, so_far = share * sum(found), 0
        for bound, count in zip((*BOUNDS, float("inf")), found, strict=True):
            so_far += count
            if so_far >= wanted:
                return bound
        return None


def page(app: App) -> str:
    """All numbers, in the text format of Prometheus."""
    hub, counters = app.hub, app.counters
    lines: list[str] = []

    def family(name: str, kind: str, words: str, samples: Samples) -> None:
        lines.extend([f"# HELP gossamer_{name} {words}", f"# TYPE gossamer_{name} {kind}"])
        lines.extend(_sample(f"gossamer_{name}", labels, value) for labels, value in samples)

    requests: Samples = [
        ({"route": route, "status": status}, count) for (route, status), count in counters.requests.items()
    ]
    family("requests_total", "counter", "Requests by route and status.", requests)
    lines += ["# HELP gossamer_request_seconds Time to answer.", "# TYPE gossamer_request_seconds histogram"]
    for route, buckets in counters.buckets.items():
        so_far = 0
        for bound, count in zip((*BOUNDS, "+Inf"), buckets, strict=True):
            so_far += count
            lines.append(_sample("gossamer_request_seconds_bucket", {"route": route, "le": bound}, so_far))
        lines.append(_sample("gossamer_request_seconds_sum", {"route": route}, counters.seconds[route]))
        lines.append(_sample("gossamer_request_seconds_count", {"route": route}, so_far))
    family("ready", "gauge", "1 if rows can be learned.", [({}, float(app.state()[0] == "ready"))])
    family("queue_rows", "gauge", "Rows that wait to be learned.", [({}, hub.queued_rows)])
    family("queue_bytes", "gauge", "Bytes of the changes that wait.", [({}, hub.queued_bytes)])
    family("journal_entry", "counter", "The last entry of the journal.", [({}, hub.journal.seq)])
    family("journal_bytes", "gauge", "Bytes of the journal's files.", [({}, hub.journal.size())])
    words = {"groups": "Transactions.", "entries": "Entries journalled.", "rows": "Rows learned since the start.",
             "refused": "Requests refused for a full queue.", "snapshots": "States stored.",
             "trimmed": "Entries trimmed.", "failed": "Writes that failed."}  # fmt: skip
    for name, text in words.items():
        family(f"{name}_total", "counter", text, [({}, hub.counts[name])])
    family("recovery_seconds", "gauge", "Time of the last recovery.", [({}, hub.recovery_seconds)])
    family("predicted_rows_total", "counter", "Rows predicted.", [({}, app.predictor.rows)])
    family("predict_calls_total", "counter", "Calls that predicted them.", [({}, app.predictor.calls)])
    family("connections", "gauge", "Open connections.", [({}, app.connections())])
    family("memory_bytes", "gauge", "The memory of the process.", [({}, memory())])
    models = list(hub.models.values())
    family(
        "model_rows_total", "counter", "Rows that a model has learned.", [({"model": m.name}, m.rows) for m in models]
    )
    family(
        "model_pending", "gauge", "Rows that wait for labels.", [({"model": m.name}, len(m.pending)) for m in models]
    )
    errors: Samples = []
    recent: Samples = []
    told = [(served.name, served.summary()) for served in models]
    for name, summary in told:
        for samples, found in ((errors, summary), (recent, summary["window"])):
            if found and found["error"] is not None:
                samples.append(({"model": name, "of": "model"}, found["error"]))
                samples += [({"model": name, "of": other}, value) for other, value in found["baselines"].items()]
    family("model_error", "gauge", "Progressive error over all rows, of the model and of baselines.", errors)
    family(
        "model_coverage", "gauge", "Share of targets inside the intervals or sets for 0.9 that were made before.",
        [({"model": name}, found["coverage"]) for name, found in told if found["coverage"] is not None],
    )  # fmt: skip
    family(
        "model_drift_alarms_total", "counter", "Drift alarms over the errors of a model.",
        [({"model": name}, found["drift"]["alarms"]) for name, found in told if found["drift"] is not None],
    )  # fmt: skip
    family(
        "model_coverage_window", "gauge", "The same over the last 1,000 rows.",
        [({"model": name}, found["window"]["coverage"]) for name, found in told
         if found["window"] is not None and found["window"]["coverage"] is not None],
    )  # fmt: skip
    family(
        "model_calibration_error", "gauge",
        "Mean distance between probabilities and the share that came, over the last 2,000 rows.",
        [({"model": name}, found["calibration"]["error"]) for name, found in told if found["calibration"] is not None],
    )  # fmt: skip
    family("model_error_window", "gauge", "Progressive error over the last 1,000 rows.", recent)
    return "\n".join(lines) + "\n"


def memory() -> int:
    """The bytes of memory that the process has now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _sample(name: str, labels: dict[str, Any], value: float) -> str:
    told = ",".join(f'{key}="{str(one).translate(ESCAPED)}"' for key, one in labels.items())
    return f"{name}{{{told}}} {value!r}" if told else f"{name} {value!r}"


ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

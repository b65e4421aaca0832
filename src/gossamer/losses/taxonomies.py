"""Taxonomies: a tree of classes, whose costs and label kernel come from the paths that classes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import _checks

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Taxonomy:
    """The leaves of a label tree, with their cost matrix and label kernel."""

    labels: tuple[Any, ...]
    cost: Matrix
    label_kernel: Matrix


def taxonomy(tree: Any) -> Taxonomy:
    """Cost matrix and label kernel of a tree of labels: a nested dict, or a networkx tree with its edges downwards.

    In a dict, a key with an empty value (None, {} or ()) is a leaf, and a sequence is a set of leaves. The kernel of
    two leaves is the number of edges they share from the root (``weight`` of a networkx edge counts), the cost their
    distance in the tree, so that cost = k(y, y) + k(y', y') - 2 k(y, y').

    >>> tree = taxonomy({"animal": ["cat", "dog"], "plant": {"tree": ["oak", "elm"], "moss": None}})
    >>> tree.labels
    ('cat', 'dog', 'oak', 'elm', 'moss')
    >>> tree.cost[0], tree.label_kernel[2]
    ((0.0, 2.0, 5.0, 5.0, 4.0), (0.0, 0.0, 3.0, 2.0, 1.0))
    """
    paths = list(_graph_paths(tree) if hasattr(tree, "in_degree") else _dict_paths(tree, ()))
    labels = [path[-1][0] for path in paths]
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise _checks.wrong("taxonomy", "tree", "a tree with two or more leaves, all different", labels)
    shared = np.array([[_shared(a, b) for b in paths] for a in paths])
    depth = shared.diagonal()
    cost = depth[:, None] + depth[None, :] - 2 * shared
    return Taxonomy(tuple(labels), *(tuple(map(tuple, m.tolist())) for m in (cost, shared)))


Path = tuple[tuple[Any, float], ...]  # the nodes below the root, each with the weight of the edge above it


def _dict_paths(tree: Any, above: Path) -> list[Path]:
    if isinstance(tree, Mapping):
        paths: list[Path] = []
        for name, below in tree.items():
            here = (*above, (name, 1.0))
            paths += _dict_paths(below, here) if below else [here]
        return paths
    if isinstance(tree, (list, tuple, set, frozenset)):
        return [(*above, (name, 1.0)) for name in tree]
    raise _checks.wrong("taxonomy", "tree", "nested dicts and sequences of labels, or a networkx tree", tree)


def _graph_paths(graph: Any) -> list[Path]:
    roots = [node for node, degree in graph.in_degree() if degree == 0]
    if len(roots) != 1 or any(degree > 1 for _, degree in graph.in_degree()):
        raise _checks.wrong("taxonomy", "tree", "a tree with one root and its edges downwards", graph)

    def walk(node: Any, path: Path) -> list[Path]:
        below = list(graph.successors(node))
        edges = [(child, float(graph.edges[node, child].get("weight", 1.0))) for child in below]
        return [p for edge in edges for p in walk(edge[0], (*path, edge))] if below else [path]

    paths = walk(roots[0], ())
    if len({node for path in paths for node, _ in path}) != len(graph) - 1:  # a cycle that the root does not reach
        raise _checks.wrong("taxonomy", "tree", "a tree with one root and its edges downwards", graph)
    return paths


def _shared(a: Path, b: Path) -> float:
    total = 0.0
    for (one, weight), (other, _) in zip(a, b, strict=False):
        if one != other:
            break
        total += weight
    return total

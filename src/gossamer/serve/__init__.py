"""Predict and learn over HTTP: one process, a journal that loses nothing acknowledged, and a page to watch it.

``gossamer serve --data DIR`` starts it; docs/serve.md has the API, docs/operations.md how to run it. The server needs
``pip install 'gossamer[serve]'``; the clients need nothing more than the package.
"""

from gossamer.serve.client import AsyncClient, Client, ServerError
from gossamer.serve.limits import Limits
from gossamer.serve.start import Background

__all__ = [
    "AsyncClient",
    "Background",
    "Client",
    "Limits",
    "ServerError",
]

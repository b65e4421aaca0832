"""Bearer tokens: random, stored as hashes, each with the scopes it allows."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from pathlib import Path

from gossamer import _checks

SCOPES = ("predict", "learn", "admin")
#: What a request without tokens may do on a server that has none: everything, from this machine only.
ALL = frozenset(SCOPES)


class Tokens:
    """The tokens of a folder, in ``tokens.json``: names, SHA-256 hashes and scopes; read again when it changes.

    A token is 256 random bits, so that a fast hash is enough. The comparison takes the same time for any guess.

    >>> import tempfile
    >>> tokens = Tokens(tempfile.mkdtemp())
    >>> token = tokens.create("sensor", ["predict", "learn"])
    >>> sorted(tokens.scopes(f"Bearer {token}")), tokens.scopes("Bearer guess")
    (['learn', 'predict'], frozenset())
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / "tokens.json"
        self._time = -1
        self._known: dict[str, dict[str, object]] = {}
        self._checked = 0.0
        self._load()

    def _load(self) -> None:
        self._checked = time.monotonic()
        changed = self.path.stat().st_mtime_ns if self.path.exists() else 0
        if changed != self._time:
            self._known = json.loads(self.path.read_text()) if changed else {}
            self._time = changed

    def __len__(self) -> int:
        return len(self._known)

    def scopes(self, header: str | None) -> frozenset[str]:
        """What the bearer of an Authorization header may do; nothing if the token is unknown."""
        if time.monotonic() - self._checked > 1.0:
            self._load()
        if not self._known:
            return ALL
        kind, _, token = (header or "").partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()
        found: frozenset[str] = frozenset()
        for facts in self._known.values():  # all of them, whichever it is
            if hmac.compare_digest(str(facts["hash"]), digest) and kind.lower() == "bearer":
                scopes = facts["scopes"]
                found = frozenset(scopes) if isinstance(scopes, list) else found
        return ALL if "admin" in found else found

    def create(self, name: str, scopes: list[str]) -> str:
        """Make a token and store its hash; the token itself is returned once, and is nowhere else."""
        for scope in scopes:
            _checks.one_of("token", "scopes", scope, SCOPES)
        if not scopes or not name or len(name) > 64 or name in self._known:
            raise _checks.wrong("token", "name", "a new name of at most 64 characters, with scopes", name)
        token = f"gsm_{secrets.token_urlsafe(32)}"
        facts = {"hash": hashlib.sha256(token.encode()).hexdigest(), "scopes": scopes, "created": int(time.time())}
        self._save({**self._known, name: facts})
        return token

    def revoke(self, name: str) -> None:
        """Forget a token."""
        if name not in self._known:
            raise _checks.wrong("token", "name", f"one of {sorted(self._known)}", name)
        self._save({other: facts for other, facts in self._known.items() if other != name})

    def names(self) -> dict[str, list[str]]:
        """The scopes of each token, by name."""
        return {name: list(facts["scopes"]) for name, facts in self._known.items()}  # type: ignore[call-overload]

    def _save(self, known: dict[str, dict[str, object]]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(known, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        self._load()

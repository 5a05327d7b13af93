"""The sandbox provider of the twin: a list of sandboxes that are reset, or go, when they are deleted. State and clock only, no HTTP.

Every way in which such a provider misbehaves can be set (``TwinSettings``, names that begin with ``sandbox_``).
"""

from __future__ import annotations

import dataclasses
import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from accessportal.kernel.clock import Clock
from accessportal.twin.chances import Chances
from accessportal.twin.protocol import Answer, LostAnswerError
from accessportal.twin.settings import TwinSettings

PREFIX = "/twin/provider/sandboxes"


@dataclass(frozen=True, slots=True)
class ProvidedSandbox:
    """``ready_at`` (epoch seconds): being reset until then. ``generation`` grows with every reset."""

    external_id: str
    name: str
    lab_duration_hours: float
    generation: int = 1
    ready_at: float = 0.0


class SandboxProviderTwin(Chances):
    """``answer`` is the one way in for clients; ``sandboxes`` and ``deletions`` tell tests what is true. ``on_change`` is told of each new
    state before its caller is (the journal); ``restore`` is the way back."""

    def __init__(
        self, *, clock: Clock, settings: TwinSettings, on_change: Callable[[str, ProvidedSandbox | None], None] | None = None
    ) -> None:
        super().__init__(settings)
        self.clock = clock
        self.deletions: list[str] = []
        self._on_change = on_change
        self._lock = threading.RLock()
        self._sandboxes: dict[str, ProvidedSandbox] = {}

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """``path`` begins with ``PREFIX``, unescaped. Raises ``LostAnswerError`` when the call took effect and nobody is to hear of it."""
        if self.settings.sandbox_latency_seconds:
            self.clock.sleep(self.settings.sandbox_latency_seconds)
        external_id = path.removeprefix(PREFIX).strip("/")
        with self._lock:
            if method == "GET":
                return self._one(external_id) if external_id else self._list(parse_qs(query))
            if method == "DELETE" and external_id:
                return self._delete(external_id, headers.get("If-Match", "").strip('"'))
            if method == "POST" and not external_id:
                return self._create(body)
        return _json({"error": f"{method} {path}: there is no such call"}, status=405)

    def create(self, external_id: str, *, name: str, lab_duration_hours: float = 4.0) -> ProvidedSandbox:
        """A new sandbox, ready at once; one that exists stays as it is."""
        with self._lock:
            if external_id not in self._sandboxes:
                self._put(ProvidedSandbox(external_id, name, lab_duration_hours))
            return self._sandboxes[external_id]

    def sandboxes(self) -> dict[str, ProvidedSandbox]:
        """All that exist now, by external id."""
        with self._lock:
            return dict(self._sandboxes)

    def lose(self, external_id: str) -> None:
        """It is gone, as if somebody had deleted it elsewhere."""
        with self._lock:
            self._drop(external_id)

    def restore(self, external_id: str, sandbox: ProvidedSandbox | None) -> None:
        """Take over a state from an earlier run."""
        with self._lock:
            if sandbox is None:
                self._sandboxes.pop(external_id, None)
            else:
                self._sandboxes[external_id] = sandbox

    def reseed(self) -> None:
        """Start the random source anew from ``settings.seed``."""
        with self._lock:
            super().reseed()

    def _list(self, query: Mapping[str, list[str]]) -> Answer:
        if self._happens(self.settings.sandbox_fail_list):
            return _json({"error": "internal error"}, status=500)
        limit = min(int(query.get("limit", ["100"])[0]), self.settings.page_size)
        after = query.get("cursor", [""])[0]
        # The share is of the whole list, the same ones every time: half a list, not a random one.
        shown = sorted(self._sandboxes)[: round(len(self._sandboxes) * self.settings.sandbox_list_share)]
        rest = [external_id for external_id in shown if external_id > after]
        rows = [self._row(self._sandboxes[external_id]) for external_id in rest[:limit]]
        doubled = [row for row in rows for _ in range(2 if self._happens(self.settings.sandbox_list_twice) else 1)]
        return _json({"sandboxes": doubled, "next_cursor": rest[limit - 1] if len(rest) > limit else None})

    def _one(self, external_id: str) -> Answer:
        if self._happens(self.settings.sandbox_fail_get):
            return _json({"error": "internal error"}, status=500)
        found = self._sandboxes.get(external_id)
        return _unknown(external_id) if found is None else _json(self._row(found))

    def _delete(self, external_id: str, generation: str) -> Answer:
        if self._happens(self.settings.sandbox_fail_delete):
            return _json({"error": "internal error"}, status=500)
        found = self._sandboxes.get(external_id)
        if found is None:
            return _unknown(external_id)
        if generation and generation != str(found.generation):
            return _json({"error": f"{external_id} is at generation {found.generation}"}, status=412)
        self.deletions.append(external_id)
        if self._happens(self.settings.sandbox_recycle):
            ready_at = self.clock.now().timestamp() + self.settings.sandbox_reset_seconds
            self._put(dataclasses.replace(found, generation=found.generation + 1, ready_at=ready_at))
        else:
            self._drop(external_id)
        if self._happens(self.settings.sandbox_lose_answer):
            raise LostAnswerError("DELETE")
        return Answer(202, {}, b"")

    def _create(self, body: bytes) -> Answer:
        try:
            row = json.loads(body)
            external_id = str(row.get("id") or f"ext-{uuid.uuid4()}")
            made = self.create(external_id, name=str(row["name"]), lab_duration_hours=float(row["lab_duration_hours"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return _json({"error": f"not a sandbox: {error!r}"}, status=400)
        return _json(self._row(made), status=201)

    def _row(self, sandbox: ProvidedSandbox) -> dict[str, Any]:
        return {
            "id": sandbox.external_id,
            "name": sandbox.name,
            "state": "ready" if self.clock.now().timestamp() >= sandbox.ready_at else "resetting",
            "lab_duration_hours": sandbox.lab_duration_hours,
            "generation": str(sandbox.generation),
        }

    def _put(self, sandbox: ProvidedSandbox) -> None:
        self._sandboxes[sandbox.external_id] = sandbox
        if self._on_change is not None:
            self._on_change(sandbox.external_id, sandbox)

    def _drop(self, external_id: str) -> None:
        if self._sandboxes.pop(external_id, None) is not None and self._on_change is not None:
            self._on_change(external_id, None)


def _unknown(external_id: str) -> Answer:
    return _json({"error": f"there is no sandbox {external_id}"}, status=404)


def _json(value: dict[str, Any], *, status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(value).encode())

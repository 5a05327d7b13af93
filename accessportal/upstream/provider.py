"""What the pool needs of a provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class UpstreamSandbox:
    """One sandbox as the provider tells it. ``is_ready``: clean, and free to be lent. ``generation``: the provider's own word for this life
    of it, another one after every reset; empty where it has none."""

    external_id: str
    name: str
    is_ready: bool
    lab_duration_hours: float
    generation: str = ""


class Provider(Protocol):
    """A sandbox provider; its calls raise ``UpstreamError``. Once :meth:`delete_sandbox` has returned, :meth:`get_sandbox` must not show
    the former life as ready any more (or tell generations)."""

    def list_sandboxes(self) -> Iterator[tuple[UpstreamSandbox, ...]]:
        """Every sandbox, page by page, to the end."""
        ...

    def get_sandbox(self, external_id: str) -> UpstreamSandbox | None:
        """One sandbox; ``None`` when the provider does not have it."""
        ...

    def delete_sandbox(self, external_id: str, *, generation: str = "") -> None:
        """Have it deleted, with ``generation`` only that life of it; a new one may come under the same id. :raises Gone: when it does not
        exist. :raises Changed: when it is another generation by now."""
        ...

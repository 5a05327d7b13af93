"""A process that dies right before or right after one of its calls to the outside, for the crash tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import botocore.endpoint
import pytest

from tests.depth import IS_DEEP

MOMENTS = [False, True] if IS_DEEP else [True]
"""Whether a process dies after its fatal step or before it. Right after each is right before the next for all who are left, so
``before`` is tried at night alone."""


class Killed(BaseException):
    """The process is dead. Nothing that it still tries to do (a ``finally`` for instance) reaches the outside."""


class Process:
    """One life after the other. The ``fatal`` step (counted over all lives, from 0) is not survived.

    ``names`` are the steps so far. What only reads is none: to die there is to die before the next step.
    """

    def __init__(self, *, fatal: int, after: bool) -> None:
        self.names: list[str] = []
        self.died = False
        self._fatal = fatal
        self._after = after
        self._dead = False

    def call(self, name: str, send: Callable[[], Any], *, is_read: bool) -> Any:
        if self._dead:
            raise Killed
        if is_read:
            return send()
        self.names.append(name)
        if len(self.names) - 1 != self._fatal:
            return send()
        self.died = self._dead = True
        if self._after:
            send()
        raise Killed

    def reboot(self) -> None:
        self._dead = False


@contextmanager
def living(process: Process, monkeypatch: pytest.MonkeyPatch, *, reads: frozenset[str]) -> Iterator[None]:
    """Every call of AWS goes through ``process``; ``reads`` are the operations that change nothing."""
    send = botocore.endpoint.Endpoint.make_request

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        name = f"{operation_model.service_model.service_name}.{operation_model.name}"
        return process.call(name, lambda: send(self, operation_model, request_dict), is_read=operation_model.name in reads)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
        yield

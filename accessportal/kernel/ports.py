"""Seams that lower floors call and higher floors fill."""

from __future__ import annotations

from typing import Protocol


class AfterCommit(Protocol):
    """Shortens the wait after a change was written. Losing a call loses time, never work: the tick finds everything."""

    def __call__(self, name: str, /, **payload: str) -> None: ...


def _nobody(name: str, /, **payload: str) -> None:
    """Used until :func:`set_after_commit` is called: the tick alone does the work."""


_after_commit: AfterCommit = _nobody


def set_after_commit(port: AfterCommit) -> AfterCommit:
    """Install ``port`` and return the one it replaces (so that a test can put it back)."""
    global _after_commit
    replaced, _after_commit = _after_commit, port
    return replaced


def after_commit(name: str, /, **payload: str) -> None:
    """Ask for the job ``name`` to run soon. To be called only after the change that it serves has been written."""
    _after_commit(name, **payload)

"""What cleaning does to a row, without a provider."""

from __future__ import annotations

from datetime import datetime

from accessportal.kernel.actors import system
from accessportal.sandboxes import store
from accessportal.sandboxes.operations.shared import told, unheld
from accessportal.sandboxes.states import Sandbox, Status


def free_again(sandbox: Sandbox, *, now: datetime) -> Sandbox:
    after = unheld(sandbox, Status.AVAILABLE)
    draft = told("sandbox.cleaned", after, status=after.status.value)
    return store.change(sandbox, after, draft=draft, actor=system("clean_sandboxes"), now=now)

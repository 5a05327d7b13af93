"""What moto holds at one moment, kept and put back: building a world by calls costs more than most tests that use it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moto.cognitoidp.models import cognitoidp_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.base_backend import BackendDict, BaseBackend
from moto.dynamodb.models import dynamodb_backends
from moto.organizations.models import organizations_backends

_REGION = "eu-central-1"


@dataclass(frozen=True)
class Snapshot:
    """The state of every backend in use; each is found again by its service's own dictionary, its account and its region."""

    kept: list[tuple[BackendDict[Any], str, str, BaseBackend, dict[str, Any]]]
    members: dict[str, Any]

    @classmethod
    def take(cls) -> Snapshot:
        in_use: list[BackendDict[Any]] = list(BackendDict._instances)  # type: ignore[misc]
        used = [(services, *place) for services in in_use for place in services.iter_backends()]
        memo: dict[int, Any] = {id(backend): backend for *_, backend in used}
        kept = [(*place, copy.deepcopy(vars(place[-1]), memo)) for place in used]
        # Which account is in whose organization stands beside the backends.
        return cls(kept, dict(organizations_backends.master_accounts))

    def put_back(self) -> None:
        """What was taken is there again, in the backends of now; nobody shares an object with the snapshot."""
        places = [(services[account][region], before, state) for services, account, region, before, state in self.kept]
        memo: dict[int, Any] = {id(before): backend for backend, before, _ in places}
        for backend, _, state in places:
            vars(backend).clear()
            vars(backend).update(copy.deepcopy(state, memo))
        organizations_backends.master_accounts.clear()
        organizations_backends.master_accounts.update(self.members)


@dataclass(frozen=True)
class Tables:
    """All tables with their items, and all user pools."""

    kept: Any

    @classmethod
    def take(cls) -> Tables:
        tables = dynamodb_backends[DEFAULT_ACCOUNT_ID][_REGION].tables
        return cls(copy.deepcopy((tables, cognitoidp_backends[DEFAULT_ACCOUNT_ID][_REGION].user_pools)))

    def put_back(self) -> None:
        tables, pools = copy.deepcopy(self.kept)
        dynamodb_backends[DEFAULT_ACCOUNT_ID][_REGION].tables = tables
        cognitoidp_backends[DEFAULT_ACCOUNT_ID][_REGION].user_pools = pools


_built: dict[str, Tables] = {}


def build_once(name: str, build: Callable[[], object]) -> None:
    """Tables and user pools as ``build`` makes them: made once in this process, and put back after that."""
    if name in _built:
        _built[name].put_back()
    else:
        build()
        _built[name] = Tables.take()

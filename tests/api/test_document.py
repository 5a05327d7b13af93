"""The OpenAPI document says what the API does: Schemathesis tries everything that it allows, and much that it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from accessportal.api import views
from accessportal.authz.operations import set_policy
from accessportal.authz.queries import caller_of
from accessportal.authz.states import GLOBAL, TtlPolicy
from accessportal.history.operations import follow
from accessportal.kernel.durations import LONGEST_SECONDS
from accessportal.leases.operations import NewAccount, add_accounts
from accessportal.tokens.states import Scope
from accessportal.web.headers import judged
from tests.api.conftest import Lab
from tests.depth import examples
from tests.fixtures_accounts import Borrowed
from tests.sandboxes.conftest import OLGA

EXAMPLES = examples(12)
ACCOUNT = "111111111111"
LONGEST_GIVEN_SECONDS = 3 * 86_400
FEW = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TOLD = json.loads(views._document())
OPERATIONS = [(path, method.upper()) for path, methods in TOLD["paths"].items() for method in methods]


def cases(path: str, method: str, sandbox_ids: list[str]) -> st.SearchStrategy[Any]:
    """What the document allows, often about a sandbox that there is, and what it forbids."""
    schema = schemathesis.openapi.from_dict(TOLD)
    # Each call of the test sends a token: one "left out" by a case would be sent all the same, and be accepted.
    schema.config.generation.update(with_security_parameters=False)
    schema.app = judged(get_wsgi_application())
    operation = schema[path][method]
    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    bad = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    sent = st.builds(_about, good, st.sampled_from([*sandbox_ids, "nothing"]))
    # One bad question of a batch has its error in the answer, beside the answers of the others.
    return sent if path.endswith("/batch") else sent | bad


def _about(case: Any, sandbox_id: str) -> Any:
    if "sandbox_id" in case.path_parameters:
        case.path_parameters["sandbox_id"] = sandbox_id
    if "account_id" in case.path_parameters:
        case.path_parameters["account_id"] = ACCOUNT
    if {"from", "to"} <= case.query.keys():
        # OpenAPI can't say which comes first, nor how far apart they may be.
        case.query |= {"from": 4096, "to": 16384}
    if case.path.endswith("/who-had"):
        # OpenAPI can't say that `at` stands alone, or else both others.
        if "from" in case.query:
            case.query |= {"from": 4096, "to": 16384}
            case.query.pop("at", None)
        else:
            case.query.pop("to", None)
            case.query.setdefault("at", 4096)
    if "kind" in case.query and isinstance(case.query.get("name"), str) and case.query["name"]:
        # OpenAPI can't say how each kind of thing is named.
        named = {"account": ACCOUNT, "lease": ACCOUNT, "group": "/engineering"}
        case.query["name"] = named.get(str(case.query["kind"]), f"global/{_spelt(case.query['name'])}x")
    # No other than ours is accepted, which tests/api/test_admin.py follows.
    case.query.pop("cursor", None)
    if isinstance(case.body, dict):
        case.body = _spelt(case.body)
        if "permission_set" in case.body:
            # OpenAPI can't say which there are, nor for how long each is given.
            if isinstance(case.body.get("duration_seconds"), int):
                case.body["duration_seconds"] = min(case.body["duration_seconds"], LONGEST_GIVEN_SECONDS)
            case.body |= {"person": "alice@example.com", "permission_set": "PowerUserAccess", "pool": "labs", "size": "small", "tags": ""}
        case.body.pop("cursor", None)
    # OpenAPI can't say that a header is required of tokens of one scope alone.
    case.headers.setdefault("X-Track-ID", "held-by-another-track")
    return case


def _spelt(value: Any) -> Any:
    """OpenAPI can't say that a text is in Unicode's NFC, has something to see, no more bytes than a key, and a * only where it may be."""
    if isinstance(value, dict):
        return {_spelt(name): _spelt(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_spelt(inner) for inner in value]
    if not isinstance(value, str):
        return value
    value = value.replace("*", "x")
    return value if value.isascii() else "".join(letter if letter.isascii() else "é" for letter in value)[:80]


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda value: value)
def test_whatever_is_sent_is_answered_as_documented(
    borrowed: Borrowed, lab: Lab, monkeypatch: pytest.MonkeyPatch, path: str, method: str
) -> None:
    # Each accepted request is sent again with a wrong token: at night more than an address may try in a minute.
    monkeypatch.setattr("accessportal.tokens.guessing.MOST_WRONG", 100_000)
    sandbox_ids = [one.sandbox_id for one in lab.pool.fill(6)]
    lab.allocate("held-by-another-track")
    tokens = [lab.new_token(scope.value, scope, rate=100_000, home="global" if scope.has_home else "") for scope in Scope]
    limits = TtlPolicy(None, 1, LONGEST_SECONDS)
    set_policy(scope=GLOBAL, policy=limits, caller=caller_of(OLGA), now=lab.pool.clock.now())
    monkeypatch.setattr("accessportal.history.policy.PARTS", 1)
    follow(workers=1, clock=lab.pool.clock)
    add_accounts([NewAccount(ACCOUNT)], pool="labs", actor=OLGA, now=lab.pool.clock.now())

    @FEW
    @given(case=cases(path, method, sandbox_ids), token=st.sampled_from(tokens))
    def try_it(case: Any, token: str) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

    try_it()

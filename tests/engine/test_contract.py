"""The table contract of seed 000 (acceptance 3) on Amazon's engine, by plain boto3."""

from __future__ import annotations

from accessportal.kernel.clock import to_epoch
from accessportal.store.base import current_settings
from tests.access_requests import seed_contract
from tests.engine.stage import Stage


def test_the_seeds_queries_give_the_seeds_attributes(stage: Stage) -> None:
    table = f"{current_settings().table_prefix}ActiveRequests"
    seed_contract.check_table(table)
    granted = stage.granted(stage.ask(seconds=600))
    waits = stage.ask_for_prod()
    end = to_epoch(granted.expires_at)

    assert granted.request_id not in [item["request_id"]["S"] for item in seed_contract.expired(table, end - 1)]
    (found,) = (item for item in seed_contract.expired(table, end) if item["request_id"]["S"] == granted.request_id)
    assert found == seed_contract.get(table, granted.request_id)
    seed_contract.check_item(found, status="ACTIVE")
    seed_contract.check_item(seed_contract.get(table, waits.request_id), status="PENDING")

    stage.end(granted)
    stage.settle()
    seed_contract.check_item(seed_contract.get(table, granted.request_id), status="REVOKED", is_revoked=True)

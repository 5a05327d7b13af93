"""The table contract of seed 000 (acceptance 3). The engine lane repeats it on Amazon's engine (tests/engine)."""

from __future__ import annotations

from accessportal.kernel.clock import to_epoch
from tests.access_requests import seed_contract
from tests.fixtures_story import Story

TABLE = "ActiveRequests"


def test_the_table_has_the_seeds_key_and_index(story: Story) -> None:
    seed_contract.check_table(TABLE)


def test_another_program_finds_expired_access_by_the_seeds_query(story: Story) -> None:
    ends_first = story.ask(seconds=600)
    ends_later = story.ask(permission_set="ReadOnlyAccess", seconds=1200)
    waits = story.ask_for_prod(seconds=600)
    end = to_epoch(ends_first.expires_at)

    assert seed_contract.expired(TABLE, end - 1) == []
    (found,) = seed_contract.expired(TABLE, end)

    assert found == seed_contract.get(TABLE, ends_first.request_id)
    seed_contract.check_item(found, status="ACTIVE")
    assert found["expires_at"] == {"N": str(end)}
    both = seed_contract.expired(TABLE, to_epoch(ends_later.expires_at))
    assert [item["request_id"]["S"] for item in both] == [ends_first.request_id, ends_later.request_id]
    seed_contract.check_item(seed_contract.get(TABLE, waits.request_id), status="PENDING")


def test_a_request_keeps_the_seeds_attributes_through_its_life(story: Story) -> None:
    asked = story.ask_for_prod(seconds=600)
    item = seed_contract.get(TABLE, asked.request_id)
    assert (item["ticket_id"], item["approval_required"]) == ({"S": "CHG-20817"}, {"BOOL": True})

    granted = story.carry_out(story.approve(asked))
    seed_contract.check_item(seed_contract.get(TABLE, asked.request_id), status="ACTIVE")
    story.clock.advance((granted.expires_at - story.clock.now()).total_seconds())
    assert [item["request_id"]["S"] for item in seed_contract.expired(TABLE, to_epoch(story.clock.now()))] == [asked.request_id]
    story.tick()

    revoked = seed_contract.get(TABLE, asked.request_id)
    seed_contract.check_item(revoked, status="REVOKED", is_revoked=True)
    assert int(revoked["revoked_at"]["N"]) >= int(revoked["expires_at"]["N"])
    assert revoked["subject_id"] == {"S": "alice@example.com"}
    assert revoked["account_id"] == {"S": story.twin.accounts["payments-prod"]}
    assert revoked["permission_set"] == {"S": "ReadOnlyAccess"}
    assert seed_contract.expired(TABLE, to_epoch(story.clock.now())) == []

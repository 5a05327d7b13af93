"""The whole table against the whole pool: what somebody else did to either, and the brake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from accessportal.aws import cognito
from accessportal.aws.errors import Throttled
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.errors import InvalidRequest, NotAllowed, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.mirror.states import PoolComparison
from tests.fixtures_twin import REGION
from tests.mirror import mirrored
from tests.mirror.world import ALICE, BOB, MALLORY, PAYMENTS, World

OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))


@pytest.fixture(scope="module")
def idp() -> Any:
    return boto3.client("cognito-idp", region_name=REGION)


@pytest.fixture(scope="module")
def table() -> Any:
    return boto3.resource("dynamodb", region_name=REGION).Table("AccessManagement")


def compare(world: World, *, apply: bool = True, most_share: float = MOST_SHARE) -> PoolComparison:
    return mirror.compare_mirror(apply=apply, most_share=most_share, actor=OLGA, clock=world.clock)


def test_equal_ones_have_no_difference(world: World) -> None:
    comparison = compare(world)
    assert (comparison.differences, comparison.mended, comparison.stopped) == ((), 0, "")
    assert comparison.listed > 10


def test_every_sort_of_difference_is_told_and_mended(world: World, idp: Any) -> None:
    pool = world.pool
    idp.admin_delete_user(UserPoolId=pool, Username=ALICE)
    idp.admin_disable_user(UserPoolId=pool, Username=BOB)
    idp.admin_remove_user_from_group(UserPoolId=pool, Username=BOB, GroupName="/security:admin")
    idp.admin_add_user_to_group(UserPoolId=pool, Username=BOB, GroupName=f"{PAYMENTS}:admin")
    idp.delete_group(UserPoolId=pool, GroupName="/engineering:reader")
    idp.create_group(UserPoolId=pool, GroupName="/nowhere:admin")
    idp.admin_create_user(UserPoolId=pool, Username="stranger@example.com", MessageAction="SUPPRESS")
    world.set_person("mallory@example.com", State.DISABLED)
    idp.admin_enable_user(UserPoolId=pool, Username="mallory@example.com")

    told = {one.entity: one.differences for one in compare(world, apply=False).differences}
    assert told == {
        "group#/engineering": ("/engineering:reader is missing",),
        "group#/nowhere": ("/nowhere:admin is still there",),
        f"person#{ALICE}": ("the user is missing",),
        f"person#{BOB}": ("not in /security:admin", f"still in {PAYMENTS}:admin", "still disabled"),
        "person#mallory@example.com": ("still enabled",),
        "person#stranger@example.com": ("the table does not know this user",),
    }
    assert mirrored.pending() == [], "a look changes nothing"

    comparison = compare(world)
    assert comparison.mended == 6
    assert comparison.failures == ()
    world.clock.advance(1)
    world.settle()
    world.check()
    assert compare(world).differences == ()


def test_whose_items_can_not_be_read_is_named_left_alone_and_hinders_nobody(world: World, table: Any, idp: Any) -> None:
    """The pool keeps what it has of them: that nobody can read it is no word that they are gone."""
    for who, sort, name in ((ALICE, f"U:{ALICE}", "state"), (BOB, "G:/security", "role")):
        table.update_item(
            Key={"pk": f"U:{who}", "sk": sort},
            UpdateExpression="SET #name = :value REMOVE claims",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": "nonsense"},
        )
    idp.admin_add_user_to_group(UserPoolId=world.pool, Username="mallory@example.com", GroupName=f"{PAYMENTS}:admin")

    comparison = compare(world, most_share=1.0)

    assert [one.entity for one in comparison.differences] == ["person#mallory@example.com"]
    assert sorted(one.item for one in comparison.failures) == [f"person#{ALICE}", f"person#{BOB}"]
    assert all("can't be read" in one.error for one in comparison.failures)
    assert comparison.mended == 1
    for who in (ALICE, BOB):
        assert idp.admin_get_user(UserPoolId=world.pool, Username=who)["Enabled"]


def test_what_is_not_ours_is_left_alone(world: World, idp: Any) -> None:
    """Cognito makes a group for each identity provider, and gives its users names that are no address."""
    idp.create_group(UserPoolId=world.pool, GroupName=f"{world.pool}_Google")
    idp.admin_create_user(UserPoolId=world.pool, Username="Google_1234", MessageAction="SUPPRESS")
    idp.admin_add_user_to_group(UserPoolId=world.pool, Username=ALICE, GroupName=f"{world.pool}_Google")
    assert compare(world).differences == ()
    assert world.set_person(ALICE, State.DISABLED).mirror.is_done
    assert world.is_in(ALICE, f"{world.pool}_Google")


def test_whoever_comes_from_another_identity_provider_is_left_alone(world: World, idp: Any) -> None:
    """Cognito names them ``<provider>_<NameID>``: with an address for NameID that looks like one of ours, and nobody is to be
    signed out and deleted for it."""
    federated = ("okta_alice@example.com", "Okta_Bob@Example.com", "adfs_mallory@example.com")
    for username in federated:
        mirrored.federate(world.pool, username, provider=username.partition("_")[0].upper())
    # Somebody who was given a password is still from there.
    mirrored.federate(world.pool, "okta_ana@example.com", provider="okta", status="CONFIRMED")
    idp.admin_add_user_to_group(UserPoolId=world.pool, Username=federated[0], GroupName="/security:reader")
    before = mirrored.present(world.pool)

    assert compare(world, most_share=1) == PoolComparison(listed=compare(world).listed, differences=())
    assert mirrored.present(world.pool) == before


def test_a_user_of_ours_that_is_linked_to_another_identity_provider_stays_ours(world: World, idp: Any) -> None:
    mirrored.federate(world.pool, ALICE, provider="okta")
    assert compare(world).differences == ()
    assert world.set_person(ALICE, State.DISABLED).mirror.is_done
    assert world.delete_person(BOB).mirror.is_done
    world.check()
    idp.admin_enable_user(UserPoolId=world.pool, Username=ALICE)
    assert [one.differences for one in compare(world).differences] == [("still enabled",)]
    world.check()


def test_a_person_is_never_taken_for_somebody_from_another_identity_provider(world: World) -> None:
    """Whoever makes, changes or deletes a person of such an address must not reach the other one's user by it."""
    email = "okta_alice@example.com"
    mirrored.federate(world.pool, email, provider="okta")
    changed = world.create_person(email, PAYMENTS, GroupRole.ADMIN)
    assert not changed.mirror.is_done
    assert "another identity provider" in changed.mirror.reason
    assert not world.is_in(email, f"{PAYMENTS}:admin")
    assert [one.item for one in compare(world).failures] == [f"person#{email}"]

    assert world.delete_person(email).mirror.is_done
    assert mirrored.present(world.pool).users[email]
    assert mirrored.pending() == []


def test_a_membership_of_another_program_is_followed(world: World, table: Any) -> None:
    """The seed's own item has no ``siKey1``: no index shows it."""
    table.put_item(Item={"pk": f"U:{BOB}", "sk": f"G:{PAYMENTS}", "role": "reader", "createdAt": "2022-08-10T23:55:20.322Z"})
    assert compare(world).mended == 1
    assert world.is_in(BOB, f"{PAYMENTS}:reader")
    world.check()


def test_the_brake_holds_every_removal_back(world: World, idp: Any) -> None:
    for number in range(8):
        idp.admin_create_user(UserPoolId=world.pool, Username=f"u{number}@example.com", MessageAction="SUPPRESS")
    idp.admin_delete_user(UserPoolId=world.pool, Username=ALICE)

    comparison = compare(world, most_share=0.1)
    assert "8 of" in comparison.stopped
    assert comparison.mended == 1
    users = mirrored.present(world.pool).users
    assert {ALICE, "u7@example.com"} <= users.keys()

    assert compare(world, most_share=1).stopped == ""
    world.check()


def test_a_lost_table_empties_no_pool(world: World, table: Any) -> None:
    for item in mirrored.items():
        table.delete_item(Key={"pk": item["pk"], "sk": item["sk"]})
    before = mirrored.present(world.pool)
    assert compare(world).stopped
    assert mirrored.present(world.pool) == before


def test_half_a_list_is_never_compared(world: World) -> None:
    world.twin.settings.change({"cognito_server_error": 1.0})
    with pytest.raises(Unavailable, match="user pool could not be read"):
        compare(world)
    assert mirrored.pending() == []


def throttle(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Every single look at one of these users and groups is refused; the lists are not."""
    get_user, find_group = cognito.get_user, cognito.find_group

    def look(call: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
        def throttled(pool: str, name: str) -> Any:
            if name in names:
                raise Throttled("TooManyRequestsException", "Rate exceeded")
            return call(pool, name)

        return throttled

    monkeypatch.setattr(cognito, "get_user", look(get_user))
    monkeypatch.setattr(cognito, "find_group", look(find_group))


def in_disorder(world: World, idp: Any) -> None:
    """People and groups are missing, and others are there that nobody knows."""
    for email in (ALICE, BOB, MALLORY):
        idp.admin_delete_user(UserPoolId=world.pool, Username=email)
    for group_id in ("/engineering", PAYMENTS, "/security"):
        for role in mirrored.ROLES:
            idp.delete_group(UserPoolId=world.pool, GroupName=f"{group_id}:{role}")
    for number in range(2):
        idp.admin_create_user(UserPoolId=world.pool, Username=f"stranger{number}@example.com", MessageAction="SUPPRESS")
        idp.create_group(UserPoolId=world.pool, GroupName=f"/nowhere{number}:admin")


def test_one_that_cannot_be_looked_at_stops_no_other(world: World, idp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a difference of thousands, of which Cognito always throttles some, would never be mended."""
    in_disorder(world, idp)
    with monkeypatch.context() as patched:
        throttle(patched, MALLORY, "/engineering:reader", "stranger0@example.com", "/nowhere0:admin")
        comparison = compare(world)

    told = {one.item: one.error for one in comparison.failures}
    assert told.keys() == {f"person#{MALLORY}", "group#/engineering", "person#stranger0@example.com", "group#/nowhere0"}
    assert all("Rate exceeded" in error for error in told.values())
    assert "The sweep goes on with it." in told[f"person#{MALLORY}"]
    assert "The next comparison looks again." in told["group#/nowhere0"]
    # Alice, Bob, /engineering/payments, /security, and the two that nobody knows and that could be looked at.
    assert (len(comparison.differences), comparison.mended) == (6, 6)
    image = mirrored.present(world.pool)
    assert {ALICE, BOB, "stranger0@example.com"} <= image.users.keys()
    assert not {MALLORY, "stranger1@example.com"} & image.users.keys()
    assert "/nowhere0:admin" in image.groups, "what the pool alone has never goes because of a list"
    assert {"W:G:/engineering", f"W:U:{MALLORY}"} <= set(mirrored.pending())
    assert not [pk for pk in mirrored.pending() if "stranger" in pk or "nowhere" in pk]

    world.clock.advance(1)
    world.settle(sweeps=2)
    assert [one.entity for one in compare(world).differences] == ["group#/nowhere0", "person#stranger0@example.com"]
    world.check()


def test_a_look_tells_what_it_could_not_see(world: World, idp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_disorder(world, idp)
    throttle(monkeypatch, ALICE)
    comparison = compare(world, apply=False)
    assert [one.item for one in comparison.failures] == [f"person#{ALICE}"]
    assert len(comparison.differences) == 9
    assert mirrored.pending() == []


def test_the_brake_counts_what_could_not_be_seen(world: World, idp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memberships that the table has lost do not go by the sweep either, when the brake holds the others back."""
    for email in (ALICE, BOB, MALLORY):
        for group_id in ("/portal/operators", "/portal/auditors", "/engineering"):
            idp.admin_add_user_to_group(UserPoolId=world.pool, Username=email, GroupName=f"{group_id}:admin")
    before = mirrored.present(world.pool)
    throttle(monkeypatch, ALICE, MALLORY)
    comparison = compare(world)
    assert "9 of" in comparison.stopped
    assert {one.item for one in comparison.failures} == {f"person#{ALICE}", f"person#{MALLORY}"}
    assert mirrored.pending() == []
    assert mirrored.present(world.pool) == before


def test_only_operators_may(world: World) -> None:
    with pytest.raises(NotAllowed):
        mirror.compare_mirror(apply=False, actor=person("mallory@example.com"), clock=world.clock)
    with pytest.raises(NotAllowed):
        mirror.ensure_user_pool(actor=person("mallory@example.com"))
    with pytest.raises(InvalidRequest):
        compare(world, most_share=1.5)
    mirror.configure(mirror.MirrorSettings())
    with pytest.raises(InvalidRequest, match="create_user_pool"):
        compare(world)


def test_a_pool_is_made_once(world: World) -> None:
    first = mirror.ensure_user_pool(name="another", actor=system("setup"))
    again = mirror.ensure_user_pool(name="another", actor=OLGA)
    assert first.is_new
    assert (again.pool_id, again.is_new) == (first.pool_id, False)
    with pytest.raises(InvalidRequest):
        mirror.ensure_user_pool(name="", actor=OLGA)


def test_a_directory_that_was_there_first_is_put_into_a_new_pool(world: World) -> None:
    pool = mirror.ensure_user_pool(name="new", actor=OLGA)
    mirror.configure(mirror.MirrorSettings(user_pool_id=pool.pool_id))
    world.pool = pool.pool_id
    comparison = compare(world)
    assert comparison.failures == ()
    world.clock.advance(1)
    world.settle()
    world.check()

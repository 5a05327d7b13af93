"""The table of every route of the portal with its rights; ``test_routes`` tries it as everybody."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.web.addresses import KeyConverter

PEOPLE = ("anonymous", "mallory", "alice", "bob", "ana", "olga")
"""Nobody, a stranger, the holder, an approver, an auditor, an operator."""


@dataclass(frozen=True)
class Route:
    """``answers`` are the statuses for PEOPLE, in that order. Names in braces become the keys of things in the story."""

    path: str
    answers: tuple[int, ...]
    data: tuple[tuple[str, str], ...] | None = None
    """What is posted; ``None``: a GET."""


def get(path: str, *answers: int) -> Route:
    return Route(path, answers)


def post(path: str, *answers: int, **data: str) -> Route:
    return Route(path, answers, tuple(data.items()))


def everybody(path: str, status: int = 200) -> Route:
    return get(path, *(status,) * 6)


def signed_in(path: str, status: int = 200) -> Route:
    return get(path, 302, *(status,) * 5)


def readers(path: str, status: int = 200) -> Route:
    """Approvers, auditors and operators, in the admin pages."""
    return get(path, 302, 403, 403, status, status, status)


def overseers(path: str, status: int = 200) -> Route:
    """Auditors and operators alone."""
    return get(path, 302, 403, 403, 403, status, status)


def root_admin_get(path: str) -> Route:
    """For admins of the group and of those above; Olga is admin of the root, Bob of another group."""
    return get(path, 302, 403, 403, 403, 403, 200)


def root_admin_post(path: str, status: int, **data: str) -> Route:
    return post(path, 302, 403, 403, 403, 403, status, **data)


REQUEST = {
    "account": "payments-dev",
    "permission_set": "PowerUserAccess",
    "duration": "1h",
    "reason": "Incident",
    "ticket_id": "",
    "submission_id": "form",
}
JOIN = {
    "group": "/engineering",
    "role": "reader",
    "duration": "1h",
    "reason": "Helping out",
    "ticket_id": "",
    "submission_id": "form",
}
SANDBOX = {
    "name_prefix": "",
    "duration": "1h",
    "reason": "Trying out",
    "ticket_id": "",
    "submission_id": "form",
}
STAND_IN = {"email": "sam@example.com", "first_day": "2026-03-02", "last_day": "2026-03-09", "note": "", "submission_id": "form"}
ABSENT = "00000000-0000-4000-8000-000000000000"

ROUTES: dict[str, list[Route]] = {
    # health
    "metrics": [get("/metrics", 403, 403, 403, 403, 200, 200)],
    # identity
    "sign_in": [get("/sign-in/", 200, 302, 302, 302, 302, 302)],
    # Without an issuer in the settings; with one, tests/identity follows them.
    "sign_in_start": [everybody("/sign-in/start/", 404), post("/sign-in/start/", *(405,) * 6)],
    "sign_in_callback": [everybody("/sign-in/callback/", 404), post("/sign-in/callback/", *(405,) * 6)],
    "sign_out": [everybody("/sign-out/", 302), post("/sign-out/", *(302,) * 6)],
    "signed_out": [everybody("/signed-out/")],
    # portal
    "home": [signed_in("/")],
    # Nothing is answered before the history is made; with it: tests/console/test_history.py.
    "my_requests": [
        signed_in("/requests/"),
        signed_in("/requests/?kind=group&state=DENIED&since=2026-01-01&until=2026-12-31"),
        signed_in("/requests/?kind=key", 400),
    ],
    "my_history": [signed_in("/history/", 503), signed_in("/history/?from=yesterday", 400)],
    "my_history_export": [signed_in("/history/export/csv/", 503), signed_in("/history/export/pdf/", 404)],
    "stand_ins": [
        signed_in("/stand-ins/"),
        signed_in("/stand-ins/?cursor=forged", 400),
        # Olga is admin of every group, and so approves who joins.
        post("/stand-ins/", 302, 403, 403, 302, 403, 302, **STAND_IN),
        post("/stand-ins/", 302, *(422,) * 5, **STAND_IN | {"email": ""}),
    ],
    "end_stand_in": [
        get("/stand-ins/gina@example.com/{stand_in}/end/", 302, 404, 404, 200, 403, 200),
        post("/stand-ins/gina@example.com/{stand_in}/end/", 302, 404, 404, 302, 403, 302),
        signed_in("/stand-ins/gina@example.com/nothing/end/", 404),
    ],
    "help": [signed_in("/help/")],
    "find": [signed_in("/requests/find/?find=payments")],
    "new": [signed_in("/requests/new/")],
    "new_request": [
        signed_in("/requests/new/aws_account/?account=payments-dev"),
        post("/requests/new/aws_account/", 302, 403, 302, 403, 403, 403, **REQUEST),
        post("/requests/new/aws_account/", 302, 403, 302, 403, 403, 403, **REQUEST, status="ACTIVE", requested_by="bob@example.com"),
        post("/requests/new/aws_account/", 302, *(422,) * 5, reason=""),
        signed_in("/requests/new/group/?group=/engineering&role=reader"),
        post("/requests/new/group/", 302, 403, 302, 403, 403, 403, **JOIN),
        post("/requests/new/group/", 302, 403, 302, 403, 403, 403, **JOIN, subject="bob@example.com", status="ACTIVE", claim="permanent"),
        post("/requests/new/group/", 302, *(422,) * 5, group=""),
        signed_in("/requests/new/sandbox/?name_prefix=lab-"),
        # No rule of the story's own is about sandboxes.
        post("/requests/new/sandbox/", 302, *(403,) * 5, **SANDBOX),
        post("/requests/new/sandbox/", 302, *(403,) * 5, **SANDBOX, subject="bob@example.com", status="ACTIVE", continues="{active}"),
        post("/requests/new/sandbox/", 302, *(422,) * 5, duration=""),
        signed_in("/requests/new/nothing/", 404),
    ],
    "preview_request": [
        signed_in("/requests/new/aws_account/preview/?account=payments-dev&permission_set=PowerUserAccess&duration=1h"),
        post("/requests/new/aws_account/preview/", 302, *(405,) * 5),
        signed_in("/requests/new/group/preview/?group=/engineering&role=reader&duration=1h"),
        post("/requests/new/group/preview/", 302, *(405,) * 5),
        signed_in("/requests/new/sandbox/preview/?name_prefix=&duration=1h"),
        post("/requests/new/sandbox/preview/", 302, *(405,) * 5),
        signed_in("/requests/new/nothing/preview/", 404),
    ],
    "for_me": [signed_in("/fragments/for-me/")],
    "choices": [
        signed_in("/requests/new/aws_account/choices/account/?account=pay"),
        signed_in("/requests/new/aws_account/choices/permission_set/?permission_set=po&account=payments-dev&subject=/security"),
        signed_in("/requests/new/group/choices/group/?group=pay"),
        signed_in("/requests/new/group/choices/role/", 404),
        signed_in("/requests/new/nothing/choices/account/", 404),
    ],
    "request": [
        get("/requests/{pending}/", 302, 404, 200, 200, 200, 200),
        get("/requests/{active}/", 302, 404, 200, 404, 200, 200),
        signed_in(f"/requests/{ABSENT}/", 404),
    ],
    "request_live": [get("/requests/{active}/live/", 302, 404, 200, 404, 200, 200)],
    "extend": [
        get("/requests/{active}/extend/", 302, 404, 200, 404, 302, 302),
        post("/requests/{active}/extend/", 302, 404, 302, 404, 403, 403, duration="2h", submission_id="longer"),
    ],
    "request_deed": [
        get("/requests/{pending}/approve/", 302, 404, 302, 200, 302, 302),
        post("/requests/{pending}/approve/", 302, 404, 403, 302, 403, 403),
        post("/requests/{pending}/approve/", 302, 404, 403, 302, 403, 403, actor="sam@example.com", status="ACTIVE"),
        post("/requests/{pending}/deny/", 302, 404, 403, 302, 403, 403, reason="no"),
        post("/requests/{pending}/cancel/", 302, 404, 302, 403, 403, 403),
        post("/requests/{active}/end/", 302, 404, 302, 404, 403, 302),
        get("/requests/{pending}/ask_back/", 302, 404, 302, 200, 302, 200),
        post("/requests/{pending}/ask_back/", 302, 404, 403, 302, 403, 302, text="Why?"),
        post("/requests/{pending}/ask_back/", 302, 404, 422, 422, 422, 422, text=" "),
        post(
            "/requests/{pending}/ask_back/",
            302,
            404,
            403,
            302,
            403,
            302,
            text="Why?",
            actor="olga@example.com",
            written_by="sam@example.com",
        ),
        post("/requests/{pending}/answer/", 302, 404, 302, 302, 403, 302, text="So."),
        get("/requests/{pending}/comment/", 302, 404, 200, 302, 302, 302),
        post("/requests/{pending}/comment/", 302, 404, 302, 302, 403, 302, text="So."),
        post("/requests/{pending}/retry/", 302, 404, 409, 409, 409, 409),
        post("/requests/{active}/take_back/", 302, 404, 409, 404, 409, 409),
        signed_in("/requests/{mine}/nothing/", 404),
    ],
    "approvals_tally": [signed_in("/fragments/approvals/")],
    "accounts": [signed_in("/accounts/"), signed_in("/accounts/?range=7d"), post("/accounts/", 302, *(405,) * 5)],
    "sandboxes": [signed_in("/sandboxes/"), signed_in("/sandboxes/?range=7d"), post("/sandboxes/", 302, *(405,) * 5)],
    "groups": [signed_in("/groups/"), signed_in("/groups/?open=/engineering"), signed_in("/groups/?q=pay")],
    "group_branch": [signed_in("/groups/branch/at/engineering/"), signed_in("/groups/branch/at/nothing/", 404)],
    "search_groups": [signed_in("/groups/search/?parent_id=pay")],
    "group": [signed_in("/groups/at/"), signed_in("/groups/at/engineering/payments/"), signed_in("/groups/at/nothing/", 404)],
    "group_live": [signed_in("/groups/live/at/engineering/payments/"), signed_in("/groups/live/at/nothing/", 404)],
    "group_deed": [
        *(root_admin_get(f"/groups/{deed}/at/engineering/payments/") for deed in ("add", "create", "rename", "move", "disable", "delete")),
        root_admin_get("/groups/role/at/engineering/payments/?email=alice@example.com"),
        root_admin_post("/groups/add/at/engineering/payments/", 302, email="sam@example.com", role="reader"),
        root_admin_post("/groups/add/at/engineering/payments/", 302, email="sam@example.com", role="reader", actor="olga@example.com"),
        root_admin_post("/groups/role/at/engineering/payments/", 302, email="alice@example.com", role="admin"),
        root_admin_post("/groups/remove/at/engineering/payments/", 302, email="alice@example.com"),
        root_admin_post("/groups/create/at/engineering/payments/", 302, name="Ledger", part="ledger"),
        root_admin_post("/groups/rename/at/engineering/payments/", 302, name="Pay"),
        root_admin_post("/groups/move/at/engineering/payments/", 302, parent_id="/security"),
        root_admin_post("/groups/disable/at/engineering/payments/", 302),
        root_admin_post("/groups/enable/at/engineering/payments/", 409),
        root_admin_post("/groups/delete/at/engineering/payments/", 409),
        # Whom the portal put there stays; the others are not in it.
        get("/groups/leave/at/engineering/payments/", 302, *(403,) * 5),
        post("/groups/leave/at/engineering/payments/", 302, *(403,) * 5),
        signed_in("/groups/dance/at/engineering/payments/", 404),
        signed_in("/groups/add/at/nothing/", 404),
    ],
    "search_people": [
        # Whoever may see nobody is told so in the list.
        signed_in("/people/search/?text=al&list=who_list"),
        signed_in("/people/search/?text=al&list=who_list&groups=yes"),
        signed_in("/people/search/?text=al&list=who_list&for=stand_in"),
        signed_in("/people/search/?text=al", 400),
    ],
    "person": [
        get("/people/alice@example.com/", 302, 404, 200, 404, 200, 200),
        get("/people/alice@example.com/?groups_from=2", 302, 404, 200, 404, 200, 200),
        signed_in("/people/nobody@example.com/", 404),
    ],
    "person_live": [get("/people/alice@example.com/live/", 302, 404, 200, 404, 200, 200)],
    "person_deed": [
        get("/people/alice@example.com/delete/", 302, 404, 403, 404, 403, 200),
        post("/people/alice@example.com/rename/", 302, 404, 403, 404, 403, 302, name="Alice"),
        post("/people/alice@example.com/disable/", 302, 404, 403, 404, 403, 302),
        post("/people/alice@example.com/enable/", 302, 404, 403, 404, 403, 409),
        post("/people/alice@example.com/delete/", 302, 404, 403, 404, 403, 302),
        signed_in("/people/alice@example.com/dance/", 404),
    ],
    # console
    "console_explain": [readers("/admin/rules/explain/")],
    "console_people_holdings": [
        overseers("/admin/people/holdings/?first=0&key=alice@example.com&key=nobody@example.com"),
        overseers("/admin/people/holdings/?first=x&key=alice@example.com", 400),
        overseers("/admin/people/holdings/?first=0" + 6 * "&key=alice@example.com", 400),
    ],
    "console_chain": [overseers("/admin/audit/chain/?entity=request%23{active}")],
    "console_requests": [
        readers("/admin/requests/"),
        readers("/admin/requests/?cursor=forged", 400),
        readers("/admin/requests/?pattern=waiting&q=prod&kind=aws_account&rule=prod-readonly&person=alice"),
        readers("/admin/requests/?pattern=decided"),
        overseers("/admin/requests/?pattern=active"),
        overseers("/admin/requests/?pattern=stuck"),
    ],
    # Requests, people and groups have one page, the portal's: the way to it, for whoever may see it.
    "console_requests_detail": [
        readers("/admin/requests/{pending}/", 302),
        get("/admin/requests/{active}/", 302, 403, 403, 404, 302, 302),
        readers("/admin/requests/nothing/", 404),
    ],
    "console_requests_around": [
        get("/admin/requests/{pending}/around/", 302, 403, 403, 200, 200, 200),
        get("/admin/requests/{active}/around/", 302, 403, 403, 404, 200, 200),
    ],
    "console_requests_history": [readers("/admin/requests/{pending}/history/")],
    "console_requests_operate": [
        readers("/admin/requests/{pending}/do/approve/", 302),
        post("/admin/requests/{pending}/do/approve/", 302, 403, 403, 302, 302, 302, confirmed="yes"),
    ],
    "console_requests_bulk": [
        readers("/admin/requests/bulk/approve/", 302),
        post("/admin/requests/bulk/approve/", 302, 403, 403, 200, 200, 200, key="{pending}"),
        post("/admin/requests/bulk/approve/", 302, 403, 403, 302, 302, 302, key="{pending}", confirmed="yes"),
    ],
}
for resource, key in (("assignments", "{assignment}"), ("rules", "{rule}")):
    ROUTES[f"console_{resource}_detail"] = [overseers(f"/admin/{resource}/{key}/")]
    ROUTES[f"console_{resource}_history"] = [overseers(f"/admin/{resource}/{key}/history/")]
    ROUTES[f"console_{resource}_operate"] = [post(f"/admin/{resource}/{key}/do/nothing/", 302, 403, 403, 403, 404, 404)]
for resource, key in (("people", "sam@example.com"), ("groups", KeyConverter().to_url("/engineering/payments"))):
    page = f"/admin/{resource}/{key}/"
    ROUTES[f"console_{resource}"] = [overseers(f"/admin/{resource}/"), overseers(f"/admin/{resource}/?cursor=forged", 400)]
    ROUTES[f"console_{resource}_detail"] = [overseers(page, 302), overseers(f"/admin/{resource}/nothing/", 404)]
    ROUTES[f"console_{resource}_history"] = [overseers(f"{page}history/"), overseers(f"{page}history/?check=1")]
    ROUTES[f"console_{resource}_operate"] = [post(f"{page}do/disable/", 302, 403, 403, 403, 302, 302, confirmed="yes")]
ROUTES["console_people"] += [overseers("/admin/people/?q=al"), overseers("/admin/people/?pattern=behind")]
ROUTES["console_people_bulk"] = [post("/admin/people/bulk/disable/", 302, 403, 403, 403, 302, 302, key="sam@example.com", confirmed="yes")]
# Everybody in the story is still here; whoever has left is in tests/console/test_former_people.py.
ROUTES |= {
    "console_former-people": [overseers("/admin/former-people/"), overseers("/admin/former-people/?q=nobody@example.com")],
    "console_former-people_detail": [
        overseers("/admin/former-people/nobody@example.com/", 404),
        overseers("/admin/former-people/sam@example.com/", 409),
    ],
    "console_former-people_history": [overseers("/admin/former-people/nobody@example.com/history/", 404)],
    "console_former-people_operate": [overseers("/admin/former-people/nobody@example.com/do/erase/", 404)],
    "console_former-people_bulk": [post("/admin/former-people/bulk/erase/", 302, 403, 403, 403, 400, 400, key="nobody@example.com")],
}
# Nothing differs in the story: what is asked of a difference is not found.
ROUTES |= {
    "console_drift": [overseers("/admin/drift/")],
    "console_drift_detail": [overseers("/admin/drift/nothing/", 404)],
    "console_drift_history": [overseers("/admin/drift/nothing/history/", 404)],
    "console_drift_operate": [overseers("/admin/drift/nothing/do/repair/", 404)],
    "console_drift_bulk": [post("/admin/drift/bulk/repair/", 302, 403, 403, 403, 400, 400, key="nothing")],
}
ROUTES["console_groups"] += [overseers("/admin/groups/?pattern=under&q=/engineering")]
ROUTES["console_groups_bulk"] = [post("/admin/groups/bulk/nothing/", 302, 403, 403, 403, 404, 404, key="/security")]
TOKEN = {"name": "Lab runner", "scope": "track", "rate_per_minute": "600", "days": "", "submission_id": ABSENT}
ROUTES |= {
    "console_stand-ins": [
        overseers("/admin/stand-ins/"),
        overseers("/admin/stand-ins/?pattern=all"),
        overseers("/admin/stand-ins/?cursor=forged", 400),
    ],
    "console_stand-ins_detail": [overseers("/admin/stand-ins/{stand_in_key}/"), overseers("/admin/stand-ins/nothing/", 404)],
    "console_stand-ins_history": [
        overseers("/admin/stand-ins/{stand_in_key}/history/"),
        overseers("/admin/stand-ins/{stand_in_key}/history/?check=1"),
    ],
    "console_stand-ins_operate": [
        get("/admin/stand-ins/{stand_in_key}/do/end/", 302, 403, 403, 403, 302, 200),
        post("/admin/stand-ins/{stand_in_key}/do/end/", 302, 403, 403, 403, 403, 200),
        post("/admin/stand-ins/{stand_in_key}/do/end/", 302, 403, 403, 403, 403, 302, confirmed="yes"),
        post("/admin/stand-ins/{stand_in_key}/do/nothing/", 302, 403, 403, 403, 404, 404),
    ],
    "console_stand-ins_bulk": [post("/admin/stand-ins/bulk/end/", 302, 403, 403, 403, 400, 400, key="{stand_in_key}", confirmed="yes")],
    "console_tokens": [
        overseers("/admin/tokens/"),
        overseers("/admin/tokens/?pattern=all"),
        overseers("/admin/tokens/?cursor=forged", 400),
    ],
    "console_tokens_new": [
        get("/admin/tokens/new/", 302, 403, 403, 403, 403, 200),
        post("/admin/tokens/new/", 302, 403, 403, 403, 403, 200, **TOKEN),
        post("/admin/tokens/new/", 302, 403, 403, 403, 403, 400, scope="root"),
    ],
    "console_tokens_detail": [overseers("/admin/tokens/{token}/"), overseers("/admin/tokens/nothing/", 404)],
    "console_tokens_history": [overseers("/admin/tokens/{token}/history/"), overseers("/admin/tokens/{token}/history/?check=1")],
    "console_tokens_operate": [
        get("/admin/tokens/{token}/do/revoke/", 302, 403, 403, 403, 302, 200),
        post("/admin/tokens/{token}/do/revoke/", 302, 403, 403, 403, 403, 200),
        post("/admin/tokens/{token}/do/revoke/", 302, 403, 403, 403, 403, 302, confirmed="yes"),
        post("/admin/tokens/{token}/do/nothing/", 302, 403, 403, 403, 404, 404),
    ],
    "console_tokens_bulk": [post("/admin/tokens/bulk/revoke/", 302, 403, 403, 403, 400, 400, key="{token}", confirmed="yes")],
}
ROUTES |= {
    # approvals, relationships and their scopes
    "console_check_record": [
        overseers("/admin/check-record/"),
        overseers("/admin/check-record/?about=approval&scope=tenant:acme&who=alice&verb=GET&target=doc-1"),
        overseers("/admin/check-record/?about=chain&scope=tenant:acme&who=alice", 400),
    ],
    **{
        f"console_{name}{end}": routes
        for name in ("approvals", "relationships")
        for end, routes in {
            "": [
                overseers(f"/admin/{name}/"),
                overseers(f"/admin/{name}/?pattern=scope&q=tenant:acme&below=yes"),
                overseers(f"/admin/{name}/?pattern=scope&q=tenant:", 400),
            ],
            "_grant": [
                get(f"/admin/{name}/grant/", 302, 403, 403, 403, 403, 200),
                post(f"/admin/{name}/grant/", 302, 403, 403, 403, 403, 400, scope="tenant:acme"),
            ],
            "_detail": [overseers(f"/admin/{name}/nothing/", 404), overseers(f"/admin/{name}/tenant:acme~23a~23b~23c/", 404)],
            "_history": [overseers(f"/admin/{name}/nothing/history/", 404)],
            "_operate": [post(f"/admin/{name}/tenant:acme~23a~23b~23c/do/revoke/", 302, 403, 403, 403, 404, 404)],
            "_bulk": [post(f"/admin/{name}/bulk/revoke/", 302, 403, 403, 403, 200, 200, key="tenant:acme#a#b#c")],
        }.items()
    },
    "console_scopes": [
        overseers("/admin/scopes/"),
        overseers("/admin/scopes/?pattern=counted"),
        overseers("/admin/scopes/?pattern=named&q=x", 400),
    ],
    "console_scopes_detail": [overseers("/admin/scopes/tenant:acme/"), overseers("/admin/scopes/tenant:/", 404)],
    "console_scopes_counts": [
        overseers("/admin/scopes/tenant:acme/counts/?of=approval&below=yes"),
        overseers("/admin/scopes/tenant:/counts/", 404),
        overseers("/admin/scopes/tenant:acme/counts/?cursor=forged", 400),
    ],
    "console_scopes_history": [overseers("/admin/scopes/tenant:acme/history/")],
    "console_scopes_operate": [
        post("/admin/scopes/tenant:acme/do/policy/", 302, 403, 403, 403, 403, 200),
        post("/admin/scopes/tenant:acme/do/delete/", 302, 403, 403, 403, 403, 409),
    ],
    "console_scopes_bulk": [post("/admin/scopes/bulk/policy/", 302, 403, 403, 403, 400, 400, key="tenant:acme")],
    # accounts that are lent
    "console_account-pool": [
        overseers("/admin/account-pool/"),
        overseers("/admin/account-pool/?pattern=leased&q=default"),
        overseers("/admin/account-pool/?cursor=forged", 400),
    ],
    "console_account-pool_detail": [overseers("/admin/account-pool/{lent_account}/"), overseers("/admin/account-pool/nothing/", 404)],
    "console_account-pool_history": [overseers("/admin/account-pool/{lent_account}/history/?check=1")],
    "console_account-pool_operate": [
        get("/admin/account-pool/{lent_account}/do/restore/", 302, 403, 403, 403, 302, 302),
        post("/admin/account-pool/{lent_account}/do/restore/", 302, 403, 403, 403, 403, 409),
        *(post(f"/admin/account-pool/{{lent_account}}/do/{deed}/", 302, 403, 403, 403, 403, 200) for deed in ("quarantine", "retire")),
        # Whoever was not asked has not said which hand-over is meant.
        post("/admin/account-pool/{lent_account}/do/retire/", 302, 403, 403, 403, 403, 409, confirmed="yes", reason="Smoke."),
        post("/admin/account-pool/{lent_account}/do/nothing/", 302, 403, 403, 403, 404, 404),
    ],
    "console_account-pool_bulk": [
        post("/admin/account-pool/bulk/restore/", 302, 403, 403, 403, 200, 200, key="{lent_account}"),
        post("/admin/account-pool/bulk/retire/", 302, 403, 403, 403, 400, 400, key="{lent_account}", confirmed="yes", reason="Smoke."),
    ],
    "console_order_cleaning": [
        get("/admin/account-pool/clean/", 302, 403, 403, 403, 403, 200),
        # No cleaner is set here: the page says so.
        post("/admin/account-pool/clean/", 302, 403, 403, 403, 403, 200),
    ],
    "console_leases": [
        overseers("/admin/leases/"),
        overseers("/admin/leases/?pattern=person&q=alice@example.com"),
        overseers("/admin/leases/?cursor=forged", 400),
    ],
    "console_leases_detail": [overseers("/admin/leases/{lease}/"), overseers("/admin/leases/nothing/", 404)],
    "console_leases_history": [overseers("/admin/leases/{lease}/history/?check=1")],
    "console_leases_operate": [
        get("/admin/leases/{lease}/do/unfreeze/", 302, 403, 403, 403, 302, 302),
        post("/admin/leases/{lease}/do/freeze/", 302, 403, 403, 403, 403, 200),
        post("/admin/leases/{lease}/do/freeze/", 302, 403, 403, 403, 403, 409, confirmed="yes", reason="Smoke."),
        post("/admin/leases/{lease}/do/nothing/", 302, 403, 403, 403, 404, 404),
    ],
    "console_leases_bulk": [
        post("/admin/leases/bulk/freeze/", 302, 403, 403, 403, 200, 200, key="{lease}"),
        post("/admin/leases/bulk/freeze/", 302, 403, 403, 403, 302, 302, key="{lease}", confirmed="yes", reason="Smoke."),
    ],
    "console_sandboxes": [
        overseers("/admin/sandboxes/"),
        overseers("/admin/sandboxes/?pattern=quarantined"),
        overseers("/admin/sandboxes/?pattern=track&q=track-1"),
        overseers("/admin/sandboxes/?cursor=forged", 400),
    ],
    "console_sandboxes_detail": [overseers("/admin/sandboxes/{sandbox}/"), overseers("/admin/sandboxes/nothing/", 404)],
    "console_sandboxes_history": [overseers("/admin/sandboxes/{sandbox}/history/?check=1")],
    "console_sandboxes_operate": [
        get("/admin/sandboxes/{sandbox}/do/restore/", 302, 403, 403, 403, 302, 302),
        post("/admin/sandboxes/{sandbox}/do/restore/", 302, 403, 403, 403, 403, 409),
        post("/admin/sandboxes/{sandbox}/do/quarantine/", 302, 403, 403, 403, 403, 200),
        # Whoever was not asked has not said which hand-over is meant.
        post("/admin/sandboxes/{sandbox}/do/quarantine/", 302, 403, 403, 403, 403, 409, confirmed="yes", reason="Smoke."),
        post("/admin/sandboxes/{sandbox}/do/nothing/", 302, 403, 403, 403, 404, 404),
    ],
    "console_sandboxes_bulk": [
        post("/admin/sandboxes/bulk/restore/", 302, 403, 403, 403, 200, 200, key="{sandbox}"),
        post("/admin/sandboxes/bulk/restore/", 302, 403, 403, 403, 302, 302, key="{sandbox}", confirmed="yes"),
        post("/admin/sandboxes/bulk/quarantine/", 302, 403, 403, 403, 400, 400, key="{sandbox}", confirmed="yes", reason="Smoke."),
    ],
    "console_order_run": [
        get("/admin/sandbox-runs/order/sync/", 302, 403, 403, 403, 403, 200),
        get("/admin/sandbox-runs/order/nothing/", 302, 403, 403, 403, 403, 404),
        post("/admin/sandbox-runs/order/cleanup/", 302, 403, 403, 403, 403, 302),
    ],
    "console_sandbox-runs": [
        overseers("/admin/sandbox-runs/"),
        overseers("/admin/sandbox-runs/?pattern=open"),
        overseers("/admin/sandbox-runs/?cursor=forged", 400),
    ],
    "console_sandbox-runs_detail": [overseers("/admin/sandbox-runs/nothing/", 404)],
    "console_sandbox-runs_history": [overseers("/admin/sandbox-runs/nothing/history/", 404)],
    "console_sandbox-runs_operate": [post("/admin/sandbox-runs/nothing/do/nothing/", 302, 403, 403, 403, 404, 404)],
    "console_sandbox-runs_bulk": [post("/admin/sandbox-runs/bulk/nothing/", 302, 403, 403, 403, 404, 404)],
}
# Lists without pages of their own for a row.
for resource, key in (("audit", "{event}"), ("accounts", "{account}"), ("permission-sets", "{permission_set}")):
    ROUTES[f"console_{resource}_detail"] = [readers(f"/admin/{resource}/{key}/", 404)]
    ROUTES[f"console_{resource}_history"] = [readers(f"/admin/{resource}/{key}/history/", 404)]
    ROUTES[f"console_{resource}_operate"] = [post(f"/admin/{resource}/{key}/do/nothing/", 302, 403, 403, 404, 404, 404)]
ROUTES["console_accounts_detail"] = [overseers("/admin/accounts/{account}/"), overseers("/admin/accounts/nothing/", 404)]
ROUTES["console_accounts_history"] = [overseers("/admin/accounts/{account}/history/", 404)]
ROUTES["console_accounts_operate"] = [post("/admin/accounts/{account}/do/nothing/", 302, 403, 403, 403, 404, 404)]
for resource in ("assignments", "rules", "audit", "accounts", "permission-sets", "evidence", "history"):
    ROUTES[f"console_{resource}"] = [overseers(f"/admin/{resource}/")]
    ROUTES[f"console_{resource}_bulk"] = [post(f"/admin/{resource}/bulk/nothing/", 302, 403, 403, 403, 404, 404)]
for resource in (
    "assignments",
    "drift",
    "people",
    "groups",
    "rules",
    "audit",
    "accounts",
    "permission-sets",
    "sandboxes",
    "sandbox-runs",
    "evidence",
):
    ROUTES[f"console_{resource}_export"] = [overseers(f"/admin/{resource}/export/csv/"), overseers(f"/admin/{resource}/export/pdf/", 404)]
for resource in ("evidence", "account-pool", "leases", "stand-ins", "tokens", "approvals", "relationships", "scopes"):
    ROUTES[f"console_{resource}_export"] = [overseers(f"/admin/{resource}/export/json/")]
ROUTES["console_requests_export"] = [readers("/admin/requests/export/csv/"), overseers("/admin/requests/export/json/?pattern=active")]
# Without evidence in the settings; with it: tests/console/test_evidence.py.
ROUTES |= {
    "console_history_detail": [get("/admin/history/nothing/", 302, 403, 403, 404, 404, 404)],
    "console_history_history": [get("/admin/history/nothing/history/", 302, 403, 403, 404, 404, 404)],
    "console_history_operate": [post("/admin/history/nothing/do/nothing/", 302, 403, 403, 404, 404, 404)],
    "console_former-people_export": [
        overseers("/admin/former-people/export/csv/", 400),
        overseers("/admin/former-people/export/csv/?q=nobody@example.com"),
    ],
    "console_history_export": [
        overseers("/admin/history/export/csv/", 400),
        overseers("/admin/history/export/csv/?q=payments-dev&kind=account", 503),
    ],
    "console_evidence_detail": [get("/admin/evidence/2026-03-02/", 302, 403, 403, 403, 404, 404)],
    "console_evidence_history": [get("/admin/evidence/2026-03-02/history/", 302, 403, 403, 403, 404, 404)],
    "console_evidence_operate": [post("/admin/evidence/2026-03-02/do/nothing/", 302, 403, 403, 403, 404, 404)],
    "console_evidence_file": [get("/admin/evidence/2026-03-02/files/events/", 302, 403, 403, 403, 404, 404)],
}
# The API knows tokens alone, so people are nobody there, signed in or not; with tokens: tests/test_routes_api.py.
ROUTES |= {
    "api:openapi": [everybody("/v1/openapi.json"), post("/v1/openapi.json", *(405,) * 6)],
    "api:docs": [everybody("/v1/docs"), post("/v1/docs", *(405,) * 6)],
    "api:unknown": [everybody("/v1/", 404), everybody("/v1/nothing/at/all", 404), post("/v1/nothing", *(404,) * 6)],
    "api:allocate": [post("/v1/allocate", *(401,) * 6), everybody("/v1/allocate", 405)],
    "api:mark_for_deletion": [post("/v1/sandboxes/some/mark-for-deletion", *(401,) * 6)],
    "api:get_sandbox": [everybody("/v1/sandboxes/some", 401)],
    "api:list_sandboxes": [everybody("/v1/admin/sandboxes?status=available", 401)],
    "api:get_stats": [everybody("/v1/admin/stats", 401)],
    "api:order_sync": [post("/v1/admin/sync", *(401,) * 6)],
    "api:order_cleanup": [post("/v1/admin/cleanup", *(401,) * 6)],
    "api:who_had": [everybody("/v1/history/who-had", 401)],
    "api:what_had": [everybody("/v1/history/what-had", 401)],
    "api:get_job": [everybody("/v1/admin/jobs/some", 401)],
    "api:restore_sandbox": [post("/v1/admin/sandboxes/some/restore", *(401,) * 6)],
    "api:quarantine_sandbox": [post("/v1/admin/sandboxes/some/quarantine", *(401,) * 6, reason="Broken")],
}
for verb in ("batch", "chain", "check", "count", "extend", "get", "grant", "policy", "revoke"):
    ROUTES[f"api:{verb}"] = [post(f"/v1/authz/{verb}", *(401,) * 6), everybody(f"/v1/authz/{verb}", 405)]
LEASE = "3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11"
ROUTES |= {
    "api:request_lease": [post("/v1/leases", *(401,) * 6)],
    "api:list_leases": [everybody("/v1/leases?person=alice@example.com", 401)],
    "api:get_lease": [everybody(f"/v1/leases/{LEASE}", 401)],
    "api:give_back_lease": [post(f"/v1/leases/{LEASE}/give-back", *(401,) * 6), everybody(f"/v1/leases/{LEASE}/give-back", 405)],
    "api:list_accounts": [everybody("/v1/admin/accounts", 401)],
    "api:get_account": [everybody("/v1/admin/accounts/111111111111", 401)],
    "api:order_cleaning": [post("/v1/admin/accounts-cleaning", *(401,) * 6)],
    "api:list_held_leases": [everybody("/v1/admin/leases", 401)],
}
for verb in ("restore", "retire", "quarantine"):
    ROUTES[f"api:{verb}_account"] = [post(f"/v1/admin/accounts/111111111111/{verb}", *(401,) * 6)]
for verb in ("freeze", "unfreeze"):
    ROUTES[f"api:{verb}_lease"] = [post(f"/v1/admin/leases/{LEASE}/{verb}", *(401,) * 6)]
ROUTES["api:list_records"] = [post("/v1/authz/list", *(401,) * 6), everybody("/v1/authz/list", 405)]
# The framework's own pages inside the admin site.
ROUTES |= {
    "admin:index": [readers("/admin/")],
    "admin:login": [everybody("/admin/login/", 302)],
    "admin:logout": [readers("/admin/logout/", 302), post("/admin/logout/", 302, 403, 403, 302, 302, 302)],
    "admin:password_change": [readers("/admin/password_change/", 404)],
    "admin:password_change_done": [readers("/admin/password_change/done/", 404)],
    "admin:autocomplete": [readers("/admin/autocomplete/", 403)],
    "admin:jsi18n": [readers("/admin/jsi18n/")],
    "admin:view_on_site": [readers("/admin/r/1/1/", 404)],
    "admin:app_list": [get("/admin/auth/", 302, 403, 403, 404, 200, 200)],
    "admin:": [readers("/admin/nothing/", 404)],
}
for model in ("auth/user", "sessions/session", "django_q/schedule", "django_q/success", "django_q/failure", "django_q/ormq"):
    name = f"admin:{model.replace('/', '_')}"
    found = 200 if model == "auth/user" else 302
    ROUTES[f"{name}_changelist"] = [overseers(f"/admin/{model}/")]
    ROUTES[f"{name}_add"] = [readers(f"/admin/{model}/add/", 403)]
    ROUTES[f"{name}_delete"] = [readers(f"/admin/{model}/{{user}}/delete/", 403)]
    ROUTES[f"{name}_change"] = [overseers(f"/admin/{model}/{{user}}/change/", found)]
    # Without a record of that key the framework leads back to the index.
    ROUTES[f"{name}_history"] = [
        overseers(f"/admin/{model}/{{user}}/history/") if found == 200 else readers(f"/admin/{model}/1/history/", 302)
    ]
    ROUTES[f"admin:{model}/"] = [readers(f"/admin/{model}/{{user}}/", 302)]

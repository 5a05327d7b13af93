"""What the demo's cloud consists of: pure plans, the same at every call, of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice, product


@dataclass(frozen=True, slots=True)
class PlannedAccount:
    """``path`` is the organizational unit, from the root; a name is used once."""

    name: str
    path: str
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class PlannedPermissionSet:
    """``session`` is the longest console session, an ISO 8601 duration."""

    name: str
    description: str
    session: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Somebody of the demo company who cannot sign in here. ``group`` is a path, or empty."""

    email: str
    name: str
    group: str


# Path, environment, team, cost centre, names.
_NAMED = (
    ("/Workloads/Dev", "dev", "payments", "cc-1010", "payments-dev payments-ledger-dev payments-cards-dev"),
    ("/Workloads/Dev", "dev", "web", "cc-1020", "storefront-dev checkout-dev search-dev"),
    ("/Workloads/Dev", "dev", "mobile", "cc-1030", "mobile-api-dev push-dev"),
    ("/Workloads/Dev", "dev", "support", "cc-3010", "helpdesk-dev"),
    ("/Workloads/Dev", "dev", "analytics", "cc-2010", "analytics-dev"),
    ("/Workloads/Staging", "staging", "payments", "cc-1010", "payments-staging payments-cards-staging"),
    ("/Workloads/Staging", "staging", "web", "cc-1020", "storefront-staging checkout-staging"),
    ("/Workloads/Staging", "staging", "mobile", "cc-1030", "mobile-api-staging"),
    ("/Workloads/Prod/Payments", "prod", "payments", "cc-1010", "payments-prod payments-ledger-prod payments-reconciliation-prod"),
    ("/Workloads/Prod/Payments/Cards", "prod", "payments", "cc-1011", "payments-cards-prod payments-tokens-prod"),
    ("/Workloads/Prod/Payments/Cards/PCI", "prod", "payments", "cc-1011", "payments-pci-vault-prod"),
    ("/Workloads/Prod/Retail", "prod", "web", "cc-1020", "storefront-prod checkout-prod search-prod"),
    ("/Workloads/Prod/Retail/EU", "prod", "web", "cc-1020", "storefront-eu-prod"),
    ("/Workloads/Prod/Retail/US", "prod", "web", "cc-1020", "storefront-us-prod"),
    ("/Workloads/Prod/Mobile", "prod", "mobile", "cc-1030", "mobile-api-prod push-prod"),
    ("/Workloads/Prod/Data", "prod", "analytics", "cc-2010", "data-lake-prod reporting-prod"),
    ("/Workloads/Prod/Data/Warehouse", "prod", "analytics", "cc-2010", "warehouse-prod warehouse-loads-prod"),
    ("/Workloads/Prod/Support", "prod", "support", "cc-3010", "helpdesk-prod"),
    ("/Workloads/Prod/Finance", "prod", "finance", "cc-4010", "billing-prod invoicing-prod"),
    ("/Security", "prod", "security", "cc-9010", "security-audit security-tooling"),
    ("/Security/Logs", "prod", "security", "cc-9010", "log-archive flow-logs"),
    ("/Security/Response", "prod", "security", "cc-9010", "forensics quarantine"),
    ("/Infrastructure/Network", "prod", "platform", "cc-5010", "network-hub network-dns network-egress"),
    ("/Infrastructure/Shared", "prod", "platform", "cc-5010", "shared-services artifact-registry monitoring"),
    ("/Infrastructure/Shared/Delivery", "prod", "platform", "cc-5010", "ci-runners deploy-tools"),
    ("/Infrastructure/Backup", "prod", "platform", "cc-5010", "backup-vault backup-restore-tests"),
    ("/Sandbox/Engineering", "sandbox", "platform", "cc-6010", "sandbox-platform sandbox-payments sandbox-web sandbox-mobile"),
    ("/Sandbox/Data", "sandbox", "analytics", "cc-6010", "sandbox-analytics sandbox-models"),
    ("/Sandbox/Workshops", "sandbox", "support", "cc-6010", "sandbox-workshop-1 sandbox-workshop-2 sandbox-workshop-3"),
)
_DATA_TAGS = {"analytics": "analytics", "data-lake": "analytics", "reporting": "analytics", "warehouse": "warehouse"}
_DIVISIONS = ("Retail", "Logistics", "Lending", "Insurance", "Travel", "Media", "Energy", "Health")
_SERVICES = (
    "orders",
    "pricing",
    "catalogue",
    "fraud",
    "billing",
    "identity",
    "search",
    "routing",
    "reports",
    "messages",
    "claims",
    "quotes",
)
_PLACES = {"Dev": "dev", "Staging": "staging", "Prod": "prod"}

_NAMED_SETS = (
    PlannedPermissionSet("AdministratorAccess", "Everything, without limits. For emergencies and sandboxes.", "PT1H"),
    PlannedPermissionSet("PowerUserAccess", "Everything but users, roles and the organization.", "PT4H"),
    PlannedPermissionSet("ReadOnlyAccess", "See every resource and most contents, change nothing.", "PT8H"),
    PlannedPermissionSet("ViewOnlyAccess", "See that resources exist, without their contents.", "PT12H"),
    PlannedPermissionSet("SecurityAudit", "Read the configuration that matters to security.", "PT8H"),
    PlannedPermissionSet("Billing", "Costs, budgets and invoices.", "PT8H"),
    PlannedPermissionSet("DatabaseAdministrator", "Set up and repair databases, with their contents.", "PT2H"),
    PlannedPermissionSet("NetworkAdministrator", "Networks, routes, gateways and firewalls.", "PT2H"),
    PlannedPermissionSet("SystemAdministrator", "Servers, storage and their monitoring.", "PT4H"),
    PlannedPermissionSet("DataScientist", "Query and model data; no change to what holds it.", "PT8H"),
    PlannedPermissionSet("SupportUser", "Open and follow support cases.", "PT8H"),
    PlannedPermissionSet("DeploymentOperator", "Start, stop and roll back deployments.", "PT1H"),
)
_ROLES = ("Reader", "Operator", "Developer", "Analyst", "OnCall")

_NEIGHBOURS = (
    ("Noor Nazari", "/engineering/payments"),
    ("Pavel Petrov", "/engineering/payments"),
    ("Quinn Quigley", "/engineering/payments"),
    ("Rami Rahal", "/engineering/platform"),
    ("Tomas Tran", "/engineering/platform"),
    ("Uma Usman", "/engineering/platform"),
    ("Xenia Xavier", "/engineering/web"),
    ("Vera Vogel", "/engineering/web"),
    ("Wim Wouters", "/engineering/web"),
    ("Yara Young", "/engineering/mobile"),
    ("Zack Zhou", "/engineering/mobile"),
    ("Clara Chen", "/data/analytics"),
    ("Dmitri Dahl", "/data/analytics"),
    ("Emil Eder", "/data"),
    ("Farah Fasola", "/security"),
    ("Greta Graf", "/finance"),
    ("Hugo Haas", "/finance"),
    ("Iker Ibarra", "/support"),
    ("Jonas Jung", "/support"),
    ("Kaya Kaplan", "/contractors"),
)


def plan_accounts(number: int) -> tuple[PlannedAccount, ...]:
    """The first ``number`` accounts: the named ones of the demo, then as many more as it takes, in a deep tree."""
    return tuple(islice(_accounts(), number))


def plan_permission_sets(number: int) -> tuple[PlannedPermissionSet, ...]:
    """The first ``number`` permission sets: the named ones of the demo, then one for each service and role."""
    return tuple(islice(_permission_sets(), number))


def neighbours() -> tuple[Neighbour, ...]:
    """Some people of Identity Center whom the portal's directory does not have."""
    return tuple(Neighbour(f"{name.partition(' ')[0].lower()}@example.com", name, group) for name, group in _NEIGHBOURS)


def _accounts() -> Iterator[PlannedAccount]:
    for path, environment, team, cost_centre, names in _NAMED:
        for name in names.split():
            tags = {"env": environment, "team": team, "cost-centre": cost_centre}
            data = next((value for start, value in _DATA_TAGS.items() if name.startswith(start)), None)
            yield PlannedAccount(name, path, tags | ({"data": data} if data else {}))
    for round_ in count(1):
        for (number, division), service, (place, environment) in product(enumerate(_DIVISIONS), _SERVICES, _PLACES.items()):
            path = f"/Workloads/{place}/{division}/{service.capitalize()}"
            tags = {"env": environment, "team": f"{division.lower()}-{service}", "cost-centre": f"cc-{7010 + number}"}
            yield PlannedAccount(f"{division.lower()}-{service}-{environment}-{round_:02d}", path, tags)


def _permission_sets() -> Iterator[PlannedPermissionSet]:
    yield from _NAMED_SETS
    for round_ in count(1):
        for division, service, role in product(_DIVISIONS, _SERVICES, _ROLES):
            suffix = "" if round_ == 1 else str(round_)
            # AWS takes at most 32 characters.
            name = f"{division}{service.capitalize()}{role}{suffix}"
            yield PlannedPermissionSet(name, f"{role} for the {service} service of {division}.", f"PT{1 + len(name) % 12}H")

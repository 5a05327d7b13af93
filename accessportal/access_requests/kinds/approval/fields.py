"""What the form for an approval asks, and what its pages say."""

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.records import SCOPE, has_rules

FIELDS = Fields(
    name="Approval",
    about="An action on a resource of a service, within a tenant or an environment. Services ask the portal whether you may.",
    icon="badge-check",
    heading="Ask for an approval",
    target=(
        SCOPE,
        Field(
            name="resource",
            label="Resource",
            missing="Name the resource, as its service calls it.",
            placeholder="https://api.example.com/data",
            about="the resource, as its service calls it",
            metavar="NAME",
        ),
        Field(
            name="action",
            label="Action",
            missing="Name the action, as the service calls it.",
            placeholder="GET",
            about="the action, like GET",
            metavar="NAME",
        ),
    ),
    hint="Name scope, resource and action to see who decides, and how long it may last.",
    lengths=("1h", "8h", "1d", "7d"),
    usual="1h",
    place="the table of approvals",
    is_offered=has_rules("approval"),
    thing="approval",
    giver="an operator or a program",
)

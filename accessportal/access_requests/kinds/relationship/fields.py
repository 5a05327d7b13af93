"""What the form for a relationship asks, and what its pages say."""

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.records import SCOPE, has_rules
from accessportal.authz.states import RelationType

_TYPES = tuple(
    (one.value, f"{one.value.capitalize()}, which carries on to what the object stands in" if one.carries else one.value.capitalize())
    for one in RelationType
)

FIELDS = Fields(
    name="Relationship",
    about="A relation to an object, like editor of a document, within a tenant or an environment.",
    icon="waypoints",
    heading="Ask for a relationship",
    target=(
        SCOPE,
        Field(
            name="relation",
            label="Relation",
            missing="Name the relation, like editor.",
            placeholder="editor",
            about="the relation, like editor",
            metavar="NAME",
        ),
        Field(
            name="object",
            label="Object",
            missing="Name the object, as its service calls it.",
            placeholder="document-123",
            about="the object, as its service calls it",
            metavar="NAME",
        ),
        Field(
            name="relation_type",
            label="Type",
            choices=lambda actor, book, now: _TYPES,
            wrong="Choose one of the types of the list.",
            about=f"its type: {', '.join(RelationType)} (default: role)",
            metavar="TYPE",
        ),
    ),
    hint="Name scope, relation and object to see who decides, and how long it may last.",
    lengths=("1h", "8h", "1d", "7d"),
    usual="8h",
    place="the table of relationships",
    is_offered=has_rules("relationship"),
    thing="relationship",
    giver="an operator or a program",
)

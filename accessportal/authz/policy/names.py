"""What identities, resources, actions, subjects, relations and objects may be called."""

from __future__ import annotations

from collections.abc import Mapping

from accessportal.authz.states import LONGEST_METADATA, LONGEST_NAME, MOST_METADATA, Names
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import clean_text
from accessportal.store.keys import join_key

# DynamoDB's limits: the two later names are a range key (1,024 bytes), the first is with its scope one of an index, and all of them name
# a chain in the audit log (2,048).
_LONGEST_FIRST_BYTES = 700
_LONGEST_OTHERS_BYTES = 1_024


def check_names(names: Names, fields: tuple[str, str, str]) -> Names:
    """The names in one spelling.

    :raises InvalidRequest: naming the field: for one that is empty, too long, or can't be shown.
    """
    first, second, third = (check_name(name, field) for name, field in zip(names, fields, strict=True))
    limits = ((fields[0], join_key(first), _LONGEST_FIRST_BYTES), (fields[2], join_key(second, third), _LONGEST_OTHERS_BYTES))
    for field, key, longest in limits:
        if len(key) > longest:
            message = "These names are too long together: their letters beyond ASCII count for several. Shorten them."
            raise InvalidRequest(message, code="names_too_long", field=field)
    return first, second, third


def check_name(name: str, field: str) -> str:
    """One of the names in one spelling.

    :raises InvalidRequest: for one that is empty, too long, or can't be shown.
    """
    clean = clean_text(name, field=field, name=field.capitalize(), longest=LONGEST_NAME)
    if not clean:
        raise InvalidRequest(f"{field.capitalize()} is missing: give 1 to {LONGEST_NAME} characters.", code=f"{field}_missing", field=field)
    if clean != name:
        message = f"{field.capitalize()} has blanks around it, or letters that are written in another way (Unicode NFC). Send “{clean}”."
        raise InvalidRequest(message, code=f"{field}_not_clean", field=field)
    return clean


def check_metadata(metadata: Mapping[str, str]) -> None:
    """:raises InvalidRequest: for too many entries, one without a name, or one that is too long or can't be shown."""
    if len(metadata) > MOST_METADATA:
        message = f"metadata has {len(metadata):,} entries; {MOST_METADATA} is the most. Leave some out."
        raise InvalidRequest(message, code="metadata_too_many", field="metadata")
    for name, value in metadata.items():
        if not clean_text(name, field="metadata", name="A name in metadata", longest=LONGEST_METADATA):
            raise InvalidRequest("An entry in metadata has no name. Name it.", code="metadata_unnamed", field="metadata")
        clean_text(value, field="metadata", name="A value in metadata", longest=LONGEST_METADATA)

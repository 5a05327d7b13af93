"""What the form for a door asks, and what its pages say."""

from __future__ import annotations

from accessportal.access_requests.kind import Field, Fields

FIELDS = Fields(
    name="Door",
    about="A door of the building, for hours.",
    icon="key",
    heading="Ask for a door",
    target=(
        Field(name="door", label="Door", missing="Name a door.", placeholder="lab-1", about="the door", metavar="NAME"),
        Field(
            name="hours",
            label="Hours",
            missing="Choose day or night.",
            choices=lambda actor, book, now: (("day", "By day"), ("night", "By night")),
            wrong="Choose day or night.",
            about="day or night",
            metavar="HOURS",
        ),
    ),
    hint="Name a door to see who decides.",
    lengths=("1h", "8h"),
    usual="1h",
    place="the door’s list",
    receipt="Badge",
    thing="door",
    extending="Keep the door open longer",
)

"""The only users of the AccessManagement item class: people, groups and memberships in and out, as records."""

"""The items of SandboxPool. Only this room's ``store`` knows them; each module is one kind of item."""

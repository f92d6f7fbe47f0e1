"""Agent libraries, each in a module of its own that imports it; none is imported here."""

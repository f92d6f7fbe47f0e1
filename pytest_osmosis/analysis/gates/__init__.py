"""From the text of a gate to its result; pure."""

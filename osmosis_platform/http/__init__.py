"""How requests come in: size, token, identity, body; and how errors go out."""

"""Users, workspaces, members, and the tokens by which they are known."""

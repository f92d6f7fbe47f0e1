"""Import, wrap and call what the user wrote: agents, graders, eval functions, hooks."""

"""Agent loops, workflows and graders, and what they are run with."""

"""The rollout's vocabulary: wire schemas, errors, results, context and base class."""

"""The process that reports: it collects results, evaluates gates, keeps budgets, shows progress."""

"""The process that reports: it collects results, evaluates gates, shows progress."""

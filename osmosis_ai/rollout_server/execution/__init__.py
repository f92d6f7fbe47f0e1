"""Running a rollout for a trainer, in worker threads and within its time."""

"""The pages that a browser shows: to log in, and to confirm a device."""

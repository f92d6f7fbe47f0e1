"""`osmosis eval view`: reports and kept evaluations as pages, served on this machine."""

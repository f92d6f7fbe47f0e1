"""The HTML report: `--osmosis-html`; the pages of `osmosis eval view` too."""

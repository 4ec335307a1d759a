"""Pages to read in a browser: self-contained, without a network, without a framework."""

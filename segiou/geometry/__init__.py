"""The same ratio on other sets."""

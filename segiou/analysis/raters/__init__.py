"""Agreement of raters, and of a model with them."""

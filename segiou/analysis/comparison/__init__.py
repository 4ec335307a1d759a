"""Two or more models on the same images: differences, rankings, several trainings."""

"""The ``segiou`` command: the one place that prints and exits."""

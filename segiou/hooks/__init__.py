"""Thin adapters for training frameworks that follow each framework's conventions.

Import the module of your framework: ``segiou.hooks.torchmetrics``,
``lightning``, ``huggingface``, ``accelerate``, ``keras``, ``ignite``,
``mmengine``, ``jax``, ``flax``, or ``distributed`` for plain PyTorch. ``evaluate`` needs
no framework. Each module imports only its own framework and
raises an ImportError that names the missing extra.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)

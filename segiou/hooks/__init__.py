"""Adapters for training frameworks: thin, each in its framework's own conventions.

Import the module of your framework: ``segiou.hooks.torchmetrics``,
``lightning``, ``huggingface``, ``accelerate``, ``keras``, ``ignite``,
``mmengine``, ``jax``, or ``distributed`` for plain PyTorch. ``evaluate`` and
``images`` need no framework. Only the module that is used imports its
framework; its absence is an ImportError that names the extra.
"""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)

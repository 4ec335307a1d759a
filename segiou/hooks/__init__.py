"""Adapters for training frameworks: thin, each in its framework's own conventions.

Import the module of your framework: ``segiou.hooks.torchmetrics``,
``lightning``, ``huggingface``, ``accelerate``, ``keras``, ``ignite``,
``mmengine``, ``jax``, or ``distributed`` for plain PyTorch. Only that module
imports its framework; its absence is an ImportError that names the extra.
"""

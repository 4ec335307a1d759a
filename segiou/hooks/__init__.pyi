from segiou.hooks import (
    accelerate as accelerate,
    distributed as distributed,
    evaluate as evaluate,
    flax as flax,
    hook_options as hook_options,
    huggingface as huggingface,
    ignite as ignite,
    jax as jax,
    keras as keras,
    lightning as lightning,
    mmengine as mmengine,
    torchmetrics as torchmetrics,
)

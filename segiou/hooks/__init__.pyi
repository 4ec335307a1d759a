from segiou.hooks import (
    accelerate as accelerate,
    distributed as distributed,
    evaluate as evaluate,
    huggingface as huggingface,
    ignite as ignite,
    images as images,
    jax as jax,
    keras as keras,
    lightning as lightning,
    mmengine as mmengine,
    options as options,
    torchmetrics as torchmetrics,
)

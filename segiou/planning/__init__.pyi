from segiou.planning.sizes import (
    SampleSize as SampleSize,
    SampleSizes as SampleSizes,
    sample_sizes as sample_sizes,
)

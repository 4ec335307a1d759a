from segiou.maps.estimates import (
    Estimate as Estimate,
    MapAccuracy as MapAccuracy,
    SampleSize as SampleSize,
    map_accuracy as map_accuracy,
    sample_size as sample_size,
)

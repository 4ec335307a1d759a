from segiou.maps.estimates import (
    Estimate as Estimate,
    MapAccuracy as MapAccuracy,
    map_accuracy as map_accuracy,
)
from segiou.maps.planning import SampleSize as SampleSize, sample_size as sample_size

from segiou.maps.estimates import map_accuracy as map_accuracy
from segiou.maps.planning import SampleSize as SampleSize, sample_size as sample_size
from segiou.maps.result import Estimate as Estimate, MapAccuracy as MapAccuracy

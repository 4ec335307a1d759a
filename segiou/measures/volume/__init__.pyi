from segiou.measures.volume.agreement import Agreement as Agreement, bland_altman as bland_altman
from segiou.measures.volume.measure import VolumeOptions as VolumeOptions

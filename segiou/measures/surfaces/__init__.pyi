from segiou.measures.surfaces.arrays import (
    measure_surfaces as measure_surfaces,
    surface_scores as surface_scores,
)
from segiou.measures.surfaces.options import SurfaceOptions as SurfaceOptions
from segiou.measures.surfaces.plan import SurfacePlan as SurfacePlan
from segiou.measures.surfaces.rows import SurfaceRows as SurfaceRows

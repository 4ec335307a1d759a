from segiou.measures.surfaces.arrays import surface_scores as surface_scores
from segiou.measures.surfaces.measuring import measure_surfaces as measure_surfaces
from segiou.measures.surfaces.options import SurfaceOptions as SurfaceOptions
from segiou.measures.surfaces.plan import SurfacePlan as SurfacePlan
from segiou.measures.surfaces.rows import SurfaceRows as SurfaceRows

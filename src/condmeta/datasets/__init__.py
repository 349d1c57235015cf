"""Real data sets, as `TaskSet`s: one is bundled, some are in other packages, two are downloaded.

- `load_flights` reads a sample of flights that is part of condmeta (CC0); it needs nothing else.
- `load_planes`, `load_wages`, `load_hsb82`, `load_exam` and `load_growth` read files of other
  packages. If a package is not installed, the error names the ``pip install``.
- `load_lenk` and `load_schools`, the data of the paper, have no licence, so no package contains
  them. They look for a file in this order: ``path=``; the flat folder named by the environment
  variable ``CONDMETA_DATA``, which is never written to; the user's cache. If there is none, they
  download it into the cache (``pip install "condmeta[data]"``).
"""

from condmeta.datasets.flights import load_flights, load_planes
from condmeta.datasets.lenk import load_lenk
from condmeta.datasets.pupils import load_exam, load_growth, load_hsb82
from condmeta.datasets.schools import load_schools
from condmeta.datasets.wages import load_wages

__all__ = ["load_exam", "load_flights", "load_growth", "load_hsb82", "load_lenk", "load_planes"]
__all__ += ["load_schools", "load_wages"]

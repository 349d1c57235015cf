"""The real data sets of the paper, as `TaskSet`s: found on disk, or downloaded once and checked.

They carry no licence, so the package does not contain them. `load_lenk` and `load_schools` look
for a file in this order: ``path=``; the flat folder named by the environment variable
``CONDMETA_DATA``, which is never written to; the user's cache; and if it is nowhere they download
it into the cache (``pip install "condmeta[data]"``).
"""

from condmeta.datasets.lenk import load_lenk
from condmeta.datasets.schools import load_schools

__all__ = ["load_lenk", "load_schools"]

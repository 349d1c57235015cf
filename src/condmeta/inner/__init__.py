"""Inner algorithms A(theta, Z): the weight vector of a task, from its start theta and points Z."""

from condmeta.inner.batch import batch
from condmeta.inner.online import online

__all__ = ["batch", "online"]

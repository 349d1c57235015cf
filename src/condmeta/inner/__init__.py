"""Inner algorithms A(theta, Z): from where a task starts to the task's weight vector."""

from condmeta.inner.batch import batch
from condmeta.inner.online import online

__all__ = ["batch", "online"]

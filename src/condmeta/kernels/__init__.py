"""Kernels: they measure how similar two tasks are, in place of a feature map.

A kernel has `gram(A, B)`, which returns the values k(a, b) of two lists of tasks, (len(A), len(B)).
Kernels on coordinates read arrays (T, p). Kernels on sets have ``reads_points = True`` and read
`PointSets`: sets of points, of any size.
"""

from condmeta.kernels.choose import check_kernel, get_kernel
from condmeta.kernels.own import FunctionKernel, GramRows, PrecomputedKernel
from condmeta.kernels.set_kernels import AbelKernel, MeanEmbedding, PointSets
from condmeta.kernels.table_kernels import GaussianKernel, LaplaceKernel, LinearKernel

__all__ = ["AbelKernel", "FunctionKernel", "GaussianKernel", "GramRows", "LaplaceKernel"]
__all__ += ["LinearKernel", "MeanEmbedding", "PointSets", "PrecomputedKernel"]
__all__ += ["check_kernel", "get_kernel"]

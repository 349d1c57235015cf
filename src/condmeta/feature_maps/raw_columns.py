"""The raw column of the side table that a feature comes from."""

from condmeta.feature_maps.composed import ComposedMap
from condmeta.feature_maps.point_maps import MeanInput
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.feature_maps.table_maps import Identity


def raw_columns(fmap: ComposedMap) -> list[str]:
    """Return the source column of each of the k features of a fitted map.

    "auto", `Identity` and `MeanInput` know the column of each feature. All features of any other
    map have one source: the side column if there is only one, else the name of the map.

    Examples
    --------
    >>> from condmeta import TaskTable
    >>> table = TaskTable({"size": [1.0, 3.0], "city": ["Rome", "Bonn"]}, ids=["a", "b"])
    >>> raw_columns(ComposedMap("auto").fit(table))
    ['size', 'city', 'city']
    """
    sources: list[str] = []
    for part, kind, width in zip(fmap.parts_, fmap.input_kinds_, fmap.widths_, strict=True):
        if isinstance(part, TableEncoder):
            sources += part.sources_out()
        elif isinstance(part, Identity | MeanInput):
            sources += fmap.names_out_[len(sources) : len(sources) + width]
        else:
            columns = fmap.columns_ if kind != "points" else None
            alone = columns is not None and len(columns) == 1
            sources += [columns[0] if alone else type(part).__name__] * width
    return sources

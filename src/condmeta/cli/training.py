"""The tables of a command that learns: read by its options, and which column is what."""

from __future__ import annotations

from typing import Any


def without_order(params: dict) -> dict:
    """Return the options with what rows are ordered by as no feature, unless it is named as one."""
    order = params["order"]
    if order is None or order in (params["features"] or []):
        return params
    return params | {"exclude": [*(params["exclude"] or []), order]}


def in_order(table: Any, order: str | None) -> Any:
    """Return the rows of a table by a column, or as they are."""
    from condmeta.files import check_order
    from condmeta.tasks.frames import require_columns

    if order is None:
        return table
    require_columns(table, [order], "order")
    check_order(table.column(order), order)
    return table.sort_by(order)  # stable: rows of one time keep their order


def read_training(path: str, csv: Any, params: dict) -> tuple[Any, Any, dict]:
    """Return the table of all tasks, the side table or None, and the options of the former."""
    from condmeta.files import check_columns, read_table
    from condmeta.tasks.frames import require_columns

    table = read_table(path, text=[*params["task"], *params["text"]], csv=csv)
    require_columns(table, params["task"], "task")
    require_columns(table, [params["target"]], "target")
    side, side_columns = read_training_side(csv, params)
    own = options_of(table, side_columns, params)
    require_columns(table, own["exclude"], "exclude")
    check_columns(table, used_columns(table, own), params["text"], params["target"])
    return table, side, own


def options_of(table: Any, side_columns: list[str], params: dict) -> dict:
    """Return the options without what --exclude leaves out of the side table alone."""
    own = [n for n in params["exclude"] or [] if n in table.column_names or n not in side_columns]
    return params | {"exclude": own}


def read_training_side(csv: Any, params: dict) -> tuple[Any, list[str]]:
    """Return the key and the columns to use of the side table, or None; and all its columns."""
    from condmeta.files import check_columns, read_table
    from condmeta.tasks.frames import require_columns

    path = params["side_table"]
    if path is None:
        return None, []
    keys = params["side_key"] or params["task"]
    table = read_table(path, text=[*keys, *params["text"]], csv=csv)
    away = {*keys, *(params["exclude"] or [])}
    used = params["side"] or [name for name in table.column_names if name not in away]
    require_columns(table, [*keys, *used], "side table")
    check_columns(table, used, params["text"])
    return table.select(list(dict.fromkeys([*keys, *used]))), table.column_names


def used_columns(table: Any, params: dict) -> list[str]:
    """Return the columns of a table that the model would read as features, side or target."""
    away = {*params["task"], *(params["exclude"] or [])}
    wanted = params["features"]
    if wanted is not None:
        side = params["side"] if params["side_table"] is None else None
        wanted = {*wanted, *(side or []), params["target"]}
    names = table.column_names
    return [n for n in names if n not in away and (wanted is None or n in wanted)]


def table_model(params: dict, learner: Any = None, **more: Any) -> Any:
    """Return a model with the columns of the options, not yet fitted."""
    import condmeta

    return condmeta.TableModel(
        learner, task=params["task"], target=params["target"], features=params["features"],
        exclude=params["exclude"] or [], side=params["side"], side_key=params["side_key"],
        missing=params["missing"], **more,
    )  # fmt: skip

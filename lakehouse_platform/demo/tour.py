"""The tour, chapter by chapter: import, assets, changes, maintenance, questions, time travel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from lakehouse_platform.defs.once import refresh_tables
from lakehouse_platform.demo.inputs import Inputs, write_inputs
from lakehouse_platform.demo.show import Show, size
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.model.times import to_rfc3339
from lakehouse_platform.services.files import FileForm, FileOptions, FileResult, append_file, create_from_file
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.upkeep.policy import Task

_TRIPS = (
    "trip_id:Int64,started_at:Timestamp not null,seconds:Int32,start_station:String not null,end_station:String,"
    "rider_id:Int64,bike:String,distance_km:Float64,fare:Float64"
)
_EVENING = "started_at >= '2026-08-01T19:00:00Z'"
_TEST_RIDES = "seconds < 60 AND start_station = end_station"
_TRY_THIS = "SELECT bike, count(*) AS trips, avg(distance_km) AS km FROM data GROUP BY bike"
_QUESTIONS = {
    "Which stations are the busiest, and how far do people ride from there?": """
        SELECT s.name AS station, s.docks, count(*) AS trips, avg(t.distance_km) AS average_km
        FROM trips t JOIN stations s ON s.station_id = t.start_station
        GROUP BY s.name, s.docks ORDER BY trips DESC LIMIT 5""",
    "When do people ride? (trips a day)": """
        WITH rides AS (
            SELECT CAST(started_at AS DATE) AS day, date_part('hour', started_at) AS hour,
                   CASE WHEN date_part('dow', started_at) IN (0, 6) THEN 'weekend' ELSE 'working' END AS days
            FROM trips)
        SELECT days, count(*) FILTER (WHERE hour BETWEEN 6 AND 9) / count(DISTINCT day) AS "6 to 9",
               count(*) FILTER (WHERE hour BETWEEN 10 AND 14) / count(DISTINCT day) AS "10 to 14",
               count(*) FILTER (WHERE hour BETWEEN 15 AND 18) / count(DISTINCT day) AS "15 to 18",
               count(*) FILTER (WHERE hour >= 19) / count(DISTINCT day) AS "after 19"
        FROM rides GROUP BY days ORDER BY days DESC""",
    "Who pays? (three tables)": """
        SELECT r.plan, count(DISTINCT r.rider_id) AS riders, count(*) AS trips, sum(t.fare) AS fares,
               avg(t.seconds) / 60 AS average_minutes
        FROM trips t JOIN riders r ON r.rider_id = t.rider_id
        GROUP BY r.plan ORDER BY fares DESC""",
}


def run(directory: Path, show: Show) -> None:
    """Run the whole tour in an empty directory."""
    inputs = _input(directory, show)
    lake = _lakehouse(directory, show)
    _import(lake, inputs, show)
    _arrivals(lake, inputs, show)
    _corrections(lake, show)
    _assets(lake, directory, show)
    _maintenance(lake, show)
    _questions(lake, show)
    _time_travel(lake, show)
    _next(directory, show)


def _input(directory: Path, show: Show) -> Inputs:
    show.chapter("Input: three months of bicycle-share in a harbour town")
    home = directory / "input"
    home.mkdir()
    inputs = write_inputs(home)
    files = sorted(path for path in home.rglob("*") if path.is_file())
    show.table(["file", "size"], [[str(path), size(path.stat().st_size)] for path in files])
    return inputs


def _lakehouse(directory: Path, show: Show) -> Lakehouse:
    show.chapter("A lakehouse: a directory of Delta tables")
    config = LakehouseConfig(base_path=str(directory / "lakehouse"), z_order_columns=("start_station",))
    lake = Lakehouse.open(config, origin=Origin(door=Door.PYTHON, reason="demo"))
    show.say(f"{config.base_path} now holds the platform's own tables: {', '.join(lake.init())}.")
    return lake


def _import(lake: Lakehouse, inputs: Inputs, show: Show) -> None:
    show.chapter("Import: a file, or a pattern of files, in one commit")
    table = lake.store.table
    table("trips").create(Schema.parse(_TRIPS), primary_key=["trip_id"], description="Every ride.")
    actions: dict[str, Callable[[], FileResult]] = {
        "stations": lambda: create_from_file(
            table("stations"),
            str(inputs.stations),
            FileForm.CSV,
            FileOptions(),
            primary_key=["station_id"],
            description="Docking stations and where they stand.",
        ),
        "riders": lambda: create_from_file(
            table("riders"),
            inputs.riders,
            FileForm.PARQUET,
            FileOptions(),
            primary_key=["rider_id"],
            description="Customers and their plans.",
        ),
        "trips": lambda: append_file(table("trips"), str(inputs.trips), FileForm.CSV, FileOptions()),
    }
    rows: list[list[object]] = []
    for name, action in actions.items():
        started = perf_counter()
        imported = action()
        seconds = round(perf_counter() - started, 2)
        info = lake.store.describe(name)
        columns = ", ".join(f"{column.name} {column.type}" for column in info.columns[:3])
        rows.append([name, imported.rows, size(info.bytes), seconds, f"{columns}, …"])
    show.table(["table", "rows", "size", "seconds", "columns"], rows)
    show.say(
        "The columns of stations and riders were found in the files; those of trips were given.",
        "Station ids such as 0007 stayed text: a value never changes on its way in.",
    )


def _arrivals(lake: Lakehouse, inputs: Inputs, show: Show) -> None:
    show.chapter("A day passes: many small commits, and files that need not be opened")
    for hour in inputs.next_day:
        lake.store.append("trips", hour)
    arrived = sum(map(len, inputs.next_day))
    show.say(f"{arrived} trips of the next day arrived in {len(inputs.next_day)} appends, one commit each.")
    stats = lake.store.skipping("trips", _EVENING)
    show.say(
        f"A query for {_EVENING} opens {stats.files_read} of {stats.total_files} files: "
        f"{size(stats.bytes_scanned)} read, {size(stats.bytes_skipped)} left alone."
    )


def _corrections(lake: Lakehouse, show: Show) -> None:
    show.chapter("Corrections: a merge and a delete")
    rides = lake.store.query("trips", "seconds > 3600 AND fare > 5").to_pylist()
    merged = lake.store.merge("trips", [ride | {"fare": round(ride["fare"] / 2, 2)} for ride in rides])
    show.say(
        f"Half the fare of {merged.rows_updated} rides of more than an hour was refunded, in one commit."
    )
    deleted = lake.store.delete("trips", _TEST_RIDES)
    show.say(f"{deleted.rows_deleted} test rides were deleted: {_TEST_RIDES}.")


def _assets(lake: Lakehouse, directory: Path, show: Show) -> None:
    show.chapter("The tables as Dagster assets: materialized and checked in this process")
    home = directory / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text(_instance_settings())
    started = perf_counter()
    tables = refresh_tables(lake.config, home)
    show.table(
        ["asset", "rows", "Delta version", "size", "checks passed", "not passed"],
        [
            [
                f"lakehouse/{table.table}",
                table.rows,
                table.version,
                size(table.bytes),
                sum(table.checks.values()),
                ", ".join(name for name, passed in table.checks.items() if not passed),
            ]
            for table in tables
        ],
    )
    show.say(
        f"One run of the job refresh_tables, {perf_counter() - started:.1f} s; the run is kept in {home}."
    )


def _instance_settings() -> str:
    """Return the settings of the Dagster instance: the project's if the tour runs from its root."""
    project = Path("dagster.yaml")
    return project.read_text(encoding="utf-8") if project.is_file() else "telemetry: {enabled: false}\n"


def _maintenance(lake: Lakehouse, show: Show) -> None:
    show.chapter("Maintenance: what is due, why, and what it did")
    tasks = (Task.COMPACT, Task.CHECKPOINT, Task.Z_ORDER, Task.VACUUM)
    rows = [
        [task.value, due.table, "due" if due.is_due else "not due", due.reason]
        for task in tasks
        for due in lake.upkeep.due(task, ["stations", "trips"])
    ]
    show.table(["task", "table", "decision", "reason"], rows)
    before = lake.store.describe("trips")
    for task in (Task.COMPACT, Task.CHECKPOINT):
        show.say(lake.upkeep.run(task).summary)
    after = lake.store.describe("trips")
    show.say(f"trips: {before.files} files, {size(before.bytes)} became {after.files}, {size(after.bytes)}.")
    lake.store.z_order("trips", ["start_station", "started_at"])
    show.say("A Z-order, asked for by hand, put trips from the same station at the same time side by side.")
    kept = lake.store.vacuum("trips", dry_run=True)
    gone = lake.store.vacuum("trips", 0, dry_run=True)
    show.say(
        f"A vacuum that keeps the last {lake.config.vacuum_retention_hours} hours would delete "
        f"{kept.files_deleted} files; one that keeps no past, {gone.files_deleted} ({size(gone.bytes_deleted)}). "
        "Neither ran."
    )


def _questions(lake: Lakehouse, show: Show) -> None:
    show.chapter("Questions: SQL over all tables, read-only")
    for question, sql in _QUESTIONS.items():
        started = perf_counter()
        result = lake.store.sql(sql).to_arrow()
        show.say(f"{question}  [{(perf_counter() - started) * 1000:.0f} ms]")
        show.arrow(result)


def _time_travel(lake: Lakehouse, show: Show) -> None:
    show.chapter("Time travel: every version is still there")
    store = lake.store
    history = store.history("trips", 6)
    show.table(
        ["version", "time", "operation", "door", "reason"],
        [[v.version, to_rfc3339(v.timestamp), v.operation, v.door, v.reason] for v in history],
    )
    deletion = next(v.version for v in history if v.operation == "DELETE")
    versions = (1, deletion - 1, deletion)
    rows = [[version, store.read_version("trips", version).to_arrow().num_rows] for version in versions]
    show.table(["trips at version", "rows"], rows)
    changes = store.diff("trips", deletion - 1, deletion)
    show.say(f"From version {deletion - 1} to {deletion}, {changes.num_rows} rows changed. The first three:")
    show.arrow(
        changes.slice(0, 3).select(["_change_type", "trip_id", "seconds", "start_station", "end_station"])
    )


def _next(directory: Path, show: Show) -> None:
    show.chapter(f"Done in {show.seconds():.0f} seconds. What to open next")
    home = f'"$PWD/{directory}/dagster"' if not directory.is_absolute() else f"{directory}/dagster"
    lake = f"{directory}/lakehouse"
    show.say(
        "The assets, their figures, checks and schedules in the browser (http://127.0.0.1:3000):",
        f"    LAKEHOUSE_URI={lake} DAGSTER_HOME={home} .venv/bin/dagster dev",
        "The command line on the same lakehouse:",
        f"    .venv/bin/lakehouse --base-path {lake} tables",
        f'    .venv/bin/lakehouse query {lake}/trips "{_TRY_THIS}"',
        f"    .venv/bin/lakehouse history {lake}/trips --limit 5",
        "Python:",
        '    .venv/bin/python -c "from lakehouse_platform import DeltaStore; '
        f"print(DeltaStore('{lake}').scan('stations', limit=3).to_polars())\"",
        "The HTTP API (http://127.0.0.1:8080/docs); bootstrap makes its first user:",
        f"    .venv/bin/lakehouse --base-path {lake} users bootstrap NAME EMAIL",
        f"    .venv/bin/lakehouse --base-path {lake} serve",
        "A table as files that editors and scripts change (as root, with the system's NFS client):",
        f"    sudo .venv/bin/lakehouse mount {lake}/stations {directory}/files",
    )

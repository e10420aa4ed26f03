# SPDX-License-Identifier: MIT
"""tshare bench. No test asserts a time."""

import csv
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import tshare
from support import need, run
from tshare.bench import cli, measure, units
from tshare.bench.plot import _spread
from tshare.bench.runner import BACKENDS, HAS, READ, Results, _rows, plan

TIMES = ("median_s", "p0_s", "p99_s")

WAYS = {
    "within": [
        "memcpy",
        "a.copy()",
        "torch.tensor(a)",
        "torch.as_tensor(a)",
        "torch.from_numpy(a)",
        "torch.from_dlpack(a)",
        "x.numpy()",
        "np.from_dlpack(x)",
        "np.asarray(t), tshare *",
        "torch.from_dlpack(t), tshare *",
    ],
    "open": ["SharedMemory + np.ndarray", "tshare.open + np.asarray, *"],
    "between": [
        "pickle through a pipe",
        "SharedMemory, copied in",
        "SharedMemory, in place",
        "torch queue, copied in",
        "torch queue, in place",
        "tshare *, copied in",
        "tshare *, in place",
    ],
    "dlpack": [
        "C table: tshare *",
        "C table: tshare *, borrowed",
        "C table: PyTorch",
        "t.__dlpack__(), tshare *",
        "a.__dlpack__()",
        "x.__dlpack__()",
    ],
    "latency": [
        "pipe",
        "Unix socketpair",
        "multiprocessing.Queue",
        "torch.multiprocessing.Queue",
        "tshare *, publish() and wait()",
        "tshare *, wait(spin=0.001)",
    ],
}


def expected_rows():
    for section, labels in WAYS.items():
        for label in labels:
            for backend in BACKENDS if "*" in label else [""]:
                yield section, label.replace("*", backend)


def bench(*arguments, **environment):
    """A running benchmark."""
    return subprocess.Popen(
        [sys.executable, "-m", "tshare.bench", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TSHARE_BACKEND": tshare.backend()} | environment,
    )


def finished(process):
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def names(rows):
    return {(row["section"], row["way"]) for row in rows}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Table and CSV of the shortest complete run, and the files that it left behind."""
    path = tmp_path_factory.mktemp("bench") / "bench.csv"
    files = tmp_path_factory.mktemp("shm")
    table = finished(
        bench(
            *("--quick", "--max-size", "1K", "--time", 1, "--csv", path),
            TSHARE_SHM_DIR=str(files),
        )
    )
    return table, read(path), os.listdir(files)


@pytest.fixture
def without(tmp_path):
    """A function that returns an environment in which libraries can't be imported."""

    def hide(*modules):
        folder = tmp_path / "hidden"
        folder.mkdir()
        for module in modules:
            (folder / f"{module}.py").write_text("raise ImportError\n")
        return {"PYTHONPATH": str(folder)}

    return hide


# Results


def test_every_way_has_its_row(quick):
    table, rows, _ = quick
    assert names(rows) == set(expected_rows())
    for _, label in expected_rows():
        assert label in table


def test_a_row_has_figures_or_a_reason(quick):
    for row in quick[1]:
        if row["reason"]:
            assert not any(row[column] for column in TIMES), row
        else:
            low, middle, high = (float(row[column]) for column in ("p0_s", "median_s", "p99_s"))
            assert 0 < low <= middle <= high, row
            assert int(row["samples"]) > 0


def test_this_backend_is_measured_and_the_other_one_has_a_reason(quick):
    need("torch")
    for row in quick[1]:
        if row["backend"] and row["backend"] != tshare.backend():
            assert "TSHARE_BACKEND" in row["reason"]
        elif row["backend"]:
            assert not row["reason"], row


def test_each_end_of_a_hand_over_is_there(quick):
    rows = [row for row in quick[1] if row["way"] == "pickle through a pipe"]
    assert [(row["size_bytes"], row["until"]) for row in rows] == [("1024", HAS), ("1024", READ)]


def test_memory_is_added_only_by_a_copy(quick):
    def added(label):
        return {int(row["shared_bytes_added"]) for row in quick[1] if row["way"] == label}

    assert min(added("SharedMemory, copied in")) >= 4096
    assert max(added("SharedMemory, in place")) < 4096
    assert min(added(f"tshare {tshare.backend()}, copied in")) >= 4096
    assert max(added(f"tshare {tshare.backend()}, in place")) < 4096


def test_nothing_is_left_behind(quick):
    assert quick[2] == []


def test_ways_remove_their_names(without):
    names = run(
        """
        import tshare
        from tshare.bench.processes import Pair
        from tshare.bench.within import name_of

        pair = Pair(tshare.backend(), needs_backend=True)
        pid = pair.start().pids[0]
        pair.ask("time_within", "within", "tshare_asarray", 4096, 1)
        pair.ask("time_within", "open", "tshare_open", 4096, 1)
        pair.ask("time_within", "dlpack", "exchange_tshare", 0, 1)
        pair.ask("time_between", "TshareInPlace", 4096, 2)
        pair.ask("time_between", "TshareCopied", 4096, 2)
        pair.ask("announce", "Published", 2)
        mine = name_of(pid, "")
        print([info.name for info in tshare.list() if (info.name or "").startswith(mine)])
        pair.stop()
        """,
        env=os.environ | without("torch"),
    )
    assert names == "[]"


def test_memcpy_is_one_memcpy(quick):
    ratios = {row["ratio_to_memcpy"] for row in quick[1] if row["way"] == "memcpy"}
    assert ratios == {"1"}


def test_table_names_machine_and_versions(quick):
    table = quick[0]
    for word in ("machine", "CPU", "kernel", "NumPy", "PyTorch", "load", tshare.backend()):
        assert word in table


# Missing libraries and backends


def test_rows_of_a_missing_library_give_the_reason(without, tmp_path):
    path = tmp_path / "bench.csv"
    hidden = without("numpy", "torch")
    finished(bench("--quick", "--max-size", "16K", "--time", 300, "--csv", path, **hidden))
    rows = {row["way"]: row["reason"] for row in read(path)}
    sizes = [row["size_bytes"] for row in read(path) if row["way"] == "memcpy"]
    assert sizes == ["1024", "16384"]
    assert rows["torch.tensor(a)"] == "NumPy is not installed"
    assert rows["C table: PyTorch"] == "PyTorch is not installed"
    assert rows["pickle through a pipe"] == "NumPy is not installed"
    assert rows["memcpy"] == rows["pipe"] == rows[f"C table: tshare {tshare.backend()}"] == ""


def test_a_missing_matplotlib_is_an_error_before_anything_is_measured(without, tmp_path):
    process = bench("--plot", tmp_path / "bench.png", **without("matplotlib"))
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "--plot: needs matplotlib" in errors
    assert output == ""


# Interrupts


def interrupted(process, at):
    """Interrupt the benchmark at a line of its progress, and return its table."""
    seen = ""
    while at not in seen:
        read = os.read(process.stderr.fileno(), 4096).decode()
        assert read, seen
        seen += read
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    return output


def test_an_interrupt_leaves_what_was_measured(without, tmp_path):
    path = tmp_path / "bench.csv"
    files = tmp_path / "shm"
    files.mkdir()
    process = bench(
        "--progress", "--csv", path, TSHARE_SHM_DIR=str(files), **without("numpy", "torch")
    )
    table = interrupted(process, "1 KiB, round 2")
    rows = read(path)
    assert names(rows) == set(expected_rows())
    measured = {row["section"] for row in rows if row["median_s"]}
    assert measured == {"within", "dlpack", "latency"}
    assert "interrupted" in table
    assert os.listdir(files) == []


def test_an_interrupt_at_the_start_leaves_a_valid_file(without, tmp_path):
    path = tmp_path / "bench.csv"
    process = bench("--progress", "--csv", path, **without("numpy", "torch"))
    interrupted(process, "starting")
    rows = read(path)
    assert names(rows) == set(expected_rows())
    assert {row["reason"] for row in rows} == {"interrupted"}


# The figure


@pytest.fixture
def results():
    """Results as if each way took a nanosecond a byte."""
    made = Results(plan(True, None, None), _rows(), {}, [0.0, 0.0])
    for row in made.rows:
        for size in [0] if row.section in ("dlpack", "latency") else made.plan.sizes:
            for phase in row.phases:
                row.cell(size).samples[phase] = [1e-9 * (size or 1000), 2e-9 * (size or 1000)]
            if size:
                row.cell(size).memory = measure.Memory(size, 0, 0, size)
    return made


def draw(results, path):
    """Plot in a process of its own, since matplotlib keeps font files open."""
    need("matplotlib")
    from tshare.bench import plot

    process = multiprocessing.get_context("fork").Process(
        target=plot.save, args=(results, str(path))
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    process.close()


def test_plot_is_a_picture_with_something_in_it(results, tmp_path):
    image_module = need("PIL.Image")
    path = tmp_path / "bench.png"
    draw(results, path)
    with image_module.open(path) as image:
        assert image.format == "PNG"
        assert min(image.size) > 1000
        colours = image.convert("RGB").resize((200, 200)).getcolors(40000)
    assert len(colours) > 100


def test_plot_names_all_lines_and_its_units(results, tmp_path):
    path = tmp_path / "bench.svg"
    draw(results, path)
    texts = {"".join(element.itertext()).strip() for element in ET.parse(path).iter()}
    for section, label in expected_rows():
        assert label in texts or section == "dlpack", label
    assert {"1 µs", "4 MiB", "median time", "size of the array"} <= texts


def test_nothing_can_be_plotted(tmp_path):
    path = tmp_path / "bench.svg"
    draw(Results(plan(True, None, None), _rows(), {}, [0.0]), path)
    assert "nothing was measured" in path.read_text()


# The command line


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-size", "1"),
        ("--max-size", "1023"),
        ("--max-size", "4k"),
        ("--max-size", "-4K"),
        ("--max-size", "4KiB"),
        ("--max-size", ""),
        ("--time", "0"),
        ("--time", "-1"),
        ("--time", "nan"),
        ("--time", "inf"),
        ("--time", "soon"),
        ("--csv", ""),
        ("--csv", "/"),
        ("--csv", "/nonexistent/bench.csv"),
        ("--plot", "bench"),
        ("--plot", "bench.jpg"),
    ],
)
def test_arguments_are_checked_and_named(option, value, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.parser().parse_args([option + "=" + value])
    assert exit.value.code == 2
    said = capsys.readouterr().err
    assert option in said
    assert repr(value) in said


def test_unknown_arguments_are_rejected(capsys):
    for argument in ("--frobnicate", "4"):
        with pytest.raises(SystemExit):
            cli.parser().parse_args([argument])
        assert argument in capsys.readouterr().err


# Its parts


def test_sizes_are_a_grid_up_to_the_largest():
    assert plan(False, None, None).sizes == [1 << power for power in range(10, 31, 2)]
    assert plan(False, 5 << 10, None).sizes == [1 << 10, 4 << 10]
    assert plan(True, None, None).sizes[-1] <= 16 << 20


def test_sizes_are_read_and_written():
    assert units.parse_size("4096") == units.parse_size("4K") == 4096
    assert units.parse_size("2G") == 2 << 30
    written = [units.size(n) for n in (0, 1023, 1024, 1536, 1 << 30, -(1 << 20))]
    assert written == ["0 bytes", "1023 bytes", "1 KiB", "1.50 KiB", "1 GiB", "-1 MiB"]


def test_times_have_three_digits():
    written = [units.seconds(s) for s in (0, 9.999e-10, 1.234e-9, 12.34e-6, 0.9999, 123.4)]
    assert written == ["0 ns", "1.00 ns", "1.23 ns", "12.3 us", "1.00 s", "123 s"]


def test_percentiles_are_values_that_were_measured():
    values = list(range(100, 0, -1))
    assert [measure.percentile(values, p) for p in (0, 50, 99, 100)] == [1, 50, 99, 100]
    assert measure.percentile([7], 99) == 7


def test_installed_files_are_no_shared_memory():
    # Of more than the 64 pages that a thread may have uncounted.
    with open(os.path.realpath(sys.executable), "rb") as program:
        before = measure.memory_before()
        with mmap.mmap(program.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
            assert len(mapped[:: mmap.PAGESIZE]) > 64
            added = measure.memory_after(before)
    assert added.shared == 0
    assert added.resident > 0


def test_anonymous_shared_memory_is_counted():
    before = measure.memory_before()
    with mmap.mmap(-1, 1 << 20) as mapped:
        mapped.write(bytes(1 << 20))
        assert measure.memory_after(before).shared == 1 << 20


def test_a_measurement_is_long_enough():
    assert measure.per_call(lambda count: count * 1e-6, 1)[1] >= 2000
    assert measure.per_call(lambda count: 1.0, 1) == (1.0, 1)


def test_labels_are_spread_and_keep_their_order():
    assert _spread([0.0, 5.0], 1) == [0.0, 5.0]
    assert _spread([1.0, 1.0, 1.0], 1) == pytest.approx([0.0, 1.0, 2.0])
    places = _spread([0.0, 0.1, 0.2, 3.0, 3.1], 0.5)
    assert all(b - a >= 0.499 for a, b in zip(places, places[1:], strict=False))

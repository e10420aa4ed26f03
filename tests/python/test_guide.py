# SPDX-License-Identifier: MIT
"""What the pages for Python show works as it stands there.

Each snippet is named by its first line. One process runs all of them, on shared memory of its
own, so that the names of the pages are free. Whole programs are named by the page.
"""

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import need, version

DOCUMENTATION = Path(__file__).resolve().parents[2] / "Documentation"
PAGES = ["python.rst", "start/python.rst"]

# What a snippet takes for granted. A producer publishes for as long as the readers may need,
# and then closes the region, which ends their loops.
PUBLISH = """
import asyncio, threading, time
region = tshare.create("frames", (480, 640, 3), "uint8").region
seen = 0
def publish():
    for _ in range(100):
        globals()["region"].publish()
        time.sleep(0.01)
    globals()["region"].close()
threading.Thread(target=publish, daemon=True).start()
"""
BEFORE = {
    "import numpy as np": "",
    't = tshare.create("frames", (8, 480, 640, 3), "uint8", draft=True)': "first = 0",
    't = tshare.asarray([1, 2, 3], "numbers")': "image = x = np.ones((3, 4))",
    "t.numpy()": "t = tshare.create(None, (4, 6, 2), 'uint8'); x = np.ones((6, 2), 'uint8')",
    "import tshare.torch": "import PIL.Image",
    'model = tshare.Region.create("weights", network.state_dict())': (
        "network = torch.nn.Linear(3, 2); labels = np.arange(64)"
    ),
    'model = tshare.Region.create("model", {"params": {"dense": {"kernel": w, "bias": b}}})': """
from types import SimpleNamespace
w, b = np.zeros((2, 2)), np.zeros(2)
def unflatten_dict(flat, sep):
    assert set(flat) == {"params/dense/kernel", "params/dense/bias"}
flax = SimpleNamespace(traverse_util=SimpleNamespace(unflatten_dict=unflatten_dict))
""",
    "queue.put(np.asarray(t)[10:20])": """
import multiprocessing
queue = multiprocessing.SimpleQueue()
t = tshare.create(None, (20, 3), "uint8")
""",
    'torch.save({"epoch": 3, "w": t.torch()}, "checkpoint.pt")': """
import os, tempfile
import safetensors.torch
import tshare.weights
os.chdir(tempfile.mkdtemp())
t = tshare.asarray(np.ones((3, 4), "float32"))
model = tshare.Region.create("model", {"a": np.ones(3), "b": np.zeros(4)})
""",
    "seen = await region.wait_async(seen, timeout=5)": PUBLISH,
    "selector.register(region.event_fileno(), selectors.EVENT_READ)": """
import os, selectors
selector = selectors.DefaultSelector()
region = tshare.create(None, 1).region
region.publish()
seen = 0
""",
    "from multiprocessing.shared_memory import ShareableList, SharedMemory": "",
    'shm = SharedMemory("frames", create=True, size=8 * 480 * 640 * 3)': "",
    'frames = np.asarray(tshare.open("frames"))': 'kept = tshare.create("frames", 10)',
    "def work(i):": "",
    "shm = SharedMemory(create=True, size=1000, track=False)": "",
    "with SharedMemoryManager() as manager:": "",
    't = tshare.create(None, (2, 3), "float32")': "",
    't = tshare.asarray(np.arange(10.0), "numbers")': "",
    "import multiprocessing": "",
    't = tshare.create("message-1", 1000)': "",
}

# Whole programs, which run together.
PROGRAMS = ["produce.py", "consume.py"]

# Snippets that are only compiled: what they need, and the tests of the same calls.
COMPILED = {
    'model = tshare.Region.create("frames", size=1 << 30)': "a disk; test_read.py",
    't = tshare.create("frames", (480, 640, 3), "uint8")': (
        "joblib, or endless loops; test_pickling.py, test_generation.py"
    ),
    'ring = tshare.Region.create("ring", {"frames": ((8, 480, 640), "uint8")}, contiguous=True)': (
        "the module; test_export.py"
    ),
    'region = tshare.Region.create("grabber", {"frame": ((480, 640), "uint8")}, dmabuf=fd)': (
        "another driver's dma-buf; test_camera.py"
    ),
    'with tshare.watch("model") as watcher:': "an endless loop; test_watching.py",
    "with t.pin():": "a GPU; test_pin.py",
    "g = t.cuda()": "a GPU; test_cuda.py",
    "stream = torch.cuda.current_stream()": "a GPU; test_cuda_copy.py, test_streams.py",
    'g = tshare.create("weights", shape, "float16", device="cuda:0")': "a GPU; test_cuda_memory.py",
    "try:": "a GPU; test_streams.py",
}

RUN = """
import asyncio, inspect, json, sys, traceback
import numpy as np
import torch
import tshare
names = {"np": np, "torch": torch, "tshare": tshare, "__name__": "__main__"}
failed = {}
for line, before, code in json.load(sys.stdin):
    try:
        exec(before, names)
        made = eval(compile(code, line, "exec", 0x2000), names)  # PyCF_ALLOW_TOP_LEVEL_AWAIT
        if inspect.iscoroutine(made):
            asyncio.run(made)
        if "def work(i)" in code:
            exec("work(0)", names)
    except BaseException:
        failed[line] = traceback.format_exc()
    for region in tshare.list():
        tshare.unlink(region.name)
json.dump(failed, sys.stdout)
"""


def blocks():
    """Yield the paragraph before each piece of Python, and the piece."""
    for page in PAGES:
        text = (DOCUMENTATION / page).read_text()
        for found in re.finditer(r"^(.*)::\n\n((?:\t.*\n|\n)+)", text, re.M):
            yield found[1], textwrap.dedent(found[2])


def snippets():
    """Yield the first line of each snippet, without its comment, and the whole."""
    for before, code in blocks():
        if before.strip("`") not in PROGRAMS:
            yield re.split(r"\s{2,}#", code.splitlines()[0])[0].strip(), code


def test_every_snippet_is_known_and_none_has_gone():
    assert {line for line, _ in snippets()} == set(BEFORE) | set(COMPILED)


@pytest.mark.parametrize("code", [code for _, code in snippets()], ids=[s for s, _ in snippets()])
def test_snippet_compiles(code):
    compile(code, "snippet", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_programs_run_together(tmp_path):
    code = {before.strip("`"): code for before, code in blocks()}
    environment = {**os.environ, "TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": str(tmp_path)}
    produce, consume = ([sys.executable, "-c", code[name]] for name in PROGRAMS)
    with subprocess.Popen(consume, env=environment, stdout=subprocess.PIPE, text=True) as consumer:
        # A consumer that comes too late for a producer gets the next.
        for _ in range(5):
            if consumer.poll() is None:
                subprocess.run(produce, env=environment, check=True)
        consumer.kill()
        said = consumer.stdout.read()
    assert not consumer.returncode
    assert re.fullmatch(r"(frame \d+ has \d+\n)+", said)


@pytest.mark.imports_torch
def test_snippets_run(tmp_path):
    need("PIL.Image")
    if version(need("torch")) < (2, 1):
        pytest.skip("load_state_dict() takes assign= since PyTorch 2.1")
    wanted = [(line, BEFORE[line], code) for line, code in snippets() if line in BEFORE]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(wanted),
        env={**os.environ, "TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    failed = json.loads(done.stdout)
    assert not failed, "\n".join(failed.values())

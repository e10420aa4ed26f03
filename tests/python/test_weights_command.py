# SPDX-License-Identifier: MIT
"""tshare weights"""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

import tshare
from checkpoint import save
from tshare import weights

TENSORS = {"a": ("F32", (3, 4)), "odd": ("U8", (3,)), "b": ("F32", (2,))}


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "model.safetensors", TENSORS, {"format": "pt"})


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tshare._weights_command", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_load_persists_and_show_tells_what_it_is(path, name):
    done = command("load", path, "--name", name, "--persist", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["name"], facts["tensor_count"], facts["lifetime"]) == (name, 3, "persist")
    assert facts["files"] == {"model.safetensors": path.stat().st_size}
    assert (facts["metadata"], facts["copied"]) == ({"format": "pt"}, ["b"])
    assert json.loads(command("show", "--json", name).stdout) == facts
    assert "metadata  format: pt\n" in command("show", name).stdout
    tshare.unlink(name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_load_holds_the_region_until_it_is_told_to_end(path, name, start, number):
    process = start(sys.executable, "-m", "tshare._weights_command", "load", path, "--name", name)
    with weights.open(name, wait=300) as loaded:
        assert sorted(loaded) == sorted(TENSORS)
    assert process.stdout.readline().split() == ["region", name]
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == 0
    with pytest.raises(FileNotFoundError):
        weights.open(name)


def test_load_says_on_a_terminal_that_it_holds_the_region(path, name):
    arguments = [sys.executable, "-m", "tshare._weights_command", "load", str(path), "--name", name]
    terminal, side = pty.openpty()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=side)
    os.close(side)
    said = b""
    try:
        while b"Ctrl-C" not in said:
            said += os.read(terminal, 4096)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 0
        os.close(terminal)
    held = f"tshare weights: holds {name} until it is interrupted (Ctrl-C)"
    assert said.splitlines()[-1].decode() == held


def test_verify_compares_with_the_files(path, name):
    with weights.load(path, name):
        done = command("verify", name, path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{name}: has the bytes of model.safetensors\n"
        content = path.read_bytes()
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        done = command("verify", name, path)
        assert done.returncode == 1
        assert f"{path}: differs from byte {len(content) - 2} on" in done.stderr
        path.write_bytes(content[:-1])
        assert f"differs from byte {len(content) - 1} on" in command("verify", name, path).stderr


def test_verify_refuses_what_it_can_not_compare(path, tmp_path, name):
    with weights.load(path, name, only=["a"]):
        done = command("verify", name, path)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"tshare weights: {name}: has only parts of files" in done.stderr


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_missing_region_has_an_exit_status_of_its_own(path, name, verb):
    files = [path] if verb == "verify" else []
    done = command(verb, name, *files)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"tshare weights: name: there is no region '{name}'")


def test_near_name_is_suggested(path, name):
    with weights.load(path, name):
        said = command("show", name[1:])
        assert said.returncode == 3
        assert said.stderr.splitlines()[1:] == [f"Did you mean '{name}'?"]


def test_missing_path_is_a_failure(tmp_path, name):
    assert command("load", tmp_path / "none", "--name", name).returncode == 1
    assert command("show", "a/b").returncode == 1


def test_verify_takes_a_copy_of_another_name(path, tmp_path, name):
    with weights.load(path, name):
        done = command("verify", name, path.rename(tmp_path / "other.safetensors"))
        assert (done.returncode, done.stderr) == (0, "")


def test_verify_refuses_another_number_of_files(path, tmp_path, name):
    with weights.load(path, name):
        for i in (1, 2):
            save(tmp_path / f"copy-{i}-of-2.safetensors", {str(i): ("U8", (1,))})
        path.unlink()
        done = command("verify", name, tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        text = f"tshare weights: {tmp_path}: leads to 2 files, and {name} has 1\n"
        assert done.stderr == text


def test_output_has_no_control_characters_of_a_file_s_name(tmp_path, name):
    path = save(tmp_path / "\x1b[31m\u202e\u200b.safetensors", TENSORS)
    with weights.load(path, name):
        for arguments in (("show", name), ("verify", name, path)):
            done = command(*arguments)
            assert (done.returncode, done.stderr) == (0, "")
            assert r"\x1b[31m\u202e\u200b.safetensors" in done.stdout
            assert not set("\x1b\u202e\u200b") & set(done.stdout)


def test_errors_name_what_is_wrong(path, tmp_path, name):
    done = command("load", tmp_path / "none.safetensors")
    assert done.returncode == 1
    assert (
        done.stderr == f"tshare weights: {tmp_path}/none.safetensors: No such file or directory\n"
    )
    path.write_bytes(b"1")
    assert f"tshare weights: {path}: is too short" in command("load", path).stderr
    with tshare.create(name, 3):
        done = command("show", name)
        assert done.stderr == f"tshare weights: name: '{name}' is no region of weights\n"
    assert command("load").returncode == 2


def test_load_speaks_of_its_own_option(path, tmp_path, name):
    with weights.load(path, name):
        other = save(tmp_path / "other.safetensors", TENSORS)
        done = command("load", other, "--name", name)
        assert done.returncode == 1
        assert "(--replace replaces it)" in done.stderr
        assert command("load", other, "--name", name, "--replace", "--persist").returncode == 0
    tshare.unlink(name)

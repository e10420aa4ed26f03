# SPDX-License-Identifier: MIT
"""Columns and lines of list, and those that show has, too."""

import grp
import os
import pwd
import re
import subprocess
import time

import pytest


def test_list_shows_created_regions(tshare, name):
    tshare("create", name, "4", "int8")
    assert name in tshare("list").out


def test_list_prints_nothing_without_regions(tshare, own_regions):
    assert tshare("list", env=own_regions).out == ""


def test_list_of_all_namespaces_is_the_modules(tshare, own_regions):
    said = tshare("list", "-A", status=1, env=own_regions).err
    assert "tshare list: regions on shm belong to no IPC namespace" in said
    said = tshare("unlink", "--id", "1", status=1, env=own_regions).err
    assert "tshare unlink: regions on shm are not found by an id" in said


@pytest.mark.needs("kmod", "shared memory has no IPC namespaces")
def test_a_name_in_another_namespace_is_listed_and_unlinked(tshare, name):
    script = '"$0" create -q "$1" 4 int8 && echo made && read -r _'
    there = subprocess.Popen(
        ["unshare", "--ipc", "sh", "-c", script, tshare.path, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with there:
        assert there.stdout.readline() == b"made\n"
        assert name not in tshare("list", "-n").out
        said = tshare("list", "-A").out
        assert re.search("^ *SIZE +TENSORS +OWNER +ID +LIFETIME +NAME$", said, re.MULTILINE)
        assert re.search(rf"^ *4K +1 +root +[0-9]+ +persist +{name}$", said, re.MULTILINE)
        said = tshare("list", "--all-namespaces", "--output", "ID,NAME").out
        id = re.search(f"^ *([0-9]+) +{name}$", said, re.MULTILINE)[1]
        regions = tshare.json("list", "-A")
        assert [r["id"] for r in regions if r["name"] == name] == [int(id)]
        said = tshare("unlink", "--id", "x", id, status=1).err
        assert "tshare unlink: 'x' is not a region's id" in said
        assert name not in tshare("list", "-A").out
        said = tshare("unlink", "-i", id, status=3).err
        assert "tshare unlink: id: there is no named region with the id" in said
        there.communicate(b"\n")
    assert there.returncode == 0


def test_list_is_json(tshare, name):
    tshare("create", name, "4", "int8")
    assert tshare.entry(name)["tensor_count"] == 1


def test_list_has_sizes_for_people_and_in_bytes(tshare, name):
    tshare("create", name, "--size", "1300K")
    assert re.search(rf"^ *1\.3M .* {name}$", tshare("list").out, re.MULTILINE)
    assert re.search(rf"^ *1331200 .* {name}$", tshare("list", "--bytes").out, re.MULTILINE)
    assert re.search(r"^size +1331200 bytes$", tshare("show", "-b", name).out, re.MULTILINE)
    said = tshare("show", name).out
    assert re.search(r"^size +1\.3M \(1331200 bytes\)$", said, re.MULTILINE)


def test_sizes_are_rounded_to_the_next_unit(tshare, name):
    tensors = ["--tensor", "a:1047552:int8", "--tensor", "b:0:int8"]
    tshare("create", name, "--size", "1023K", *tensors)
    assert " 1023K" in tshare("show", name).out
    tshare("create", "-r", name, "--tensor", "a:1048575:int8", "--tensor", "b:1023:int8")
    said = tshare("show", name).out
    assert re.search("^a .* 1M  0 ", said, re.MULTILINE)
    assert " 1023 " in said


def test_list_has_the_columns_that_are_chosen(tshare, name):
    tshare("create", name, "4", "int8")
    first, *others = tshare("list", "-o", "name,Size").out.splitlines()
    assert first.split() == ["NAME", "SIZE"]
    assert [name, "4K"] in [line.split() for line in others]


def test_list_adds_columns_to_the_usual_ones(tshare, name):
    tshare("create", name, "4", "int8")
    said = tshare("list", "--output", "+MODE,NAME").out
    assert re.search("^SIZE .* NAME +MODE$", said, re.MULTILINE)
    assert re.search(f" {name} +0600$", said, re.MULTILINE)


def test_list_has_all_columns(tshare, name):
    tshare("create", name, "4", "int8")
    columns = tshare("list", "--output-all").out.splitlines()[0].split()
    assert len(columns) == 18
    help = tshare("help", "list").out
    assert [column for column in columns if column not in help] == []


def test_list_has_the_names_of_the_owner_and_the_group(tshare, name):
    tshare("create", name, "4", "int8")
    owner, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    lines = tshare("list", "-no", "OWNER,GROUP,NAME").out.splitlines()
    assert [owner, group, name] in [line.split() for line in lines]
    region = tshare.entry(name)
    assert (region["uid"], region["gid"]) == (os.getuid(), os.getgid())


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("NAME,SIZZE", "tshare list: --output: 'SIZZE' is not a column"),
        ("NAME,SIZZE", "Did you mean 'SIZE'?"),
        ("RATE", "'RATE' is not a column"),
        ("", "--output"),
        ("+", "--output"),
    ],
)
def test_list_rejects_unknown_columns(tshare, columns, problem):
    assert problem in tshare("list", "-o", columns, status=2).err


def test_list_ends_with_a_summary(tshare, name, own_regions):
    tshare("create", name, "4", "int8", env=own_regions)
    tshare("create", f"{name}-2", "--size", "8K", env=own_regions)
    said = tshare("list", env=own_regions).out
    assert said.splitlines()[-1] == "2 regions, 1 tensor, 12K"


@pytest.mark.parametrize("option", ["-O", "--noheadings", "-oNAME"])
def test_list_for_programs_has_no_summary(tshare, name, option):
    tshare("create", name, "4", "int8")
    said = tshare("list", option).out
    assert name in said
    assert "region" not in said


def test_list_without_headings_has_names_alone(tshare, name):
    tshare("create", name, "4", "int8")
    said = tshare("list", "-n", "-oNAME").out
    assert "NAME" not in said
    assert name in said.splitlines()


def test_show_and_list_have_the_users_of_a_region(tshare, held):
    region, maker, user = held
    shown = tshare.json("show", region)["users"]
    assert [one["pid"] for one in shown] == sorted([maker, user])
    assert [one["command"] for one in shown if one["pid"] == user] == ["sleep"]
    assert len(tshare.entry(region)["users"]) == 2
    said = tshare("show", region).out
    assert re.search("^users +2$", said, re.MULTILINE)
    assert re.search(f"^  user +{user} sleep$", said, re.MULTILINE)
    lines = [line.split() for line in tshare("list", "-no", "USERS,PIDS,NAME").out.splitlines()]
    assert ["2", f"{user},{maker}", region] in lines or ["2", f"{maker},{user}", region] in lines


def test_show_and_list_have_the_maker_of_a_region(tshare, held):
    region, maker, _ = held
    assert tshare.json("show", region)["maker"] == {"pid": maker, "command": "tshare"}
    assert re.search(f"^maker +{maker} tshare$", tshare("show", region).out, re.MULTILINE)
    assert f"{maker} tshare  {region}" in tshare("list", "-no", "MAKER,NAME").out


def test_show_and_list_have_the_age_on_shared_memory(tshare, name, own_regions):
    before = time.time()
    tshare("create", name, "4", "int8", env=own_regions)
    created = tshare.json("show", name, env=own_regions)["created"]
    assert before - 2 <= created <= time.time() + 2
    said = tshare("show", name, env=own_regions).out
    assert re.search("^age +[0-9]+[smh]$", said, re.MULTILINE)
    said = tshare("list", "-no", "AGE,NAME", env=own_regions).out
    assert re.search(f"[0-9][smh]  {name}$", said, re.MULTILINE)


def test_show_and_list_have_the_generation(tshare, name):
    tshare("create", name, "4", "int8")
    assert re.search("^generation +0$", tshare("show", name).out, re.MULTILINE)
    region = tshare.json("show", name)
    assert (region["generation"], region["state"]) == (0, "-")
    said = tshare("list", "-no", "GENERATION,STATE,NAME").out
    assert re.search(f"^ *0 +- +{name}$", said, re.MULTILINE)


def test_headings_are_bold_only_on_a_terminal(tshare, name, terminal):
    tshare("create", name, "4", "int8")
    assert "\x1b[1m" in terminal(80, "list")
    assert "\x1b" not in tshare("list").out


def test_headings_are_plain_with_no_color(tshare, name, terminal):
    tshare("create", name, "4", "int8")
    said = terminal(80, "list", env={"NO_COLOR": "1"})
    assert name in said
    assert "\x1b" not in said

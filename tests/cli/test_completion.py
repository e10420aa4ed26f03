# SPDX-License-Identifier: MIT
"""The words that bash, fish and zsh complete: verbs, options, names, types, columns."""

import os
import re
import subprocess

import pytest

from helpers import ROOT, STREAM_VERBS, VERBS, text

pytestmark = pytest.mark.slow_in_guests

COMPLETIONS = ROOT / "tools/completions"

BASH = """. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tshare
printf '%s\\n' "${COMPREPLY[@]}"
"""

ZSH = """_arguments() { print -l -- "$@" }; _describe() { print -l -- ${verbs%%:*} }
compadd() { }; words=(tshare ${=1} "") CURRENT=$2; . "$0"
"""

each_verb = pytest.mark.parametrize("verb", [*VERBS, *STREAM_VERBS])


@pytest.fixture
def environment(tshare, tmp_path):
    """The environment of a shell that finds the command, and no settings of its user's."""
    home = {"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}
    path = f"{tshare.path.parent}:{os.environ['PATH']}"
    return {**os.environ, **dict.fromkeys(home, str(tmp_path)), "PATH": path}


@pytest.fixture
def lines(environment):
    """A function that runs a shell, and returns the lines that it prints."""

    def lines(*command):
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE)
        return text(done.stdout).splitlines()

    return lines


@pytest.fixture
def in_bash(lines):
    """A function that returns, sorted, what bash's completion offers for the last word."""
    return lambda *words: sorted(
        filter(None, lines("bash", "--norc", "-c", BASH, COMPLETIONS / "tshare.bash", *words))
    )


@pytest.fixture
def in_fish(lines):
    """A function that returns, sorted, what fish's completion offers behind a text."""
    script = "source $argv[1]; complete -C $argv[2]"
    completions = COMPLETIONS / "tshare.fish"
    return lambda typed: sorted(
        line.split("\t")[0] for line in lines("fish", "--private", "-c", script, completions, typed)
    )


@pytest.fixture
def in_zsh(lines):
    """A function that returns what zsh's completion has for a verb's or the command's words.

    zsh expands no braces here, as it does so by itself.
    """

    def in_zsh(verb, current):
        found = set()
        for line in lines("zsh", "-f", "-c", ZSH, COMPLETIONS / "_tshare", verb, current):
            line = line.removeprefix("*").removeprefix("(- *)")
            found.add(re.sub("^(--?[a-zA-Z0-9-]+).*", r"\1", line))
        return sorted(found)

    return in_zsh


@pytest.fixture
def verbs_of_help(tshare):
    return sorted(re.findall("^  ([a-z]+) ", tshare("help").out, re.MULTILINE))


@pytest.fixture
def options_of_help(tshare):
    """A function that returns the options that the verb's help has, sorted."""

    def options_of_help(verb):
        said = tshare("help", *verb.split()).out
        columns = re.findall("^  (.{4}--.{0,17})", said, re.MULTILINE)
        words = [re.findall("^-[a-zA-Z]|--[a-z0-9-]+", column) for column in columns]
        return sorted(option for options in words for option in options)

    return options_of_help


def test_completions_of_bash_have_the_verbs_of_the_help(in_bash, verbs_of_help):
    assert [word for word in in_bash("tshare", "") if word[0] != "-"] == verbs_of_help


@each_verb
def test_completions_of_bash_have_the_options_of_the_help(in_bash, options_of_help, verb):
    assert in_bash("tshare", *verb.split(), "-") == options_of_help(verb)


def test_completions_of_fish_have_the_verbs_of_the_help(in_fish, verbs_of_help):
    assert in_fish("tshare ") == verbs_of_help


@each_verb
def test_completions_of_fish_have_the_options_of_the_help(in_fish, options_of_help, verb):
    found = {*in_fish(f"tshare {verb} -"), *in_fish(f"tshare {verb} --")}
    assert sorted(word for word in found if word[0] == "-") == options_of_help(verb)


def test_completions_of_zsh_have_the_verbs_of_the_help(in_zsh, verbs_of_help):
    assert [word for word in in_zsh("", "2") if word and word[0] != "-"] == verbs_of_help


@each_verb
def test_completions_of_zsh_have_the_options_of_the_help(in_zsh, options_of_help, verb):
    # -s is an option of _arguments, too.
    current = str(2 + len(verb.split()))
    found = [word for word in in_zsh(verb, current) if word.startswith("-") and word != "-s"]
    assert found == [option for option in options_of_help(verb) if option != "-s"]


@pytest.mark.parametrize("verb", ["show", "unlink", "publish", "wait", "save"])
def test_completions_have_the_names_of_regions(tshare, name, in_bash, in_fish, verb):
    tshare("create", name, "4", "int8")
    assert in_bash("tshare", verb, name) == [name]
    assert name in in_fish(f"tshare {verb} {name}")


@pytest.mark.parametrize("verb", ["show", "hz", "record"])
def test_completions_have_the_names_of_streams(tshare, name, streamer, in_bash, in_fish, verb):
    streamer("produce", name)
    assert in_bash("tshare", "stream", verb, name) == [name]
    assert name in in_fish(f"tshare stream {verb} {name}")


def test_completions_have_the_verbs_of_stream(in_bash, in_fish):
    verbs = sorted(verb.removeprefix("stream ") for verb in STREAM_VERBS)
    assert in_bash("tshare", "stream", "") == in_fish("tshare stream ") == verbs


def test_completions_have_no_names_for_create(tshare, name, in_bash):
    tshare("create", name, "4", "int8")
    assert in_bash("tshare", "create", name) == []


def test_completions_have_types_that_create_takes(tshare, name, in_bash, in_fish):
    dtypes = in_bash("tshare", "create", name, "4", "")
    assert "bfloat16" in dtypes
    for dtype in dtypes:
        tshare("create", "-qr", name, "4", dtype)
    assert in_fish(f"tshare create {name} 4 ") == dtypes


def test_completions_have_columns_that_list_takes(tshare, in_bash, in_fish):
    columns = in_bash("tshare", "list", "-o", "")
    assert len(columns) == 18
    tshare("list", "-j", "-o", ",".join(columns))
    assert in_fish("tshare list -o ") == columns


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("create -q -m 600 NAME 4 bf", "bfloat16"),
        ("exec --name NAME 4 bf", "bfloat16"),
        ("exec --name NAME 4 int8 -- mktem", "mktemp"),
        ("list --output = GENER", "GENERATION"),
        ("list -o NAME,GENER", "NAME,GENERATION"),
        ("list -o +RU", "+RUNG"),
        ("top --sort = ra", "rate"),
    ],
)
def test_bash_completes_arguments_behind_options(in_bash, words, offered):
    assert set(in_bash("tshare", *words.split())) == {offered}


def test_bash_completes_names_of_any_characters(tshare, name, in_bash):
    tshare("create", f"{name}:one", "4", "int8")
    tshare("create", f" {name} b", "4", "int8")
    assert in_bash("tshare", "show", name, ":", "o") == ["one"]
    assert in_bash("tshare", "show", name) == [f"{name}:one"]
    assert in_bash("tshare", "show", rf"\ {name}") == [rf"\ {name}\ b"]


def test_bash_completes_as_it_is_typed(tshare, name, screen, environment):
    tshare("create", name, "4", "int8")
    path = f"PATH={environment['PATH']}"
    shell = screen(80, "env", "PS1=$ ", path, "bash", "--norc", "--noprofile", "-i")
    shell.shows(r"^.*\$ *$")
    shell.press(f". {COMPLETIONS / 'tshare.bash'}; clear", "Enter")
    shell.shows(r"^.{0,20}\$ *$")
    shell.press("tshare sho", "Tab", name[:-1], "Tab", "Enter")
    shell.shows(f"^region +{name}")


def test_zsh_completes_as_it_is_typed(tshare, name, screen, environment):
    tshare("create", name, "4", "int8")
    settings = [f"{key}={environment[key]}" for key in ("HOME", "PATH")]
    shell = screen(80, "env", *settings, "zsh", "-f", "-i")
    shell.shows("[#%] *$")
    shell.press(f"PS1='> '; fpath=({COMPLETIONS} $fpath)", "Enter")
    shell.press("autoload -U compinit; compinit -u -D; clear", "Enter")
    shell.shows("^> *$")
    for typed, completed in (
        ("tshare sho", "tshare show"),
        (f"tshare show {name[:-1]}", f"tshare show {name}"),
        ("tshare help publi", "tshare help publish"),
        ("tshare create --qui", "tshare create --quiet"),
        ("tshare list --output=GENER", "tshare list --output=GENERATION,?"),
        ("tshare load ns", "tshare load ns_max_mib="),
    ):
        shell.press(typed, "Tab", "/")
        shell.shows(f"^> {completed} */$")
        shell.press("C-u", "clear", "Enter")
        shell.shows("^> *$")

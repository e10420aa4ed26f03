# SPDX-License-Identifier: MIT
"""How names are written: none controls a terminal, or hides what it is."""

import re

import pytest

pytestmark = pytest.mark.slow_in_guests

# Of each range of what reorders text or isn't seen the first character and the last one.
HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028\u202e\u2060\u206f",
    r"\u3164\ufeff\uffa0\ufff9\ufffb\U000e0000\U000e00ff",
    r"\U0001bca0\U0001bca3\U0001d173\U0001d17a\u200d\ufe0f",
)
# The same of what joins or varies the character before it, which is one of a script without such.
JOINING = r"a\u180ba\u180da\u180fa\u200ca\u200da\ufe00a\ufe0fa\U000e0100a\U000e01ef"


def characters(escapes):
    """Return what escapes of ASCII stand for."""
    return escapes.encode("ascii").decode("unicode_escape")


def octets(data):
    """Return the name of which these are the bytes, as Python has it."""
    return data.decode("utf-8", "surrogateescape")


def test_names_of_any_bytes_are_valid_json(tshare, name):
    odd = name + octets(b'-"\\\n\t\x7f\xff\xc3\xa4\xed\xa0\x80')
    tshare("create", odd, "4", "int8")
    assert tshare.entry(name + '-"\\\n\t\x7f\udcff\xe4\udced\udca0\udc80')


def test_names_are_written_alike_by_all_verbs(tshare, name):
    written = rf"{name}-a\x5cx62"
    said = tshare("create", rf"{name}-a\x62", "4", "int8").out
    assert f"{written}: " in said
    assert written in tshare("list", "-no", "NAME").out
    assert rf"'{name}-b\x5cx62'" in tshare("show", rf"{name}-b\x62", status=3).err
    said = tshare("unlink", "-g", f"{name}-a*").out
    assert f"removed {written}" in said
    assert r"a\x62" not in said


def test_names_cannot_control_the_terminal(tshare, name):
    odd = f"{name}-\x1b[31m"
    assert "\x1b" not in tshare("create", odd, "4", "int8").out
    assert "\x1b" not in tshare("list").out
    assert "\x1b" not in tshare("unlink", "-g", f"{name}-*").out


def test_names_cannot_control_an_8_bit_terminal(tshare, name):
    odd = name + octets(b"-\x9b31m-\xc2\x9b31m-\xc3\xa4")
    written = r"-\x9b31m-\xc2\x9b31m-ä"
    tshare("create", odd, "4", "int8")
    assert written in tshare("list").out
    assert written in tshare("show", odd).out
    assert tshare.entry(f"{name}-\udc9b31m-\x9b31m-\xe4")
    assert r"\udc9b31m-\u009b31m" in tshare("list", "--json").out


@pytest.mark.parametrize("escapes", [*HIDDEN, JOINING, r"\u202e"])
def test_names_cannot_reorder_or_hide_text(tshare, name, escapes):
    odd = f"{name}-{characters(escapes)}"
    written = f"{name}-{escapes}"
    said = tshare("create", odd, "-t", f"{characters(escapes)}x:4:int8").out
    assert f"{written}: " in said
    assert f" {written}\n" in tshare("list", "-no", "SIZE,NAME").out
    # show shortens names of tensors in the middle.
    shown = re.escape(escapes[:24])
    assert re.search(f"^{shown}.*x  int8 ", tshare("show", odd).out, re.MULTILINE)
    assert f"removed {written}" in tshare("unlink", "-g", f"{name}-*").out
    assert f"'{written}'" in tshare("show", odd, status=3).err


def test_what_hides_text_is_escaped_behind_a_letter_of_another_script(tshare, name):
    written = rf"{name}-ä\u202eä"
    said = tshare("create", f"{name}-ä\u202eä", "-t", "ä\u202eäx:4:int8").out
    assert f"{written}: " in said
    assert f" {written}\n" in tshare("list", "-no", "SIZE,NAME").out
    assert "\nä\\u202eäx  int8 " in tshare("show", f"{name}-ä\u202eä").out


def test_a_joiner_without_a_character_to_join_is_escaped(tshare, name):
    tshare("create", name, "-t", "\u200dx:4:int8")
    assert "\n\\u200dx  int8 " in tshare("show", name).out


@pytest.mark.parametrize(
    "escaped", [b"\x9b", b"\xc2\x9b", b"\xe4\xb8", b"\xf0\x9f\xb8", b"\xb8\xb8\xb8\xb8"]
)
def test_joiners_behind_bytes_that_are_escaped_are_escaped(tshare, name, escaped):
    written = "".join(rf"\x{byte:02x}" for byte in escaped) + r"\u200d\ufe0f"
    said = tshare("create", f"{name}-{octets(escaped)}\u200d\ufe0f", "4", "int8").out
    assert f"{name}-{written}: " in said
    assert f"{name}-{written}" in tshare("list", "-no", "NAME").out
    assert r'\u200d\ufe0f"' in tshare("list", "-j").out


def test_names_cannot_reorder_or_hide_json(tshare, name):
    odd = f"{name}-{characters(HIDDEN[0] + HIDDEN[1] + JOINING)}"
    tshare("create", odd, "4", "int8")
    said = tshare("list", "--json").out
    assert r"\u200b\u200e\u200f\u2028\u202e" in said
    assert r"\udb40\udc00\udb40\udcff" in said
    assert said.isascii()
    assert tshare.entry(odd)


def test_names_with_letters_of_any_script_and_emoji_are_written_as_they_are(tshare, name):
    # A heart on fire, a non-joiner in Persian, a variant of an ideograph.
    odd = f"{name}-" + characters(
        r"u\u0308-\u2764\ufe0f\u200d\U0001f525-\u0645\u06cc\u200c\u062e-\u845b\U000e0100-\u1820\u180b"
        # The neighbours of characters that hide.
        r"\u00ae\u061b\u200a\u2010\u2027\u2070\uffa1\ufffc\U000e01ef"
    )
    assert f"{odd}: " in tshare("create", odd, "4", "int8").out
    assert odd in tshare("list", "-no", "NAME").out
    assert f'"{odd}"' in tshare("list", "-j").out


def test_names_that_look_like_escapes_are_written_alike_by_all_verbs(tshare, name):
    odd = rf"{name}-\u202e\U000e0000"
    written = rf"{name}-\u005cu202e\u005cU000e0000"
    assert f"{written}: " in tshare("create", odd, "4", "int8").out
    assert written in tshare("list", "-no", "NAME").out
    assert tshare.entry(odd)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["ODD"], 2),
        (["unlink", "ODD"], 3),
        (["create", "NAME", "ODD", "int8"], 2),
        (["exec", "4", "int8", "--", "/none/ODD"], 127),
    ],
)
def test_errors_cannot_control_the_terminal(tshare, name, arguments, status):
    odd = octets(b"\x1b[31m\x9b31m\xc2\x9b31m")
    words = [word.replace("ODD", odd).replace("NAME", name) for word in arguments]
    said = tshare(*words, status=status).err
    assert re.search("[\x1b\x9b\udc9b]", said) is None

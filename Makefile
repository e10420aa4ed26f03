# SPDX-License-Identifier: MIT
# The front door. Everything is built under build/; nothing is loaded into
# this machine's kernel but by install and modprobe.

BUILD  := build
MESON  := /usr/bin/meson
PREFIX ?= /usr/local
KDIR   ?= /lib/modules/$(shell uname -r)/build

.PHONY: help all demo check check-all bench lint modules lib install clean

help:
	@echo 'make demo      one tensor in three programs: here, then on /dev/tshare in a virtual machine'
	@echo 'make check     the tests, here and in virtual machines'
	@echo 'make check-all the same, and what takes longer'
	@echo 'make bench     measure against what people use today, side by side'
	@echo 'make lint      style, static checks, licences'
	@echo 'make all       the library, the command and the man pages'
	@echo 'make modules   the kernel module, for the kernel of KDIR=$(KDIR)'
	@echo 'make install   all of it, as root: then "modprobe tshare"; PREFIX=$(PREFIX) DESTDIR='
	@echo 'make clean     remove build/'

all: lib

lib: $(BUILD)/c/build.ninja
	@ninja -C $(BUILD)/c --quiet

$(BUILD)/c/build.ninja:
	@tests/setup build
	@$(MESON) setup --buildtype=debugoptimized --prefix='$(PREFIX)' $(BUILD)/c >/dev/null

# The development profile: what reads or writes where it must not, ends the program.
$(BUILD)/asan/build.ninja:
	@tests/setup build
	@$(MESON) setup --buildtype=debugoptimized -Db_sanitize=address,undefined $(BUILD)/asan >/dev/null

demo:
	@tests/setup build vm demo
	@examples/demo

check:
	@tests/setup build vm lint demo stdlib-tests
	@tests/run

check-all:
	@tests/setup build vm lint demo stdlib-tests
	@tests/run --all

bench:
	@tests/setup build vm
	@tests/bench/run

lint:
	@tests/setup build vm lint
	@tests/lint/run

modules:
	@test -e '$(KDIR)/Makefile' || { \
		echo 'make: KDIR: no kernel headers in $(KDIR); install linux-headers-amd64' >&2; exit 1; }
	@tests/vm/module --kdir '$(KDIR)'

# The module goes where modprobe looks for its kernel, whose release it names itself.
install: lib modules
	$(MESON) configure $(BUILD)/c --prefix='$(PREFIX)'
	DESTDIR='$(DESTDIR)' $(MESON) install -C $(BUILD)/c
	install -D -m 644 kmod/60-tshare.rules '$(DESTDIR)/usr/lib/udev/rules.d/60-tshare.rules'
	install -D -m 644 kmod/tshare.sysusers '$(DESTDIR)/usr/lib/sysusers.d/tshare.conf'
	set -e; ko=$$(tests/vm/module --kdir '$(KDIR)'); \
	release=$$(/sbin/modinfo -F vermagic "$$ko" | cut -d ' ' -f 1); \
	install -D -m 644 "$$ko" "$(DESTDIR)/lib/modules/$$release/updates/tshare.ko"; \
	test -n '$(DESTDIR)' || { depmod -a "$$release"; ldconfig; \
		systemd-sysusers tshare.conf || groupadd -rf tshare; }

clean:
	rm -rf $(BUILD)

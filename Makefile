# SPDX-License-Identifier: MIT
# Entry points for users and developers. Everything is built under build/. No target loads
# the module into this machine's kernel.

BUILD  := build
MESON  := /usr/bin/meson
PREFIX ?= /usr/local
KDIR   ?= /lib/modules/$(shell uname -r)/build

.PHONY: help all demo check check-all bench lint modules lib install clean

help:
	@echo 'make all       build the library, the command and the man pages, in build/c/'
	@echo 'make modules   build the kernel module, for the kernel of KDIR=$(KDIR)'
	@echo 'make install   install all of these, as root, under PREFIX=$(PREFIX), DESTDIR=$(DESTDIR)'
	@echo '               then load the module by "modprobe tshare"'
	@echo 'make demo      share a tensor between C and Python programs: in POSIX shared memory,'
	@echo '               then on /dev/tshare in a virtual machine'
	@echo 'make check     run the tests, here and in virtual machines (less than 30 minutes)'
	@echo 'make check-all run also the tests that take longer'
	@echo 'make coverage  print which part of the module the tests run, file by file (an hour)'
	@echo 'make bench     compare speed with what people use today'
	@echo 'make lint      check style, static analysis and licences'
	@echo 'make clean     remove build/'
	@echo 'Needs Debian 12, and root or sudo to install the packages that are missing. No target'
	@echo 'loads the module here. The Python package is installed by "pip install .".'

all: lib

lib: $(BUILD)/c/build.ninja
	@ninja -C $(BUILD)/c --quiet

$(BUILD)/c/build.ninja:
	@tests/setup build
	@$(MESON) setup --buildtype=debugoptimized --prefix='$(PREFIX)' $(BUILD)/c >/dev/null

# The development profile: an invalid read or write ends the program.
$(BUILD)/asan/build.ninja:
	@tests/setup build
	@$(MESON) setup --buildtype=debugoptimized -Db_sanitize=address,undefined $(BUILD)/asan >/dev/null

# The same for data races.
$(BUILD)/tsan/build.ninja:
	@tests/setup build
	@$(MESON) setup --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false $(BUILD)/tsan >/dev/null

# For the guests of that architecture.
$(BUILD)/arm64/c/build.ninja:
	@tests/setup build arm64
	@$(MESON) setup --buildtype=debugoptimized -Dman=disabled -Dvulkan=disabled \
		--cross-file "$$(tests/vm/sysroot arm64)/meson.ini" $(BUILD)/arm64/c >/dev/null

demo:
	@tests/setup build vm demo
	@examples/demo

check:
	@tests/setup build vm lint demo stdlib-tests lavapipe
	@tests/run

check-all:
	@tests/setup build vm lint demo stdlib-tests lavapipe
	@tests/run --all

coverage:
	@tests/setup build vm
	@tests/vm/coverage

bench:
	@tests/setup build vm
	@tests/bench/run

lint:
	@tests/setup build vm lint
	@tests/lint/run

modules:
	@test -e '$(KDIR)/Makefile' || { \
		echo 'make: KDIR: $(KDIR) has no kernel headers (install linux-headers-amd64)' >&2; exit 1; }
	@tests/vm/module --kdir '$(KDIR)'

# The module is installed where modprobe looks for it; its vermagic names the kernel release.
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

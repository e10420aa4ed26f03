# SPDX-License-Identifier: MIT
# Entry points for users and developers. Everything is built under build/. No target loads
# the module into this machine's kernel.

BUILD  := build
MESON  := /usr/bin/meson
KDIR   ?= /lib/modules/$(shell uname -r)/build

ifneq ($(strip $(PREFIX)),)
ifeq ($(filter /%,$(firstword $(PREFIX))),)
$(error PREFIX: '$(PREFIX)' must be an absolute path)
endif
endif

.PHONY: help all demo check check-all check-packages coverage bench lint docs dist modules lib \
	install install-system modules_install uninstall clean

# meson has one log for all that it installs.
.NOTPARALLEL:

help:
	@echo 'make all       build the library, the command and the man pages, in build/c/, to be'
	@echo '               installed under PREFIX=DIR, at first /usr/local'
	@echo 'make modules   build the kernel module, for the kernel of KDIR=$(KDIR)'
	@echo 'make install   install what "make all" has built, and nothing outside of PREFIX; below'
	@echo '               DESTDIR=DIR for a package'
	@echo 'make install-system'
	@echo '               install the rule of /dev/tshare, in the folder of udev, and make the group'
	@echo '               tshare'
	@echo 'make modules_install'
	@echo '               install what "make modules" has built; "modprobe tshare" loads it'
	@echo 'make uninstall remove what the last three have installed'
	@echo 'make demo      share a tensor between C and Python programs: in POSIX shared memory,'
	@echo '               then on /dev/tshare in a virtual machine'
	@echo 'make check     run the tests, here and in virtual machines (35 minutes)'
	@echo 'make check-all run also the tests that take longer'
	@echo 'make check-packages'
	@echo '               build, install and test the Debian packages and the archives of the'
	@echo '               Python package'
	@echo 'make coverage  print which part of the module the tests run, file by file (an hour)'
	@echo 'make bench     compare speed with what people use today'
	@echo 'make lint      check style, static analysis and licences'
	@echo 'make docs      build the documentation as one book, in build/docs/html/'
	@echo 'make dist      make the archives of a release, in build/dist/, of what is committed'
	@echo 'make clean     remove build/'
	@echo 'Needs Debian 12, and root or sudo to install the packages that are missing. No target'
	@echo 'loads the module here. The Python package is installed by "pip install .".'

all: lib

# The prefix of a build, which it keeps until it is given another one.
BUILT_FOR = $$(sed -n 's/^prefix = //p' $(BUILD)/c/meson-private/cmd_line.txt)

# MAKEFLAGS names a job server that make gives to another make alone, and ninja looks for it.
lib: $(BUILD)/c/build.ninja
	@test -z '$(PREFIX)' || test '$(PREFIX)' = "$(BUILT_FOR)" || \
		$(MESON) configure --prefix='$(PREFIX)' $(BUILD)/c
	@MAKEFLAGS= ninja -C $(BUILD)/c --quiet

$(BUILD)/c/build.ninja:
	@tests/runner/setup build
	@$(MESON) setup --buildtype=debugoptimized --prefix='$(or $(PREFIX),/usr/local)' $(BUILD)/c >/dev/null

# The development profile: an invalid read or write ends the program.
$(BUILD)/asan/build.ninja:
	@tests/runner/setup build
	@$(MESON) setup --buildtype=debugoptimized -Db_sanitize=address,undefined $(BUILD)/asan >/dev/null

# The same for data races.
$(BUILD)/tsan/build.ninja:
	@tests/runner/setup build
	@$(MESON) setup --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false $(BUILD)/tsan >/dev/null

# For the guests of that architecture.
$(BUILD)/arm64/c/build.ninja:
	@tests/runner/setup build arm64
	@$(MESON) setup --buildtype=debugoptimized -Dman=disabled -Dvulkan=disabled \
		--cross-file "$$(tests/vm/sysroot arm64)/meson.ini" $(BUILD)/arm64/c >/dev/null

# For clang's fuzzer: it sees which paths of the library an input takes.
$(BUILD)/fuzz/build.ninja:
	@tests/runner/setup build fuzz
	@CC=clang $(MESON) setup --buildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link -Dfuzz=true -Dtests=false \
		-Dman=disabled -Dvulkan=disabled -Dlibkmod=disabled $(BUILD)/fuzz >/dev/null

demo:
	@tests/runner/setup build vm demo
	@examples/demo

check:
	@tests/runner/setup build vm install lint docs fuzz demo stdlib-tests lavapipe
	@tests/runner/run

check-all:
	@tests/runner/setup build vm arm64 install lint docs fuzz demo stdlib-tests lavapipe debian
	@tests/runner/run --all

check-packages:
	@tests/runner/setup build debian
	@tests/runner/run packages debian

coverage:
	@tests/runner/setup build vm
	@tests/vm/coverage

bench:
	@tests/runner/setup build vm
	@tests/bench/run

lint:
	@tests/runner/setup build vm lint docs
	@tests/lint/run

# Nitpicky: a name that leads nowhere is a warning. SPHINXOPTS=-W makes warnings errors.
docs:
	@tests/runner/setup build docs
	@mkdir -p $(BUILD)/docs/python
	@venv=$$(tests/python/venv --package) && \
		ln -sfn "$$venv"/lib/python3*/site-packages/tshare $(BUILD)/docs/python/tshare
	@PYTHONPATH=$(BUILD)/docs/python /usr/bin/sphinx-build -q -n $(SPHINXOPTS) -d $(BUILD)/docs/doctrees \
		Documentation $(BUILD)/docs/html

dist:
	@tests/runner/setup build debian
	@tests/packages/dist $(BUILD)/dist

modules:
	@test -e '$(KDIR)/Makefile' || { \
		echo 'make: KDIR: $(KDIR) has no kernel headers (install linux-headers-amd64)' >&2; exit 1; }
	@tests/vm/module --kdir '$(KDIR)'

# A folder that is named relative to this one. It may contain spaces.
absolute = $(if $(1),$(if $(filter /%,$(firstword $(1))),,$(CURDIR)/)$(1))
INTO = $(call absolute,$(DESTDIR))

# Lists of installed files, for uninstall. meson writes the first each time, and would fail to write
# to root's; it is moved to the log of the target.
MESON_LOG   := $(BUILD)/c/meson-logs/install-log.txt
C_LOG       := $(BUILD)/c/install-log.txt
SYSTEM_LOG  := $(BUILD)/c/install-system-log.txt
MODULES_LOG := $(BUILD)/modules/install-log.txt
LOGS         = $(wildcard $(MESON_LOG) $(C_LOG) $(SYSTEM_LOG) $(MODULES_LOG))

# Installs what has one of TAGS, and writes LOG. Nothing is compiled here, as this is often run by
# root, who wants no files in $(BUILD)/.
define meson_install
	@test -e $(BUILD)/c/tools/tshare || { \
		echo 'make: $@: nothing is built (run "make all" first)' >&2; exit 1; }
	@test -z '$(PREFIX)' || test '$(PREFIX)' = "$(BUILT_FOR)" || { \
		echo "make: PREFIX: the build is for $(BUILT_FOR) (run \"make all PREFIX=$(PREFIX)\"" \
			'first)' >&2; exit 1; }
	@rm -f $(MESON_LOG)
	@DESTDIR='$(INTO)' $(MESON) install --no-rebuild --quiet --tags $(TAGS) -C $(BUILD)/c
	@mv $(MESON_LOG) $(LOG)
endef

# Not for a package, nor for a user's own folder. A user's PATH may lack these commands.
SETTLE = test -n '$(DESTDIR)' || test "$$(id -u)" -ne 0 || PATH=$$PATH:/usr/sbin:/sbin

install: TAGS = runtime,devel,man
install: LOG = $(C_LOG)
install:
	$(meson_install)
	@$(SETTLE) ldconfig

# Files that udev, systemd and, where that was asked for, DKMS read in folders of their own.
install-system: TAGS = system,dkms
install-system: LOG = $(SYSTEM_LOG)
install-system:
	@test -n '$(DESTDIR)' || test "$$(id -u)" -eq 0 || { \
		echo 'make: install-system: only root can do this' >&2; exit 1; }
	$(meson_install)
	@$(SETTLE) sh -c 'getent group tshare > /dev/null || systemd-sysusers "$$1" || \
		groupadd -r tshare' sh "$$(grep '/sysusers.d/tshare[.]conf$$' $(SYSTEM_LOG))"

# modprobe looks there.
modules_install:
	@test -e '$(KDIR)/include/config/kernel.release' || { \
		echo 'make: KDIR: $(KDIR) has no kernel headers' >&2; exit 1; }
	@set -e; release=$$(cat '$(KDIR)/include/config/kernel.release'); \
	ko=$(BUILD)/modules/$$release/kmod/tshare.ko; \
	test -e $$ko || { echo "make: modules_install: nothing is built for Linux $$release" \
		'(run "make modules" first)' >&2; exit 1; }; \
	to="$(INTO)/lib/modules/$$release/updates/tshare.ko"; \
	install -D -m 644 $$ko "$$to"; \
	echo "$$to" >> $(MODULES_LOG); \
	$(SETTLE) depmod -a "$$release"

# The group stays, as files may belong to it.
uninstall:
	@test -n '$(LOGS)' || { \
		echo 'make: uninstall: nothing was installed from $(CURDIR)/$(BUILD)' >&2; exit 1; }
	@cat $(LOGS) | while IFS= read -r file; do \
		case $$file in \
		'#'*) ;; \
		*) if test -d "$$file" && test ! -L "$$file"; then \
			rmdir --ignore-fail-on-non-empty "$$file"; else rm -f "$$file"; fi ;; \
		esac || exit; \
		case $$file in /lib/modules/*) \
			release=$${file#/lib/modules/}; release=$${release%%/*}; \
			test ! -d /lib/modules/$$release || $(SETTLE) depmod -a $$release ;; \
		esac || exit; \
	done
	@rm -f $(LOGS)
	@$(SETTLE) ldconfig

clean:
	rm -rf $(BUILD)

# SPDX-License-Identifier: BSD-2-Clause
# Pumice's build. All output goes to build/ (BUILD=dir for another variant).
#   make            library, daemon and command
#   make demo       two virtual hosts on this machine, unmodified programs between them
#   make test       every test
# For the other targets: make help.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
CC ?= cc
CLANG ?= clang
AR ?= ar

CSTD := -std=gnu11
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
OPT ?= -O2 -g
SAN ?=
ifneq ($(SAN),)
SANFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
# ThreadSanitizer does not support fences. Our fences stand between two atomic accesses, which it never reports.
SANFLAGS += $(if $(filter thread,$(SAN)),-Wno-tsan)
CPPFLAGS += -DPUMICE_CHECK
endif
CPPFLAGS += -D_GNU_SOURCE -I. -Iinclude
CFLAGS += $(CSTD) $(WARN) $(OPT) $(SANFLAGS) -MMD -MP
LDFLAGS += $(SANFLAGS)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

# All sources below a folder, at any depth.
sources = $(sort $(shell find $(1) -name '*.c'))

WIRE_SRC := $(call sources,wire)
CORE_SRC := $(call sources,daemon/core)
PCAP_SRC := $(call sources,pcap)
DAEMON_SRC := $(filter-out daemon/main.c daemon/core/%,$(call sources,daemon))
VERBS_SRC := $(call sources,src/verbs)
DV_SRC := $(call sources,src/dv)
CHECK_SRC := $(call sources,src/check)
CMD_SRC := $(call sources,src/cmd)
UNIT_SRC := $(call sources,tests/unit)
SIM_SRC := $(call sources,tests/sim)
ENDURANCE_SRC := $(wildcard tests/verbs/endurance/*.c)
VTEST_SRC := $(filter-out $(ENDURANCE_SRC),$(call sources,tests/verbs))

LIBWIRE := $(BUILD)/lib/libwire.a
LIBCORE := $(BUILD)/lib/libcore.a
# The same with its invariants asserted (daemon/core/qp/qp_check.h), for tests. A build with a sanitizer always asserts them.
LIBCORE_CHECKED := $(BUILD)/lib/libcore_checked.a
LIBPCAPW := $(BUILD)/lib/libpcapng.a
LIBDAEMON := $(BUILD)/lib/libdaemon.a
VERBS_SO := $(BUILD)/lib/pumice/libibverbs.so.1
DV_SO := $(BUILD)/lib/pumice/libpumice.so.1
CHECK_SO := $(BUILD)/lib/pumice/libpumice_check.so
PUMICED := $(BUILD)/bin/pumiced
PUMICE := $(BUILD)/bin/pumice
UNIT_BIN := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SRC))
ENDURANCE := $(BUILD)/tests/verbs/rdma_endurance
VTEST_BIN := $(patsubst tests/verbs/%.c,$(BUILD)/tests/verbs/%,$(VTEST_SRC)) $(ENDURANCE)
SIM_BIN := $(BUILD)/tests/sim/sim

.SECONDARY:
.PHONY: all
all: $(VERBS_SO) $(DV_SO) $(CHECK_SO) $(PUMICED) $(PUMICE)

$(call obj,$(WIRE_SRC) $(CORE_SRC)) $(CORE_SRC:%.c=$(BUILD)/checked/%.o): WARN += -Wconversion
# The macros of libseccomp leave out fields, which clang reports.
$(call obj,daemon/sandbox/seccomp.c): WARN += -Wno-missing-field-initializers
$(call obj,$(VERBS_SRC) $(DV_SRC) $(CHECK_SRC)): CFLAGS += -fPIC -fvisibility=hidden

# A dependency list must not ask for the old place of a source that has moved. So each list also defines its source as
# a target without a rule, as -MP does for headers.
compile = $(CC) $(CPPFLAGS) $(CFLAGS) $(1) -c -o $@ $< && echo '$<:' >>$(@:.o=.d)
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(compile)
$(BUILD)/checked/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call compile,-DPUMICE_CHECK)

# The list of sources. The file changes when a source is added or removed. Everything that is linked from many objects
# depends on it.
SOURCES := $(WIRE_SRC) $(CORE_SRC) $(PCAP_SRC) $(DAEMON_SRC) $(VERBS_SRC) $(DV_SRC) $(CHECK_SRC) $(CMD_SRC) $(SIM_SRC) $(ENDURANCE_SRC)
$(BUILD)/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' >$@
.PHONY: FORCE
$(LIBWIRE) $(LIBCORE) $(LIBCORE_CHECKED) $(LIBPCAPW) $(LIBDAEMON) $(VERBS_SO) $(DV_SO) $(CHECK_SO) $(PUMICE) $(SIM_BIN) $(ENDURANCE): $(BUILD)/sources

$(LIBWIRE): $(call obj,$(WIRE_SRC))
$(LIBCORE): $(call obj,$(CORE_SRC))
$(LIBCORE_CHECKED): $(patsubst %.c,$(BUILD)/checked/%.o,$(CORE_SRC))
$(LIBPCAPW): $(call obj,$(PCAP_SRC))
$(LIBDAEMON): $(call obj,$(DAEMON_SRC))
$(BUILD)/lib/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

$(PUMICED): $(call obj,daemon/main.c) $(LIBDAEMON) $(LIBCORE) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lev -ljansson -lconfuse -lisal -lmicrohttpd -lseccomp -lsystemd -lpthread

# The versions of the library's symbols follow from a table of all releases of rdma-core. The linker finds a symbol of
# the table that no source defines.
ABI_TABLE := src/verbs/abi/rdma-core-symbols.tsv
$(BUILD)/gen/libibverbs.map $(BUILD)/gen/private_aliases.h: src/verbs/abi/symbols.awk $(ABI_TABLE)
	@mkdir -p $(@D)
	awk -v out=$(if $(filter %.map,$@),map,aliases) -f $^ >$@.new
	@mv $@.new $@
$(call obj,src/verbs/abi/private.c): CPPFLAGS += -I$(BUILD)
$(call obj,src/verbs/abi/private.c): $(BUILD)/gen/private_aliases.h

# The library stays loaded after dlclose, because on_exit(3) may call it at the end of the process.
$(VERBS_SO): $(call obj,$(VERBS_SRC)) $(BUILD)/gen/libibverbs.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=$(filter %.map,$^) -Wl,--no-undefined-version \
		-Wl,-z,defs -Wl,-z,nodelete -o $@ $(filter %.o,$^) -lpthread

# The texts that describe a wrong layout come from the engine.
$(BUILD)/obj/src/dv/core/layout.o: daemon/core/memory/layout.c Makefile
	@mkdir -p $(@D)
	$(call compile,-fPIC -fvisibility=hidden)
$(DV_SO): $(call obj,$(DV_SRC)) $(BUILD)/obj/src/dv/core/layout.o src/dv/libpumice.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libpumice.so.1 -Wl,--version-script=src/dv/libpumice.map -Wl,-z,defs \
		-o $@ $(filter %.o,$^)
	@ln -sf libpumice.so.1 $(@D)/libpumice.so

# The checker has no symbol versions: so its functions stand before those of a library of any version.
$(CHECK_SO): $(call obj,$(CHECK_SRC))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libpumice_check.so -Wl,-z,nodelete -o $@ $(filter %.o,$^) -lpthread

# `pumice layout` explains a mapping with the engine's own code, and `pumice run --check` knows the rules of the checker: these
# modules depend on nothing else.
$(PUMICE): $(call obj,$(CMD_SRC) daemon/core/memory/layout.c src/check/base/rule.c) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -ljansson -lpcap -lisal -lsmartcols -lelf -ldw

# --- tests -----------------------------------------------------------------------------------------------------------
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(LIBDAEMON) $(LIBCORE_CHECKED) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcriterion -lev -ljansson -lconfuse -lisal -lpcap -lmicrohttpd -lseccomp -lsystemd -lsmartcols -lm -lpthread

# Texts of the command that are tested without a daemon.
$(BUILD)/tests/unit/cmd/test_control: $(call obj,src/cmd/common/cmd.c src/cmd/common/control.c)
$(BUILD)/tests/unit/cmd/test_diagnose: $(call obj,src/cmd/inspect/diagnose.c src/cmd/inspect/diagnose_cm.c)
$(BUILD)/tests/unit/cmd/test_diagnose_cm: $(call obj,src/cmd/inspect/diagnose_cm.c)
$(BUILD)/tests/unit/cmd/test_table: $(call obj,src/cmd/common/cmd.c src/cmd/common/columns.c src/cmd/inspect/table.c)
$(BUILD)/tests/unit/cmd/test_ping_text: $(call obj,src/cmd/net/ping_text.c)
RECORDING := $(call obj,src/cmd/common/cmd.c src/cmd/recording/decision_text.c src/cmd/recording/recording.c)
$(BUILD)/tests/unit/cmd/test_recording: $(RECORDING)
$(BUILD)/tests/unit/cmd/test_ddmin: $(call obj,src/cmd/replay/ddmin.c)
# Modules of the checker.
$(BUILD)/tests/unit/check/test_request: $(call obj,src/check/objects/request.c src/check/objects/fingerprint.c src/check/objects/guard.c src/check/objects/lent.c src/check/objects/watch.c src/check/base/handler.c src/check/base/next.c)
$(BUILD)/tests/unit/check/test_lent: $(call obj,src/check/objects/lent.c)
$(BUILD)/tests/unit/check/test_fingerprint: $(call obj,src/check/objects/fingerprint.c)
$(BUILD)/tests/unit/check/test_trace: $(call obj,src/check/base/trace.c src/check/base/inside.c)
$(BUILD)/tests/unit/check/test_reports: $(call obj,src/cmd/check/reports.c)
$(BUILD)/tests/unit/check/test_pairs: $(call obj,src/cmd/check/pairs.c src/cmd/check/reports.c src/check/base/rule.c)
$(BUILD)/tests/unit/verbs/test_poll_state: $(call obj,src/verbs/base/poll_state.c src/verbs/base/poll_crowd.c src/verbs/base/poll_brief.c)
$(BUILD)/tests/unit/verbs/test_poll_crowd: $(call obj,src/verbs/base/poll_crowd.c)
$(BUILD)/tests/unit/verbs/test_crowd: $(call obj,src/verbs/shim/crowd.c src/verbs/shim/libc_next.c)
$(BUILD)/tests/unit/verbs/test_poll_brief: $(call obj,src/verbs/base/poll_brief.c)
$(BUILD)/tests/unit/verbs/test_yield: $(call obj,src/verbs/base/poll_brief.c src/verbs/shim/yield.c)
$(BUILD)/tests/unit/verbs/test_move_cpu: $(call obj,src/verbs/base/move_cpu.c)
$(BUILD)/tests/unit/verbs/test_poll_wait: $(call obj,src/verbs/base/poll_state.c src/verbs/base/poll_crowd.c src/verbs/base/poll_brief.c src/verbs/base/move_cpu.c src/verbs/shim/yield.c src/verbs/datapath/poll_wait.c src/verbs/session/context.c)
$(BUILD)/tests/unit/verbs/cm/test_cm_ids: $(call obj,src/verbs/cm/cm_ids.c)
$(BUILD)/tests/unit/verbs/test_poll_after_death: $(call obj,src/verbs/base/table.c src/verbs/datapath/cq_notify.c src/verbs/datapath/poll.c \
	src/verbs/unkind/poll_size.c src/verbs/unkind/recv_buffers.c)

$(SIM_BIN): $(call obj,$(SIM_SRC) daemon/netem/netem_plan.c daemon/netem/netem_link.c daemon/fault/fault_text.c) $(LIBCORE_CHECKED) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lisal

# Programs that write captures for the scripts in tests/e2e/capture.
E2E_BIN := $(addprefix $(BUILD)/tests/e2e/capture/,wire_gen cm_gen scene_gen lint_gen)
$(E2E_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(call obj,tests/e2e/capture/scene.c) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lisal

$(BUILD)/tests/e2e/capture/lint_gen: $(call obj,tests/e2e/capture/lint_sacks.c tests/e2e/capture/lint_spoil.c)

# A member of the group that may use a daemon, for the scripts in tests/e2e/daemon.
MEMBER := $(BUILD)/tests/e2e/daemon/member
E2E_BIN += $(MEMBER)
$(MEMBER): $(call obj,tests/e2e/daemon/member.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs -lpthread

# Traffic between all pairs of devices, likewise.
MESH := $(BUILD)/tests/e2e/daemon/mesh
E2E_BIN += $(MESH)
$(MESH): $(call obj,tests/e2e/daemon/mesh.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs -lpthread

# A router with one slow port, likewise.
BOTTLENECK := $(BUILD)/tests/e2e/daemon/bottleneck
E2E_BIN += $(BOTTLENECK)
$(BOTTLENECK): $(call obj,tests/e2e/daemon/bottleneck.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^

# A library for the daemon that makes each thread try to use files, for tests/e2e/daemon/sandbox.sh.
THREAD_FILES := $(BUILD)/tests/e2e/daemon/libthread_files.so
E2E_BIN += $(THREAD_FILES)
$(call obj,tests/e2e/daemon/thread_files.c): CFLAGS += -fPIC
$(THREAD_FILES): $(call obj,tests/e2e/daemon/thread_files.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -o $@ $^

# The benchmark of idle QPs.
IDLE_QPS := $(BUILD)/tests/bench/idle_qps
$(IDLE_QPS): $(call obj,tests/bench/idle_qps.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs

# The benchmark of a thread that polls after each request.
POST_POLL := $(BUILD)/tests/bench/post_poll
$(POST_POLL): $(call obj,tests/bench/post_poll.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs

# The benchmark of control work beside packets.
CONTROL_PAUSE := $(BUILD)/tests/bench/control_pause
$(CONTROL_PAUSE): $(call obj,tests/bench/control_pause.c) $(LIBDAEMON) $(LIBCORE) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lev -ljansson -lconfuse -lisal -lpcap -lmicrohttpd -lseccomp -lsystemd -lm -lpthread

# The benchmark of layouts, compared with lists and packing.
LAYOUT_BENCH := $(BUILD)/tests/bench/layout
$(LAYOUT_BENCH): $(call obj,tests/bench/layout.c) $(DV_SO)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -Wl,-rpath,$(abspath $(dir $(DV_SO))) -libverbs

# The benchmark of tag matching by depth.
$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIBCORE) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lisal

# Programs for the verbs API. They are linked with the system's library and run with ours.
$(BUILD)/tests/verbs/%: $(BUILD)/obj/tests/verbs/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< $(VT_LIBS) -libverbs -lpthread
$(filter $(BUILD)/tests/verbs/rdma_cm/%,$(VTEST_BIN)): VT_LIBS = -lrdmacm
# These programs make packets themselves.
WIRE_TESTS := $(filter $(BUILD)/tests/verbs/wire/%_wire,$(VTEST_BIN))
$(WIRE_TESTS): $(LIBWIRE)
$(WIRE_TESTS): VT_LIBS = $(LIBWIRE) -lisal
LAYOUT_TESTS := $(filter $(BUILD)/tests/verbs/layout/%,$(VTEST_BIN))
$(LAYOUT_TESTS): $(DV_SO)
$(LAYOUT_TESTS): VT_LIBS = $(DV_SO) -Wl,-rpath,$(abspath $(dir $(DV_SO)))

# The programs that run on any device, without those that test something of Pumice's own.
CONFORMANCE_BIN := $(patsubst tests/%.c,$(BUILD)/tests/%,$(shell grep -L 'VT_OWN."' tests/verbs/*/test_*.c) tests/verbs/describe.c)

# These programs call functions that the system's library may not have (tests/verbs/later.h).
LATER_TESTS := $(addprefix $(BUILD)/tests/verbs/,completion/test_comp_cntr memory/test_mr_ex)
$(LATER_TESTS): VT_LIBS = -Wl,-z,dynamic-undefined-weak

$(ENDURANCE): $(call obj,$(ENDURANCE_SRC))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -libverbs -lpthread

# The odd cases between Pumice and another device. One program for both ends.
ODD := $(BUILD)/tests/rxe/odd
$(ODD): $(call obj,$(wildcard tests/rxe/odd/*.c))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs

# The test that makes the daemon's calls fail: a library for the daemon, and the program beside it.
FAILING := $(BUILD)/tests/failing/libfailing.so $(BUILD)/tests/failing/each_call
$(call obj,tests/failing/preload.c): CFLAGS += -fPIC
$(BUILD)/tests/failing/libfailing.so: $(call obj,tests/failing/preload.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -o $@ $^
$(BUILD)/tests/failing/each_call: $(call obj,$(addprefix tests/failing/,each_call.c life.c life_cm.c daemon_state.c)) $(DV_SO)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -Wl,-rpath,$(abspath $(dir $(DV_SO))) -Wl,-z,dynamic-undefined-weak -ljansson -libverbs

# Examples, and the programs of the soak test: one file each, also linked with the system's library.
EXAMPLE_BIN := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
SOAK_BIN := $(patsubst tests/soak/%.c,$(BUILD)/tests/soak/%,$(wildcard tests/soak/*.c))
$(EXAMPLE_BIN) $(SOAK_BIN): $(BUILD)/%: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(EX_LIBS) -libverbs -lpthread
$(BUILD)/examples/transpose: $(DV_SO)
$(BUILD)/examples/transpose: EX_LIBS = -Wl,-rpath,$(abspath $(dir $(DV_SO)))

# A hostile member of a daemon's group, and a bystander.
HOSTILE := $(BUILD)/tests/soak/hostile/hostile
$(HOSTILE): $(call obj,$(wildcard tests/soak/hostile/*.c))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs -lpthread

# The example of a small MPI: programs and their shared layer. Its stress program is a test.
TAGMPI_LAYER := $(addprefix examples/tagmpi/,boot.c device.c match.c offload.c show.c tagmpi.c)
TAGMPI_BIN := $(patsubst examples/%.c,$(BUILD)/examples/%,$(filter-out $(TAGMPI_LAYER),$(wildcard examples/tagmpi/*.c)))
$(TAGMPI_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(call obj,$(TAGMPI_LAYER))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs
TAGMPI_STRESS := $(BUILD)/tests/tagmpi/stress
$(TAGMPI_STRESS): $(call obj,$(wildcard tests/tagmpi/*.c) $(TAGMPI_LAYER))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -libverbs

# The MPI programs, built once for each MPI with its own compiler wrapper. (MPICH's header declares an array size that
# MPI_STATUSES_IGNORE does not have.)
MPI_SRC := $(wildcard tests/mpi/*.c)
MPI_H := tests/mpi/mt.h tests/mpi/data.h
MPI_BIN := $(foreach mpi,openmpi mpich,$(patsubst tests/mpi/%.c,$(BUILD)/tests/mpi/$(mpi)/%,$(MPI_SRC)))
mpicc = mpicc.$(1) -D_GNU_SOURCE -I. $(CSTD) $(WARN) $(if $(filter mpich,$(1)),-Wno-stringop-overflow) $(OPT)
$(BUILD)/tests/mpi/openmpi/%: tests/mpi/%.c $(MPI_H)
	@mkdir -p $(@D)
	$(call mpicc,openmpi) -o $@ $< -lpthread
$(BUILD)/tests/mpi/mpich/%: tests/mpi/%.c $(MPI_H)
	@mkdir -p $(@D)
	$(call mpicc,mpich) -o $@ $< -lpthread

# The program of libfabric, if its headers are there.
FABRIC_BIN := $(if $(wildcard /usr/include/rdma/fabric.h),$(BUILD)/tests/mpi/fabric/datagram)
$(BUILD)/tests/mpi/fabric/datagram: $(BUILD)/obj/tests/mpi/fabric/datagram.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lfabric

# Programs that connect by rdma_cm, if the headers are there. tcp_echo knows nothing of RDMA.
RDMACM_BIN := $(addprefix $(BUILD)/tests/rdmacm/,tcp_echo $(if $(wildcard /usr/include/rdma/rdma_cma.h),churn) \
	$(if $(wildcard /usr/include/ucp/api/ucp.h),ucp_pair))
$(BUILD)/tests/rdmacm/churn: RDMACM_LIBS = -lrdmacm -libverbs
$(BUILD)/tests/rdmacm/ucp_pair: RDMACM_LIBS = -lucp -lucs
$(RDMACM_BIN): $(BUILD)/%: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(RDMACM_LIBS)

# Several MPI programs in one.
MPI_PARTS := p2p collectives onesided datatypes threads forks
MPI_SUITES := $(BUILD)/tests/mpi/openmpi/suite $(BUILD)/tests/mpi/mpich/suite
$(MPI_SUITES): $(BUILD)/tests/mpi/%/suite: tests/mpi/suite.c $(MPI_H) $(MPI_PARTS:%=tests/mpi/%.c)
	@mkdir -p $(@D)
	set -e; for part in $(MPI_PARTS); do \
		$(call mpicc,$*) -DMT_PART=part_$$part -c -o $(@D)/part_$$part.o tests/mpi/$$part.c; done
	$(call mpicc,$*) -o $@ $< $(MPI_PARTS:%=$(@D)/part_%.o) -lpthread

# --- packages --------------------------------------------------------------------------------------------------------
# Each target installs the groups of packages (see .ci/deps) that it needs, and only if something is missing.
.PHONY: deps deps-test deps-mpi deps-fuzz deps-bench deps-rxe deps-dev
deps:
	@.ci/deps build demo
deps-test:
	@.ci/deps build test
deps-mpi:
	@.ci/deps build mpi
deps-fuzz:
	@.ci/deps build fuzz
deps-bench:
	@.ci/deps build bench
deps-rxe:
	@.ci/deps build rxe
deps-dev:
	@.ci/deps build test mpi fuzz bench rxe dev

# --- running it ------------------------------------------------------------------------------------------------------
# These targets build with a second make, because the packages must be installed before the first compiler runs.
SUBMAKE = +@$(MAKE) --no-print-directory
RUN = +@BUILD=$(BUILD) tests/run.sh
SOAK_SECONDS ?= 600

.PHONY: demo
demo: deps
	$(SUBMAKE) all
	@PUMICE=$(PUMICE) examples/demo.sh

.PHONY: tests
tests: all $(UNIT_BIN) $(SIM_BIN) $(VTEST_BIN) $(E2E_BIN) $(EXAMPLE_BIN) $(TAGMPI_BIN) $(TAGMPI_STRESS) $(SOAK_BIN) $(HOSTILE) $(ODD) $(FAILING) $(RDMACM_BIN)

.PHONY: test test-unit test-sim test-verbs test-e2e
test: deps-test deps-mpi
	$(SUBMAKE) tests
	+@[ -n "$$LANES" ] || [ $$(nproc) -lt 2 ] || export LANES=2; BUILD=$(BUILD) tests/run.sh check unit sim verbs e2e
test-unit: deps-test
	$(SUBMAKE) $(UNIT_BIN)
	$(RUN) unit
test-sim: deps-test
	$(SUBMAKE) $(SIM_BIN)
	$(RUN) sim
ifeq ($(DEVICE),)
test-verbs: deps-test
	$(SUBMAKE) all $(VTEST_BIN)
	$(RUN) verbs
else
# The same programs on another device, with the system's libibverbs: make test-verbs DEVICE=rxe0. PEER: a second device.
# CONFORMANCE_ARGS: further options of tests/verbs/conformance.py.
test-verbs:
	@.ci/deps conformance
	$(SUBMAKE) conformance-programs
	@tests/verbs/conformance.py --build $(BUILD) --device $(DEVICE) $(if $(PEER),--peer $(PEER)) $(CONFORMANCE_ARGS)
endif
.PHONY: conformance-programs
conformance-programs: $(CONFORMANCE_BIN)
test-e2e: deps-test deps-mpi
	$(SUBMAKE) all $(VTEST_BIN) $(E2E_BIN) $(EXAMPLE_BIN) $(TAGMPI_BIN) $(TAGMPI_STRESS) $(SOAK_BIN) $(HOSTILE) $(ODD) $(FAILING) $(RDMACM_BIN)
	$(RUN) e2e

# Tests the Debian package under a real systemd, in a container. Needs root.
.PHONY: test-systemd
test-systemd: deb
	@.ci/deps systemd
	@BUILD=$(BUILD) tests/systemd/run.sh

# The examples for CI: the image and the compose file with a container engine, and the steps of the workflow in fresh root file systems. The
# latter needs root and the network.
.PHONY: test-container test-fresh
test-container: deps
	$(SUBMAKE) all
	@BUILD=$(BUILD) tests/container/run.sh
test-fresh:
	@.ci/deps fresh
	@BUILD=$(BUILD) tests/fresh/run.sh

# Pumice beside the soft-RoCE of a Linux kernel in a virtual machine, in both directions. Some twenty minutes without KVM.
# RXE_ARGS: options of tests/rxe/run.py.
.PHONY: test-rxe bench-guest
test-rxe: deps-rxe
	$(SUBMAKE) all $(ENDURANCE) $(ODD) $(filter %/churn,$(RDMACM_BIN))
	@BUILD=$(BUILD) tests/rxe/run.py $(RXE_ARGS); code=$$?$(if $(RXE_ARGS),,; BUILD=$(BUILD) tests/bench/slow_guest.py); exit $$code
# The latency of Pumice and of soft-RoCE in that machine. `make test-rxe` without RXE_ARGS shows it in the end. The exit code
# of `make test-rxe` does not depend on it.
bench-guest: deps-rxe
	$(SUBMAKE) all
	@BUILD=$(BUILD) tests/bench/slow_guest.py $(BENCH_ARGS)

# Each system call and each allocation of a daemon fails in turn, alone and with the next ones, while a session lives.
# `make test` does it for a selection. FAILING_ARGS: options and kinds of tests/failing/each_call.c.
.PHONY: test-failing
test-failing: deps-test
	$(SUBMAKE) all $(FAILING)
	@BUILD=$(BUILD) tests/failing/run.sh $(FAILING_ARGS)

# Captures all programs of the verbs suite, with both paths inside a device. `make test` checks most of these captures.
.PHONY: test-captured
test-captured: deps-test
	$(SUBMAKE) all $(VTEST_BIN)
	@BUILD=$(BUILD) tests/e2e/capture/captured.sh --full

# Real MPIs. A few of these tests are part of `make test`. `make test-mpi` runs more and takes some minutes.
# `make test-mpi-matrix` runs all combinations of MPIs, transports, ranks, hosts and faults, and takes about half an hour.
# `make test-mpi-long` measures the size of a daemon after a thousand MPI_Init. MPI_ARGS: options of tests/mpi/run.py.
.PHONY: test-mpi test-mpi-matrix test-mpi-long mpi-programs
mpi-programs: $(MPI_BIN) $(FABRIC_BIN)
test-mpi: deps-mpi
	$(SUBMAKE) all mpi-programs
	+@BUILD=$(BUILD) tests/mpi/run.py $(MPI_ARGS)
test-mpi-matrix: deps-mpi
	$(SUBMAKE) all mpi-programs
	+@BUILD=$(BUILD) tests/mpi/run.py --matrix $(MPI_ARGS)
test-mpi-long: deps-mpi
	$(SUBMAKE) all mpi-programs
	+@BUILD=$(BUILD) tests/mpi/run.py --long $(MPI_ARGS)

# Unmodified programs, pyverbs and MPIs on unkind devices, with three seeds. Some twenty-five minutes.
.PHONY: test-unkind
test-unkind: deps-mpi deps-test
	$(SUBMAKE) all mpi-programs $(ENDURANCE) $(ODD) $(RDMACM_BIN)
	+@BUILD=$(BUILD) tests/unkind.sh

# Whether the tests of features notice a missing feature: plants faults in a copy of the source tree.
.PHONY: test-can-fail
test-can-fail: deps-test
	+@BUILD=$(BUILD) tests/can_fail.sh $(CAN_FAIL_ARGS)

# Programs that connect by rdma_cm: rdmacm-utils, perftest -R, qperf, libfabric, UCX, fio, rsockets. `make test` runs some of these
# cases, this runs all of them. RDMACM_ARGS: options of tests/rdmacm/run.py.
.PHONY: test-rdmacm
test-rdmacm: deps-test
	$(SUBMAKE) all $(RDMACM_BIN)
	+@BUILD=$(BUILD) tests/rdmacm/run.py --full $(RDMACM_ARGS)

# The client library with other releases of rdma-core: the table of symbols, and provider libraries. With RDMA_CORE=DIR, a
# source tree of rdma-core, also its examples and its test suite.
.PHONY: test-rdma-core
test-rdma-core: deps-test
	@[ -z "$(RDMA_CORE)" ] || .ci/deps rdma-core
	$(SUBMAKE) all
	+@BUILD=$(BUILD) tests/rdma_core/run.py $(if $(RDMA_CORE),--rdma-core "$(RDMA_CORE)")

# Runs the simulator for SOAK_SECONDS with new seeds.
.PHONY: sim-soak
sim-soak: deps-test
	$(SUBMAKE) $(SIM_BIN)
	@end=$$(($$(date +%s) + $(SOAK_SECONDS))); while [ $$(date +%s) -lt $$end ]; do \
		$(SIM_BIN) --seed $$(date +%s%N) -n 20000 --out $(BUILD)/sim || exit 1; done

# A thousand programs that are killed one after the other. Then pairs of programs that start and end on several hosts, with
# faults and sudden deaths, for half an hour.
.PHONY: soak
soak: deps-test
	$(SUBMAKE) tests
	@VT_KILLS=1000 tests/verbs/run.sh -b $(BUILD) test_kills
	@BUILD=$(BUILD) tests/soak/soak.py $(SOAK_ARGS)

# A hostile member beside a bystander, a minute for each attack. `make test` runs it for some seconds. SOAK_ARGS: options of
# tests/soak/hostile.py. `make soak SOAK_ARGS=--hostile` has the member beside everything else.
.PHONY: soak-hostile
soak-hostile: deps-test
	$(SUBMAKE) all $(HOSTILE)
	@BUILD=$(BUILD) tests/soak/hostile.py $(SOAK_ARGS)

# 100,000 connections by rdma_cm, with faults and sudden deaths. `make test` opens some hundred. SOAK_ARGS: options of
# tests/soak/connections.py.
.PHONY: soak-connections
soak-connections: deps-test
	$(SUBMAKE) all $(RDMACM_BIN)
	@BUILD=$(BUILD) tests/soak/connections.py $(SOAK_ARGS)

# The same tests with sanitizers, in a separate build. Leaks in the operating system's programs are ignored; leaks in
# the unit tests and the simulator are errors. (Criterion does not work with ThreadSanitizer; the ring tests do not use
# Criterion.)
.PHONY: san tsan valgrind
san: deps-test
	$(SUBMAKE) BUILD=$(BUILD)/san SAN=address,undefined tests
	+@UBSAN_OPTIONS=print_stacktrace=1 BUILD=$(BUILD)/san tests/run.sh unit sim
	+@UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 \
		SANITIZED=yes BUILD=$(BUILD)/san tests/run.sh verbs e2e
tsan: deps-test
	$(SUBMAKE) BUILD=$(BUILD)/tsan SAN=thread tests
	+@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp ONLY='unit/*/test_ring|verbs/*' SANITIZED=yes BUILD=$(BUILD)/tsan tests/run.sh unit verbs
valgrind: deps-test deps-dev
	$(SUBMAKE) tests
	+@BUILD=$(BUILD) tests/run.sh valgrind

include tests/fuzz/fuzz.mk

# All benchmarks, then a table of the wanted figures with verdicts. It fails only if a benchmark fails to run. BENCH_ARGS: options
# of tests/bench/run.py.
.PHONY: bench
bench: deps-bench deps-mpi
	$(SUBMAKE) all $(BUILD)/tests/mpi/openmpi/perf $(BUILD)/tests/bench/tm_depth $(IDLE_QPS) $(CONTROL_PAUSE) $(RDMACM_BIN) $(BUILD)/tests/bench/tcp_connections $(LAYOUT_BENCH) \
		$(POST_POLL)
	@BUILD=$(BUILD) tests/bench/all.py $(BENCH_ARGS)

# The full stress test of matching, by the device and by software, without and with faults. `make test` runs a short
# version.
.PHONY: stress-tagmpi
stress-tagmpi: deps-test
	$(SUBMAKE) all $(TAGMPI_STRESS)
	@$(PUMICE) run --hosts 2 -- $(TAGMPI_STRESS) $(STRESS_ARGS)
	@$(PUMICE) run --hosts 2 --fault loss=2%,reorder=2% -- $(TAGMPI_STRESS) $(STRESS_ARGS)

# Beside computing processes, with a quota, on one processor. CROWDED_ARGS: options of tests/bench/crowded.py.
.PHONY: bench-crowded
bench-crowded: deps-bench deps-mpi
	$(SUBMAKE) all $(POST_POLL) mpi-programs
	@BUILD=$(BUILD) tests/bench/crowded.py $(CROWDED_ARGS)

# Compares both MPIs on Pumice with the same MPIs over TCP.
.PHONY: bench-mpi
bench-mpi: deps-mpi
	$(SUBMAKE) all $(foreach mpi,openmpi mpich,$(BUILD)/tests/mpi/$(mpi)/perf)
	@BUILD=$(BUILD) tests/bench/mpi.py $(BENCH_ARGS)

# A column of a matrix and faces of a cube, by layouts and by other means, between two hosts and within one device.
.PHONY: bench-layout
bench-layout: deps
	$(SUBMAKE) all $(LAYOUT_BENCH)
	@$(PUMICE) run --hosts 2 -- $(LAYOUT_BENCH) $(BENCH_ARGS)
	@$(PUMICE) run --hosts 1 -- $(LAYOUT_BENCH) $(BENCH_ARGS)

# --- the source tree -------------------------------------------------------------------------------------------------
C_FILES = $(shell find wire system daemon pcap include src tests examples -name '*.[ch]')
MAN_PAGES = $(wildcard docs/man/*.[1-8] docs/man/man3/*.3)

.PHONY: check-pure check-spdx check-man check-docs check-format format
check-pure: $(LIBCORE) $(LIBWIRE)
	@BUILD=$(BUILD) tests/check_pure.py --core $(LIBCORE) --wire $(LIBWIRE)
check-spdx:
	@tests/check_spdx.sh
check-man:
	@tests/check_man.sh $(MAN_PAGES)
check-docs:
	@tests/check_docs.py
check-format:
	@clang-format --dry-run -Werror $(C_FILES)
format:
	@clang-format -i $(C_FILES)

# --- installing ------------------------------------------------------------------------------------------------------
# The library goes to its own directory, which is in no search path: programs get it by `pumice run` or `pumice env`.
# Wireshark searches plugins only below its own prefix. If PREFIX is one of the system's prefixes,
# packaging/wireshark_dir.sh finds that directory; else plugins go below PREFIX. WIRESHARKDIR=none installs nothing for
# Wireshark except the files in share/pumice/wireshark.
VERSION := $(shell sed -n 's/^.define PUMICE_VERSION "\(.*\)"/\1/p' include/pumice/version.h)
WIRESHARKDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(shell packaging/wireshark_dir.sh),$(PREFIX)/lib/wireshark)
BINDIR = $(PREFIX)/bin
LIBDIR = $(PREFIX)/lib/pumice
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/pumice
SHARKDIR = $(PREFIX)/share/pumice/wireshark
INCDIR = $(PREFIX)/include/pumice
PCDIR = $(PREFIX)/lib/pkgconfig
SYSTEMUNITDIR = $(PREFIX)/lib/systemd/system
USERUNITDIR = $(PREFIX)/lib/systemd/user
SYSUSERSDIR = $(PREFIX)/lib/sysusers.d
COMPDIR = $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR = $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR = $(PREFIX)/share/fish/vendor_completions.d

SHARK_FILES = $(wildcard pcap/wireshark/*.lua) pcap/wireshark/README.md
PUBLIC_H = include/pumice/src.h include/pumice/layout.h include/pumice/mlx5.h
DOC_FILES = README.md CHANGELOG.md LICENSE $(wildcard docs/*.md docs/*.svg)
UNITS = pumiced.service pumiced.socket
WITH_PATHS = sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|'

# All installed files, without directories. `make uninstall` removes all of them.
INSTALLED = $(BINDIR)/pumice $(BINDIR)/pumiced $(LIBDIR)/libibverbs.so.1 $(LIBDIR)/libpumice.so.1 $(LIBDIR)/libpumice.so $(LIBDIR)/libpumice_check.so \
	$(addprefix $(INCDIR)/,$(notdir $(PUBLIC_H))) $(addprefix $(DOCDIR)/,$(notdir $(DOC_FILES))) \
	$(addprefix $(SHARKDIR)/,$(notdir $(SHARK_FILES))) $(addprefix $(SYSTEMUNITDIR)/,$(UNITS)) $(addprefix $(USERUNITDIR)/,$(UNITS)) $(SYSUSERSDIR)/pumice.conf \
	$(COMPDIR)/pumice $(COMPDIR)/pumiced $(ZSHCOMPDIR)/_pumice $(FISHCOMPDIR)/pumice.fish $(FISHCOMPDIR)/pumiced.fish $(PCDIR)/libpumice.pc \
	$(foreach page,$(MAN_PAGES),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page)))

# install_to DIRECTORY,MODE,FILES
install_to = install -d $(DESTDIR)$(1) && install -m $(2) $(3) $(DESTDIR)$(1)

.PHONY: install install-wireshark uninstall
install: all
	$(call install_to,$(BINDIR),755,$(PUMICE) $(PUMICED))
	$(call install_to,$(LIBDIR),755,$(VERBS_SO) $(DV_SO) $(CHECK_SO))
	ln -sf libpumice.so.1 $(DESTDIR)$(LIBDIR)/libpumice.so
	$(call install_to,$(INCDIR),644,$(PUBLIC_H))
	$(call install_to,$(DOCDIR),644,$(DOC_FILES))
	$(call install_to,$(SHARKDIR),644,$(SHARK_FILES))
	for page in $(MAN_PAGES); do install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done
	install -D -m 644 packaging/completion/pumice.bash $(DESTDIR)$(COMPDIR)/pumice
	ln -sf pumice $(DESTDIR)$(COMPDIR)/pumiced
	install -D -m 644 packaging/completion/_pumice $(DESTDIR)$(ZSHCOMPDIR)/_pumice
	install -D -m 644 packaging/completion/pumice.fish $(DESTDIR)$(FISHCOMPDIR)/pumice.fish
	ln -sf pumice.fish $(DESTDIR)$(FISHCOMPDIR)/pumiced.fish
	install -D -m 644 packaging/systemd/pumice.sysusers.conf $(DESTDIR)$(SYSUSERSDIR)/pumice.conf
	install -d $(DESTDIR)$(SYSTEMUNITDIR) $(DESTDIR)$(USERUNITDIR) $(DESTDIR)$(PCDIR)
	for unit in $(UNITS); do \
		$(WITH_PATHS) packaging/systemd/system/$$unit.in >$(DESTDIR)$(SYSTEMUNITDIR)/$$unit && \
		$(WITH_PATHS) packaging/systemd/user/$$unit.in >$(DESTDIR)$(USERUNITDIR)/$$unit || exit 1; done
	$(WITH_PATHS) packaging/libpumice.pc.in >$(DESTDIR)$(PCDIR)/libpumice.pc
	@$(MAKE) --no-print-directory install-wireshark

# Links: the extcap program is the command under another name.
install-wireshark:
	@dir='$(WIRESHARKDIR)'; if [ "$$dir" = none ]; then exit 0; fi; set -x; \
	mkdir -p "$(DESTDIR)$$dir/extcap" "$(DESTDIR)$$dir/plugins/pumice" && \
	ln -sfr "$(DESTDIR)$(BINDIR)/pumice" "$(DESTDIR)$$dir/extcap/pumice-extcap" && \
	for f in $(filter %.lua,$(notdir $(SHARK_FILES))); do \
		ln -sfr "$(DESTDIR)$(SHARKDIR)/$$f" "$(DESTDIR)$$dir/plugins/pumice/$$f" || exit 1; done
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	@dir='$(DESTDIR)$(WIRESHARKDIR)'; set -x; rm -f "$$dir/extcap/pumice-extcap"; \
	rm -f $(patsubst %,"$$dir/plugins/pumice/%",$(filter %.lua,$(notdir $(SHARK_FILES)))); \
	rmdir --ignore-fail-on-non-empty "$$dir/plugins/pumice" 2>/dev/null || :
	-rmdir $(addprefix $(DESTDIR),$(LIBDIR) $(DOCDIR) $(SHARKDIR) $(dir $(SHARKDIR)) $(INCDIR))

# Builds the Debian packages from a copy of the sources, in $(BUILD)/deb.
DEBDIR = $(BUILD)/deb
.PHONY: deb deb-here
deb:
	@.ci/deps build deb
	$(SUBMAKE) deb-here
deb-here:
	rm -rf $(DEBDIR)
	mkdir -p $(DEBDIR)/pumice-$(VERSION)
	tar -c --exclude=./.git --exclude='./build*' . | tar -x -C $(DEBDIR)/pumice-$(VERSION)
	cp -r packaging/debian $(DEBDIR)/pumice-$(VERSION)/debian
	cd $(DEBDIR)/pumice-$(VERSION) && env -u BUILD -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc
	rm -rf $(DEBDIR)/pumice-$(VERSION)
	ls $(DEBDIR)

.PHONY: clean
clean:
	rm -rf build

.PHONY: help
help:
	@echo 'make                library, daemon and command, in build/'
	@echo 'make demo           two virtual hosts on this machine, unmodified programs between them'
	@echo 'make test           every test (some ten minutes); in parts: test-unit test-sim test-verbs test-e2e'
	@echo 'make test-verbs DEVICE=NAME  the verbs tests on any RDMA device of this machine (PEER: a second one; docs/conformance.md)'
	@echo 'make test-captured  captures of all programs of the verbs suite, judged by the linter and by tshark (some minutes)'
	@echo 'make test-failing   each call of the daemon fails in turn (a minute or two)'
	@echo 'make test-container examples/ci with podman or docker'
	@echo 'make test-fresh     the steps of the example workflow in fresh root file systems (as root; some minutes)'
	@echo 'make test-systemd   the Debian package under a real systemd, in a container (as root; the first time some minutes)'
	@echo 'make test-rdma-core  the library with other releases of rdma-core; RDMA_CORE=DIR: also the examples and tests of that source tree'
	@echo 'make test-rxe       beside the soft-RoCE of a Linux kernel in a virtual machine (some twenty minutes; RXE_ARGS: tests/rxe/run.py --help)'
	@echo 'make test-mpi       Open MPI, MPICH and UCX on Pumice (some minutes; MPI_ARGS=--full: all; tests/mpi/run.py --help)'
	@echo 'make test-rdmacm    programs that connect by rdma_cm (about an hour; RDMACM_ARGS: tests/rdmacm/run.py --help)'
	@echo 'make test-unkind    unmodified programs and MPIs on unkind devices, with three seeds (some twenty-five minutes)'
	@echo 'make test-can-fail  plants faults that the tests of features must see (a quarter of an hour)'
	@echo 'make install        to PREFIX=$(PREFIX), below DESTDIR if set; make uninstall removes it'
	@echo 'make deb            Debian packages, in build/deb'
	@echo 'make bench          measures Pumice and its alternatives side by side (half an hour; BENCH_ARGS=--quick)'
	@echo 'make bench-crowded  Pumice and TCP beside computing processes, with a quota, on one processor (CROWDED_ARGS=--quick)'
	@echo 'make bench-mpi      both MPIs on Pumice and over TCP (BENCH_ARGS=--quick)'
	@echo 'make bench-guest    the latency of Pumice and of soft-RoCE in the virtual machine of make test-rxe (BENCH_ARGS=-r 1)'
	@echo 'make bench-layout   the cost of layouts, of scatter/gather lists, of packing and of a plain vectored copy'
	@echo 'make stress-tagmpi  100,000 messages with wildcards, matched by the device and by software (STRESS_ARGS: --messages, --seed, --ranks)'
	@echo 'make san            the tests with AddressSanitizer and UndefinedBehaviorSanitizer; tsan: with ThreadSanitizer'
	@echo 'make valgrind       the unit tests and some traffic under valgrind'
	@echo 'make fuzz           every fuzz target, for FUZZ_SECONDS=$(FUZZ_SECONDS) each'
	@echo 'make fuzz-corpus    keeps the inputs that make fuzz has found and that cover more, in tests/fuzz/corpus'
	@echo 'make soak           programs that start, end and crash on several hosts, for half an hour (SOAK_ARGS: tests/soak/soak.py --help)'
	@echo 'make soak-hostile   a hostile member beside a bystander: bandwidth and answers, a minute for each attack (as root; SOAK_ARGS: tests/soak/hostile.py --help)'
	@echo 'make soak-connections  100,000 connections by rdma_cm, with faults and sudden deaths (SOAK_ARGS: tests/soak/connections.py --help)'
	@echo 'make sim-soak       the simulator for SOAK_SECONDS=$(SOAK_SECONDS)'
	@echo 'make check-pure     the dependency rule; check-spdx, check-man, check-docs, check-format: licences, man pages, names in the documentation, format'
	@echo 'make format         clang-format over all'
	@echo 'make deps-dev       the packages of all targets; each target installs its own'
	@echo 'make clean          removes build/'

-include $(shell find $(BUILD)/obj $(BUILD)/checked -name '*.d' 2>/dev/null)

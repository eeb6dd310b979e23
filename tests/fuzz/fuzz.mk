# SPDX-License-Identifier: BSD-2-Clause
FUZZ_SECONDS ?= 600
# Runs each tests/fuzz/fuzz_*.c for FUZZ_SECONDS, from the inputs in tests/fuzz/corpus/NAME. Findings and new inputs stay in
# build/fuzz. `make fuzz-corpus` adds the new inputs that cover more to tests/fuzz/corpus.
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
$(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(LIBDAEMON) $(LIBCORE_CHECKED) $(LIBPCAPW) $(LIBWIRE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) -lev -ljansson -lconfuse -lisal -lpcap -lmicrohttpd -lseccomp -lsystemd -lpthread
$(BUILD)/tests/fuzz/fuzz_recording: $(RECORDING)
.PHONY: fuzz fuzz-bins fuzz-corpus
fuzz-bins: $(FUZZ_BIN)
fuzz: deps-fuzz
	$(SUBMAKE) BUILD=$(BUILD)/fuzz CC=$(CLANG) SAN=fuzzer-no-link,address,undefined fuzz-bins
	+@BUILD=$(BUILD)/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) TEST_TIMEOUT=$$(($(FUZZ_SECONDS) + 120)) tests/run.sh fuzz

fuzz-corpus:
	@for new in $(wildcard $(BUILD)/fuzz/corpus/*); do name=$${new##*/}; mkdir -p tests/fuzz/corpus/$$name && \
		$(BUILD)/fuzz/tests/fuzz/$$name -set_cover_merge=1 -max_len=8192 tests/fuzz/corpus/$$name $$new || exit 1; done

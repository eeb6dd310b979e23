# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of unkind devices (docs/unkind.md) that unmodified programs don't bear, because they rely on more than the specification
promises. With `--unkind all`, the devices of these cases are unkind in all other ways."""

import fnmatch

KINDS = ("placement", "visibility", "completions", "events", "polls", "buffers", "rnr", "acks")

# Runner, cases, the kinds that they don't bear, and what the programs rely on.
FINDINGS = (
    ("tests/e2e/programs/run.py", "*/ib_send_lat/*events*", ("events", "completions", "acks"), "it takes the next event for that of its SEND, though the channel is also that of its receive queue"),
    ("tests/e2e/programs/run.py", "*/ib_read_lat/*events*", ("events",), "it takes an event for a completion"),
    ("tests/e2e/programs/run.py", "*/ib_atomic_lat/*events*", ("events",), "it takes an event for a completion"),
    ("tests/mpi/run.py", "*/uc[xtp]/*", ("buffers",), "UCX posts buffers that cover the head of the next element of its pool"),
    ("tests/mpi/run.py", "*/openmpi/*", ("buffers",), "UCX, as above"),
    ("tests/mpi/run.py", "*/mpich/*", ("buffers",), "UCX, as above"),
    ("tests/rdmacm/run.py", "*/ucp/*", ("buffers",), "UCX, as above"),
    ("tests/rdmacm/run.py", "*/rsockets/*", ("placement",), "rsockets poll memory for the length of a buffer, which may come before its address"),
    ("tests/rdmacm/run.py", "*/rcopy/*", ("placement",), "rsockets, as above"),
    ("tests/rdmacm/run.py", "*/riostream/*", ("visibility",), "it polls memory for the last byte of a WRITE, and looks at the bytes of earlier ones"),
    ("tests/rdmacm/run.py", "*/r*stream/*", ("placement",), "rsockets, as above"),
)


# Tests of pyverbs that look for a message in its buffer after they have posted it again (traffic() of rdma-core's tests/utils.py).
PYVERBS_BUFFERS = (
    "tests.test_cq_events.CqEventsTestCase.test_cq_events_rc",
    "tests.test_cq_events.CqEventsTestCase.test_cq_events_ud",
    "tests.test_cqex.CqExTestCase.test_rc_traffic_cq_ex",
    "tests.test_cqex.CqExTestCase.test_ud_traffic_cq_ex",
    "tests.test_mr.MRTest.test_mr_rereg_addr",
    "tests.test_mr.MRTest.test_mr_rereg_pd",
    "tests.test_odp.OdpTestCase.test_odp_async_prefetch_rc_traffic",
    "tests.test_odp.OdpTestCase.test_odp_prefetch_async_no_page_fault_rc_traffic",
    "tests.test_odp.OdpTestCase.test_odp_prefetch_sync_no_page_fault_rc_traffic",
    "tests.test_odp.OdpTestCase.test_odp_rc_traffic",
    "tests.test_odp.OdpTestCase.test_odp_sync_prefetch_rc_traffic",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_default_allocators_rc_traffic",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_mem_align_rc_traffic",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_mem_align_srq_excq_rc_traffic",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_mem_align_ud_traffic",
    "tests.test_parent_domain.ParentDomainTrafficTest.test_without_allocators_rc_traffic",
    "tests.test_qpex.QpExTestCase.test_qp_ex_rc_rdma_write_imm",
    "tests.test_qpex.QpExTestCase.test_qp_ex_rc_send",
    "tests.test_qpex.QpExTestCase.test_qp_ex_rc_send_imm",
    "tests.test_qpex.QpExTestCase.test_qp_ex_ud_send",
    "tests.test_qpex.QpExTestCase.test_qp_ex_ud_send_imm",
    "tests.test_rdmacm.CMTestCase.test_rdmacm_async_traffic_external_qp",
    "tests.test_relaxed_ordering.RoTestCase.test_ro_rc_traffic",
    "tests.test_relaxed_ordering.RoTestCase.test_ro_ud_traffic",
    "tests.test_tag_matching.TMTest.test_tm_traffic",
)

# Tests of pyverbs, the kinds that they don't bear, and what they rely on.
PYVERBS_FINDINGS = (
    *((name, ("buffers",), "the message is still in its buffer after that was posted again") for name in PYVERBS_BUFFERS),
    ("tests.test_mr.MRTest.test_mr_rereg_pd", ("completions",), "the error of a SEND comes before the flushed receive requests of the same queue pair"),
    ("tests.test_tag_matching.TMTest.test_tm_rndv", ("completions", "acks"), "a SEND completes before the message that answers it"),
)


def unbearable(script, name):
    """The kinds that a case of a runner does not bear, and the reasons."""
    found = [(kinds, why) for runner, pattern, kinds, why in FINDINGS if runner == script and fnmatch.fnmatch(name, pattern)]
    return {kind for kinds, _ in found for kind in kinds}, [why for _, why in found]


def kinds_for(script, name, wanted):
    """The value of --unkind for a case. A list of kinds is taken as it is, so that a finding can be repeated. None: no kinds."""
    if wanted != "all":
        return wanted
    without, _ = unbearable(script, name)
    return ",".join(kind for kind in KINDS if kind not in without) if without else wanted


def excuse(test, wanted):
    """Why a test of pyverbs may fail on devices of these kinds; None: it may not."""
    kinds = KINDS if wanted == "all" else (wanted or "").split(",")
    return next((why for name, those, why in PYVERBS_FINDINGS if name == test and set(those) & set(kinds)), None)

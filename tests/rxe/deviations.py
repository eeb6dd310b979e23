# SPDX-License-Identifier: BSD-2-Clause
"""Where soft-RoCE itself differs from the specification. Two rxe devices differ in the same way from each other.

A case that ends exactly so counts as "deviates (rxe)". Every other result that is not the expected one is a failure.
"""

import dataclasses
import fnmatch
import re


@dataclasses.dataclass
class Deviation:
    case: str  # a name or an fnmatch pattern
    role: str  # of Pumice: "client", "server" or "both"
    seen: str  # a regular expression that the result contains
    reason: str
    always: bool = True  # False: only if packets are lost or repeated at a certain moment

    def fits(self, name, role):
        return self.role in (role, "both") and fnmatch.fnmatchcase(name, self.case)

    def explains(self, text):
        return re.search(self.seen, text, re.MULTILINE) is not None


LENGTH = "a message that is too long gets a remote operational error, and its receiver gets IBV_WC_LOC_QP_OP_ERR"
LKEY = "a bad local key is reported as IBV_WC_LOC_QP_OP_ERR; the QP of an unreliable service goes to ERR, not to SQE"
WINDOW = "the bounds of a memory window are not checked"
INV_FLAG = "the completion of a SEND with invalidate has flag 4 in place of IBV_WC_WITH_INV"
INV_ACK = "a SEND with a key that can't be invalidated is acknowledged before it is refused"
DROP = "an unreliable message that does not fit its receive request moves the receiver to ERR, and is not just dropped"
MISALIGNED = "a misaligned atomic is refused when it is posted"
DUPLICATE = "the PSN of the last ACK is only set by the first new request, so a duplicate that comes before gets a wrong ACK"
EVENTS = "there are no asynchronous events for requests that the responder refuses"
QKEY = "a Q_Key with its highest bit set is sent as it is, in place of the Q_Key of the QP"
LONG = "a datagram longer than the MTU vanishes without an error, as C10-93.1.1 says; Pumice reports it, as network cards do"
STUCK = "a requester of READs and atomics may stop for ever after a loss, if it also receives requests (two rxe devices do it as well)"
AGAIN = "the key of a READ without data is checked if the READ is repeated, and only then: it gets a NAK, and the responder is in ERR"
XRC = "there are no XRC queue pairs"

REFUSED = r"client: REM_OP_ERR; server: LOC_QP_OP_ERR; states: ERR ERR; data: right$"
PLACED = r"client: SUCCESS; server: -; states: RTS RTS; data: wrong in the target \(server\)$"
STOPPED = r"client: SUCCESS; server: LOC_QP_OP_ERR; states: RTS ERR; data: right$"
BAD_KEY = r"client: LOC_QP_OP_ERR; server: -; states: ERR RTS; data: right$"
LATE_NAK = r"client: SUCCESS; server: -; states: RTS ERR; data: right$"
ABSENT = r"server: -; states: RTS RTS; data: wrong in the receive buffers \(server\)$"

DEVIATIONS = [
    Deviation("*lose*/rdma_endurance/mixed", "server", r"client \(rxe\).*\n(.*\n)*no progress: posted", STUCK, always=False),
    Deviation("faults/both-double-and-reorder/rdma_endurance/mixed", "server", r"client \(rxe\).*\n(.*\n)*no progress: posted", STUCK, always=False),
    Deviation("*/ibv_xsrq_pingpong/*", "both", r"Couldn't Open the XRC Domain", XRC),
    Deviation("*/xrc", "both", r"XRC", XRC),
    Deviation("*/odd/send-too-long*", "client", REFUSED, LENGTH),
    Deviation("*/odd/srq-too-long", "client", REFUSED, LENGTH),
    Deviation("*/odd/receive-*", "client", REFUSED, LKEY),
    Deviation("*/odd/send-*-lkey", "server", BAD_KEY, LKEY),
    Deviation("*/odd/write-unknown-lkey", "server", BAD_KEY, LKEY),
    Deviation("*/odd/uc-send-unknown-lkey", "server", BAD_KEY, LKEY),
    Deviation("*/odd/send-lkey-other-pd", "server", BAD_KEY, LKEY),
    Deviation("*/odd/read-0-unknown-rkey", "client", LATE_NAK, AGAIN, always=False),
    Deviation("*/odd/window-?-1-be*", "client", PLACED, WINDOW),
    Deviation("*/odd/window-2-send-with-invalidate", "client", r"client: SUCCESS; server: RECV 10; states: RTS RTS; data: right$", INV_FLAG),
    Deviation("*/odd/window-2-write-after-invalidate", "client", r"client: SUCCESS, REM_ACCESS_ERR; server: RECV 10; states: ERR ERR; data: right$", INV_FLAG),
    Deviation("*/odd/window-2-invalidate-unknown-rkey", "client", r"client: SUCCESS; server: REM_INV_REQ_ERR; states: RTS ERR; data: right$", INV_ACK),
    Deviation("*/odd/uc-send-too-long", "client", STOPPED, DROP),
    Deviation("*/odd/ud-receive-too-small", "client", STOPPED, DROP),
    Deviation("*/odd/atomic-misaligned", "server", r"client: refused when posted; server: -; states: RTS RTS; data: right$", MISALIGNED),
    Deviation("*/odd/psn-behind", "client", r"client: RETRY_EXC_ERR; server: -; states: ERR RTS; data: right$", DUPLICATE),
    Deviation("*/odd/event-*", "client", r"states: ERR ERR; data: right; event: -$", EVENTS),
    Deviation("*/odd/ud-qkey-of-the-qp", "server", ABSENT, QKEY),
    Deviation("*/odd/ud-longer-than-the-mtu", "server", r"client: SUCCESS; server: -; states: RTS RTS; data: right$", LONG),
]


def find(name, role):
    """All deviations that are known of a case."""
    return [d for d in DEVIATIONS if d.fits(name, role)]

# SPDX-License-Identifier: BSD-2-Clause
"""Compares a lab's counters with those of an earlier moment. A case passes only if its job used the devices of every host, with the
operations and the faults of this case."""

from cases import WITH_SM

# Fewest packets of one of our jobs, for each rank. The wire-up alone takes some twenty packets.
PACKETS_MIN = 100
PACKETS_SHORT = 10  # of one that dies, or does next to nothing
FAULTS_SURE = 1500  # packets of which 1 % are lost and 1 % late: that none was is a matter of 1 in 10^13


class Traffic:
    """Counts from when it is made."""

    def __init__(self, lab):
        self.lab = lab
        self.start = self._read()

    def _read(self):
        """Each host's counters, those of its devices added up, and "makers": how often another process than before made a queue pair."""
        hosts = []
        for host in self.lab.hosts:
            total = {}
            for device in host.status()["devices"]:
                for name, value in dict(device["counters"], makers=device["usage"]["makers"]).items():
                    total[name] = total.get(name, 0) + value
            hosts.append(total)
        return hosts

    def each(self, name):
        """By how much a counter of status has grown on each host."""
        return [now[name] - before[name] for before, now in zip(self.start, self._read())]

    def silent(self):
        """The devices of all hosts that have sent nothing since the daemons were started."""
        return [f"{host.name}:{device['name']}" for host in self.lab.hosts for device in host.status()["devices"] if not device["counters"]["sent_pkts"]]

    def packets(self):
        """Packets that all hosts have sent; with one device, what its engine has kept inside counts, too."""
        return sum(self.each("sent_pkts"))

    def missing(self, case):
        """The traffic that a case's job should have made and has not. "": nothing is missing."""
        if case.transport in WITH_SM:
            # There may be no message for the device at all, but UCX opens it on each host.
            made = self.each("makers")
            return "" if min(made) else f"no process made a queue pair on some host: {made}"
        each = self.each("sent_pkts")
        wanted = (PACKETS_SHORT if case.death or case.check else PACKETS_MIN) * case.ranks
        if sum(each) < wanted:
            return f"the job did not use the device: {sum(each)} packets of at least {wanted}"
        if min(each) == 0 and case.ranks >= case.hosts:
            return f"the job was not on all hosts: {each} packets"
        if case.devices > 1 and self.silent():
            return f"the job did not use all devices: nothing was sent by {self.silent()}"
        return self.missing_faults(case)

    def missing_faults(self, case):
        """The same of the faults that the case is to have."""
        seen, struck = sum(self.each("fault_packets")), sum(self.each("fault_dropped")) + sum(self.each("fault_reordered"))
        return f"{seen} packets were to have faults, {struck} had" if case.faults and (not seen or seen >= FAULTS_SURE and not struck) else ""

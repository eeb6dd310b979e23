// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/net/check_network.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROCE_PORT 4791

/* --- the port ----------------------------------------------------------------------------------------------------- */

/* Searches /proc for the process that has the socket with this inode. Writes its name and PID. Returns false if this
 * user may not see the process, or if the kernel itself has the socket. */
static bool owner_of(unsigned long inode, char *comm, size_t size, long *pid)
{
    char want[64], link[300], path[300], text[300];
    struct dirent *p, *f;
    bool found = false;
    DIR *proc = inode ? opendir("/proc") : NULL, *fds;

    snprintf(want, sizeof(want), "socket:[%lu]", inode);
    while (proc && !found && (p = readdir(proc)) != NULL) {
        if (p->d_name[0] < '0' || p->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%.32s/fd", p->d_name);
        fds = opendir(path);
        while (fds && !found && (f = readdir(fds)) != NULL) {
            snprintf(link, sizeof(link), "/proc/%.32s/fd/%.32s", p->d_name, f->d_name);
            ssize_t n = readlink(link, text, sizeof(text) - 1);
            text[n > 0 ? n : 0] = 0;
            found = strcmp(text, want) == 0;
        }
        if (fds)
            closedir(fds);
        if (found) {
            static const struct doctor_report real = {.sysroot = ""};

            *pid = atol(p->d_name);
            snprintf(path, sizeof(path), "/proc/%.32s/comm", p->d_name);
            if (!doctor_report_read(&real, path, comm, size))
                snprintf(comm, size, "?");
            for (char *c = comm; *c; c++) { /* the name may hold anything, and goes to a terminal */
                if (*c < ' ' || *c > '~')
                    *c = '?';
            }
        }
    }
    if (proc)
        closedir(proc);
    return found;
}

static bool is_wildcard(const char *hex)
{
    return strspn(hex, "0") == strlen(hex);
}

/* Reports a socket with the RoCE port, from a line of /proc/net/udp or udp6. Returns true if it blocks the port on all
 * addresses. */
static bool report_socket(struct doctor_report *report, const char *hex, unsigned long inode)
{
    char comm[64] = "", module[PATH_MAX];
    long pid = 0;
    bool known = owner_of(inode, comm, sizeof(comm), &pid);

    snprintf(module, sizeof(module), "%s/sys/module/rdma_rxe", report->sysroot);
    if (!is_wildcard(hex)) {
        if (known && strcmp(comm, "pumiced") != 0)
            doctor_report_add(report, "port", FINDING_WARN, "end it, or give pumiced another --address",
                              "%s (pid %ld) uses UDP port %d of one address", comm, pid, ROCE_PORT);
        return false;
    }
    if (access(module, F_OK) == 0)
        doctor_report_add(report, "port", FINDING_FAIL,
                          "sudo modprobe -r rdma_rxe (or use another network namespace: unshare -n)",
                          "soft-RoCE (the kernel module rdma_rxe) uses UDP port %d of all addresses", ROCE_PORT);
    else if (known)
        doctor_report_add(report, "port", FINDING_FAIL, "end it (a pumiced uses only the addresses of its devices)",
                          "%s (pid %ld) uses UDP port %d of all addresses", comm, pid, ROCE_PORT);
    else
        doctor_report_add(report, "port", FINDING_FAIL, "to find the process, as root: ss -ulpn sport = :4791",
                          "a process of another user, or the kernel, uses UDP port %d of all addresses", ROCE_PORT);
    return true;
}

static bool look_for_port(struct doctor_report *report, const char *file, bool *readable)
{
    char name[PATH_MAX], line[512], hex[40];
    unsigned port;
    unsigned long inode;
    bool all = false;

    snprintf(name, sizeof(name), "%s%s", report->sysroot, file);
    FILE *f = fopen(name, "re");
    *readable |= f != NULL;
    while (f && !all && fgets(line, sizeof(line), f)) {
        if (sscanf(line, " %*u: %39[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*u %*u %lu", hex, &port, &inode) == 3 &&
            port == ROCE_PORT)
            all = report_socket(report, hex, inode);
    }
    if (f)
        fclose(f);
    return all;
}

void check_port(struct doctor_report *report)
{
    bool readable = false;
    bool all = look_for_port(report, "/proc/net/udp", &readable);

    all = look_for_port(report, "/proc/net/udp6", &readable) || all;
    if (!readable)
        doctor_report_add(report, "port", FINDING_UNKNOWN, "ss -uln", "/proc/net/udp can't be read");
    else if (!all)
        doctor_report_add(report, "port", FINDING_OK, "", "no process uses UDP port %d of all addresses", ROCE_PORT);
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

#define BUFFER_WANTED (4 << 20)

/* The size of a socket buffer that the kernel grants, or -1. */
static int granted(int option)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), v = BUFFER_WANTED;
    socklen_t len = sizeof(v);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, option, &v, sizeof(v)) != 0 || getsockopt(fd, SOL_SOCKET, option, &v, &len) != 0)
        v = -1;
    close(fd);
    return v > 0 ? v / 2 : v; /* the kernel returns twice the size that it grants */
}

void check_buffers(struct doctor_report *report)
{
    char text[32];
    int receive = granted(SO_RCVBUF), send = granted(SO_SNDBUF);

    if (report->sysroot[0] && doctor_report_read(report, "/proc/sys/net/core/rmem_max", text, sizeof(text)))
        receive = atoi(text);
    if (receive < 0 || send < 0)
        doctor_report_add(report, "buffers", FINDING_UNKNOWN, "", "can't create a UDP socket: %s", strerror(errno));
    else if (receive < BUFFER_WANTED || send < BUFFER_WANTED)
        doctor_report_add(
            report, "buffers", FINDING_WARN,
            "sudo sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304 (before the daemon starts)",
            "socket buffers have %d KiB (receive) and %d KiB (send). Large transfers are slower than with 4 MiB",
            receive >> 10, send >> 10);
    else
        doctor_report_add(report, "buffers", FINDING_OK, "", "socket buffers have 4 MiB");
}

/* --- MTU ---------------------------------------------------------------------------------------------------------- */

static unsigned path_mtu(int mtu)
{
    for (unsigned m = 4096; m >= 256; m /= 2) {
        if ((int)m + 76 <= mtu)
            return m;
    }
    return 0;
}

static void one_interface(struct doctor_report *report, int sock, const char *name)
{
    struct ifreq r = {0};
    char fix[128];

    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    if (ioctl(sock, SIOCGIFMTU, &r) != 0)
        return;
    unsigned fits = path_mtu(r.ifr_mtu);
    snprintf(fix, sizeof(fix), "sudo ip link set %s mtu 9000 (on both ends, and on all links between them)", name);
    if (fits == 0)
        doctor_report_add(report, "mtu", FINDING_FAIL, fix, "%s: an MTU of %d is too small for RoCE", name, r.ifr_mtu);
    else if (fits < 1024)
        doctor_report_add(report, "mtu", FINDING_WARN, fix, "%s: an MTU of %d allows a path MTU of only %u", name,
                          r.ifr_mtu, fits);
    else
        doctor_report_add(report, "mtu", FINDING_OK, fits < 4096 ? fix : "", "%s: MTU %d, path MTU %u%s", name,
                          r.ifr_mtu, fits, fits < 4096 ? "; jumbo frames would be faster" : "");
}

void check_mtu(struct doctor_report *report)
{
    struct ifaddrs *list = NULL;
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char seen[16][IFNAMSIZ];
    unsigned n = 0;

    if (getifaddrs(&list) != 0 || sock < 0)
        doctor_report_add(report, "mtu", FINDING_UNKNOWN, "ip link", "can't list the interfaces: %s", strerror(errno));
    for (const struct ifaddrs *i = list; i && n < 16; i = i->ifa_next) {
        bool again = false;

        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
            (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        for (unsigned k = 0; k < n; k++)
            again |= strcmp(seen[k], i->ifa_name) == 0;
        if (again)
            continue;
        snprintf(seen[n++], IFNAMSIZ, "%s", i->ifa_name);
        one_interface(report, sock, i->ifa_name);
    }
    freeifaddrs(list);
    if (sock >= 0)
        close(sock);
}

/* --- firewall ----------------------------------------------------------------------------------------------------- */

/* Reads the output of a firewall's list command. Returns 1 if a rule drops the RoCE port, or if an input chain drops by
 * default and no rule accepts the RoCE port. Returns 0 if not, and -1 if the rules can't be listed. */
static int drops_port(const char *command)
{
    char line[1024];
    int input = 0, named = 0;
    bool any = false, refused = false;
    FILE *f = popen(command, "r");

    while (f && fgets(line, sizeof(line), f)) {
        any = true;
        if ((strstr(line, "hook input") && strstr(line, "policy drop")) || strstr(line, ":INPUT DROP"))
            input = 1;
        if (strstr(line, "4791") &&
            (strstr(line, "drop") || strstr(line, "reject") || strstr(line, "-j DROP") || strstr(line, "-j REJECT")))
            refused = true;
        else if (strstr(line, "4791"))
            named = 1;
    }
    if (!f || pclose(f) != 0)
        return -1;
    return any && (refused || (input && !named));
}

/* Sends a byte to the RoCE port on the loopback interface. Returns 0 or errno; EPERM means that a firewall filters
 * packets that this host sends. */
static int send_error(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

    inet_pton(AF_INET, "127.255.255.254", &to.sin_addr); /* an address that no daemon uses */
    if (fd < 0 || sendto(fd, "", 1, 0, (const struct sockaddr *)&to, sizeof(to)) < 0)
        err = errno;
    if (fd >= 0)
        close(fd);
    return err;
}

void check_firewall(struct doctor_report *report)
{
    static const char fix[] =
        "sudo nft add rule inet filter input udp dport 4791 accept (or: sudo iptables -I INPUT -p udp "
        "--dport 4791 -j ACCEPT; firewall-cmd --add-port=4791/udp)";
    int nft = drops_port("PATH=$PATH:/usr/sbin:/sbin nft list ruleset 2>/dev/null");
    int ipt = drops_port("PATH=$PATH:/usr/sbin:/sbin iptables-save 2>/dev/null");
    int err = send_error();

    if (err == EPERM)
        doctor_report_add(report, "firewall", FINDING_FAIL, "allow UDP port 4791 in the output chain",
                          "a firewall of this host does not let packets to UDP port %d leave", ROCE_PORT);
    else if (nft == 1 || ipt == 1)
        doctor_report_add(
            report, "firewall", FINDING_WARN, fix,
            "the firewall of this host drops packets to UDP port %d, by a rule or by default: other hosts can't reach "
            "this one",
            ROCE_PORT);
    else if (nft < 0 && ipt < 0)
        doctor_report_add(
            report, "firewall", FINDING_UNKNOWN, "as root: nft list ruleset; iptables-save",
            "this user can't list the firewall's rules, or there is no firewall; `pumice ping HOST` shows "
            "whether packets arrive");
    else
        doctor_report_add(report, "firewall", FINDING_OK, "", "no firewall of this host blocks UDP port %d", ROCE_PORT);
}

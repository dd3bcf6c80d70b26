"""The filter against the kernel's own numbers, copied from its headers: a wrong number refuses another call.

`name x86_64 aarch64`, from `asm/unistd_64.h` and `asm-generic/unistd.h`; `-` where a machine has none.
Nothing of `fleet.jail.syscalls` is used here: a table that is compared with itself is always right.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jail.test_seccomp import ALLOW, ENOSYS, EPERM, KILL, NO_FAMILY, verdict

REFUSED = """
ptrace 101 117; process_vm_readv 310 270; process_vm_writev 311 271; process_madvise 440 440;
process_mrelease 448 448; kcmp 312 272; pidfd_getfd 438 438; mount 165 40; umount2 166 39;
pivot_root 155 41; chroot 161 51; setns 308 268; mknod 133 -; mknodat 259 33; open_by_handle_at 304 265;
name_to_handle_at 303 264; fanotify_init 300 262; fanotify_mark 301 263; quotactl 179 60;
quotactl_fd 443 443; add_key 248 217; request_key 249 218; keyctl 250 219; io_uring_setup 425 425;
io_uring_enter 426 426; io_uring_register 427 427; bpf 321 280; perf_event_open 298 241;
userfaultfd 323 282; modify_ldt 154 -; uselib 134 -; personality 135 92; vhangup 153 58;
nfsservctl 180 42; lookup_dcookie 212 18; _sysctl 156 -; sysfs 139 -; ustat 136 -; kexec_load 246 104;
kexec_file_load 320 294; init_module 175 105; finit_module 313 273; delete_module 176 106;
create_module 174 -; query_module 178 -; get_kernel_syms 177 -; reboot 169 142; swapon 167 224;
swapoff 168 225; acct 163 89; syslog 103 116; iopl 172 -; ioperm 173 -; clock_settime 227 112;
clock_adjtime 305 266; settimeofday 164 170; adjtimex 159 171; sethostname 170 161;
setdomainname 171 162; shmget 29 194; shmat 30 196; shmctl 31 195; msgget 68 186; semget 64 190;
mq_open 240 180; mq_unlink 241 181; mbind 237 235; set_mempolicy 238 237; get_mempolicy 239 236;
migrate_pages 256 238; move_pages 279 239; set_mempolicy_home_node 450 450; sched_setscheduler 144 119;
sched_setparam 142 118; sched_setattr 314 274
"""

ABSENT = """
clone3 435 435; open_tree 428 428; move_mount 429 429; fsopen 430 430; fsconfig 431 431;
fsmount 432 432; fspick 433 433; mount_setattr 442 442; memfd_create 319 279; memfd_secret 447 447;
statmount 457 457; listmount 458 458; open_tree_attr 467 467
"""

NEEDED = """
read 0 63; write 1 64; openat 257 56; close 3 57; fstat 5 80; mmap 9 222; mprotect 10 226;
munmap 11 215; brk 12 214; rt_sigaction 13 134; rt_sigprocmask 14 135; pread64 17 67; pwrite64 18 68;
readv 19 65; writev 20 66; dup 32 23; dup3 292 24; pipe2 293 59; nanosleep 35 101; getpid 39 172;
getppid 110 173; sendto 44 206; recvfrom 45 207; connect 42 203; bind 49 200; listen 50 201;
accept4 288 242; shutdown 48 210; getsockopt 55 209; setsockopt 54 208; execve 59 221; exit 60 93;
exit_group 231 94; wait4 61 260; kill 62 129; tgkill 234 131; uname 63 160; fcntl 72 25; flock 73 32;
fsync 74 82; fdatasync 75 83; ftruncate 77 46; getdents64 217 61; getcwd 79 17; chdir 80 49;
renameat2 316 276; mkdirat 258 34; unlinkat 263 35; symlinkat 266 36; linkat 265 37; readlinkat 267 78;
fchmodat 268 53; futex 202 98; epoll_create1 291 20; epoll_ctl 233 21; epoll_pwait 281 22;
eventfd2 290 19; set_tid_address 218 96; set_robust_list 273 99; getrandom 318 278; rseq 334 293;
clock_gettime 228 113; clock_nanosleep 230 115; sched_yield 24 124; gettid 186 178; statx 332 291;
prctl 157 167; pidfd_open 434 434; pidfd_send_signal 424 424; waitid 247 95; madvise 28 233;
mremap 25 216; seccomp 317 277; close_range 436 436; faccessat2 439 439; openat2 437 437;
getrusage 98 165; sysinfo 99 179; sigaltstack 131 132; pselect6 270 72; ppoll 271 73;
copy_file_range 326 285; fallocate 285 47; landlock_create_ruleset 444 444
"""

COLUMNS = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}
"""Place in a row, and `AUDIT_ARCH_*` of `linux/audit.h`."""
CLONE, UNSHARE, IOCTL, SOCKET, SOCKETPAIR = (56, 220), (272, 97), (16, 29), (41, 198), (53, 199)
NEW_USER, TIOCSTI, NETLINK, UNIX, INET, STREAM, DGRAM = 0x10000000, 0x5412, 16, 1, 2, 1, 2


def numbers(table: str, machine: str) -> Iterator[tuple[str, int]]:
    """The calls of a table that this machine has."""
    for row in table.replace("\n", " ").split(";"):
        words = row.split()
        if words[COLUMNS[machine][0]] != "-":
            yield words[0], int(words[COLUMNS[machine][0]])


@pytest.mark.parametrize("machine", COLUMNS)
@pytest.mark.parametrize(
    ("table", "wanted", "count"),
    [(REFUSED, EPERM, (75, 64)), (ABSENT, ENOSYS, (13, 13)), (NEEDED, ALLOW, (84, 84))],
    ids=["refused", "absent", "needed"],
)
def test_each_call_by_the_number_that_the_kernel_has_for_it(
    machine: str, table: str, wanted: int, count: tuple[int, int]
) -> None:
    column, audit = COLUMNS[machine]
    found = dict(numbers(table, machine))
    assert len(found) == count[column - 1]
    assert {
        name: answer
        for name, number in found.items()
        if (answer := verdict(machine, number, audit=audit)) != wanted
    } == {}


@pytest.mark.parametrize("machine", COLUMNS)
def test_the_calls_that_depend_on_an_argument(machine: str) -> None:
    place = COLUMNS[machine][0] - 1

    def answer(call: tuple[int, int], *arguments: int) -> int:
        return verdict(machine, call[place], *arguments, audit=COLUMNS[machine][1])

    assert (answer(CLONE, NEW_USER), answer(CLONE, 17)) == (EPERM, ALLOW)
    assert (answer(UNSHARE, NEW_USER), answer(UNSHARE, 0x400)) == (EPERM, ALLOW)
    assert (answer(IOCTL, 0, TIOCSTI), answer(IOCTL, 0, 0x5401)) == (EPERM, ALLOW)
    assert (answer(SOCKET, NETLINK), answer(SOCKET, UNIX), answer(SOCKET, INET)) == (
        NO_FAMILY,
        NO_FAMILY,
        ALLOW,
    )
    assert (answer(SOCKETPAIR, INET, STREAM), answer(SOCKETPAIR, UNIX, DGRAM)) == (NO_FAMILY, EPERM)
    assert answer(SOCKETPAIR, UNIX, STREAM) == ALLOW


@pytest.mark.parametrize("machine", COLUMNS)
def test_the_last_call_that_is_known(machine: str) -> None:
    """`file_setattr` of Linux 6.17 has number 469 everywhere; what comes after it nobody has looked at."""
    audit = COLUMNS[machine][1]
    assert (verdict(machine, 469, audit=audit), verdict(machine, 470, audit=audit)) == (ALLOW, ENOSYS)
    (other,) = COLUMNS.keys() - {machine}
    assert verdict(machine, 469, audit=COLUMNS[other][1]) == KILL

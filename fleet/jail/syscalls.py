"""System call numbers of the two machines we fence, and which answer each refused call gets.

Numbers: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`
(aarch64); above 423 both tables agree. Which calls to refuse: Flatpak's and Docker's lists, and what the
escape battery proved to be open.
"""

from __future__ import annotations

LAST_KNOWN = 469
"""`file_setattr` (Linux 6.17). A later call answers ENOSYS: a deny-list must not admit future calls."""

# name -> (x86_64, aarch64); None where the machine has no such call
DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory and files
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # counted for the host's user: a jail could take every instance of its own daemon
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # the keyrings are not namespaced: the caller's session keyring would be in reach
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # large kernel surfaces
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "_sysctl": (156, None),
    "sysfs": (139, None),
    "ustat": (136, None),
    # the machine itself
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, None),
    "query_module": (178, None),
    "get_kernel_syms": (177, None),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # memory that no rlimit counts, memory placement, priorities
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "set_mempolicy_home_node": (450, 450),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}
"""Answer EPERM."""

ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),  # its flags are behind a pointer; libc falls back to clone
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "memfd_create": (319, 279),  # 1.2 GiB were written despite every rlimit
    "memfd_secret": (447, 447),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
}
"""Answer ENOSYS, so that a library takes its older way."""

CHECKED: dict[str, tuple[int, int]] = {
    "clone": (56, 220),
    "unshare": (272, 97),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
"""Decided by an argument; the rules are in `fleet.jail.seccomp`."""

/* Preloaded into a native program: forks it before `main`, once for each input.

   Descriptors, from sandbox/runners/server.py: CONTROL is read, one byte for each execution; STATUS is
   written, one `struct said` each. 0, 1 and 2 are files that the driver empties and fills between executions.
   A child has none but those three. It is ended with every descendant that it left behind (this process is
   their reaper) before its status is said, and cannot signal this process where the kernel has Landlock.
   This process keeps no file of /proc that a child could open (not dumpable).

   cc -O2 -shared -fPIC -o forkserver.so forkserver.c -ldl
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTROL = 200, STATUS = 201, RULES = 202, ROUNDS = 10000 };
enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, SCOPED = 3 }; /* abstract sockets and signals, ABI 6 */

struct said {
    int32_t status;
    uint32_t count; /* of numbers that follow; none here */
    uint64_t cpu_us;
    uint64_t peak;
};

typedef int (*main_type)(int, char **, char **);
typedef int (*start_type)(main_type, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
static main_type program;

static int fence(void) {
    uint64_t attributes[3] = {0, 0, SCOPED};
    int rules = syscall(CREATE_RULESET, attributes, sizeof attributes, 0);
    if (rules < 0)
        return 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    dup3(rules, RULES, O_CLOEXEC);
    close(rules);
    return 1;
}

static void become_child(int fenced) {
    close(CONTROL);
    close(STATUS);
    if (fenced) {
        syscall(RESTRICT_SELF, RULES, 0);
        close(RULES);
    }
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    setsid();
}

/* Kill and reap the orphans that came to this process; 0 when some are left. */
static int end_orphans(void) {
    char path[64], pids[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < ROUNDS; round++) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);
        if (ended < 0 && errno == ECHILD)
            return 1;
        if (ended > 0)
            continue;
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = file < 0 ? -1 : read(file, pids, sizeof pids - 1);
        if (size < 0)
            return 0;
        close(file);
        pids[size] = 0;
        char *end, *at = pids;
        for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
            if (*end || size < (ssize_t)sizeof pids - 1) /* the last number of a full page may be cut */
                kill((pid_t)pid, SIGKILL);
            at = end;
        }
        usleep(round < 10 ? 50 : 1000);
    }
    return 0;
}

static int serve(int argc, char **argv, char **variables) {
    char order;
    int fenced = fence();
    struct said said = {0};
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (write(STATUS, &said, sizeof said) != sizeof said)
        _exit(1);
    while (read(CONTROL, &order, 1) == 1) {
        struct rusage used;
        siginfo_t ended;
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            become_child(fenced);
            return program(argc, argv, variables);
        }
        if (pid < 0)
            _exit(2);
        while (waitid(P_PID, pid, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
            ;
        kill(-pid, SIGKILL); /* while its number is still taken */
        if (wait4(pid, &status, 0, &used) != pid || !end_orphans())
            _exit(3);
        said.status = status;
        said.cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000ull + used.ru_utime.tv_usec
                      + used.ru_stime.tv_usec;
        said.peak = (uint64_t)used.ru_maxrss << 10;
        if (write(STATUS, &said, sizeof said) != sizeof said)
            _exit(4);
    }
    _exit(0);
}

int __libc_start_main(main_type main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    start_type start = (start_type)dlsym(RTLD_NEXT, "__libc_start_main");
    unsetenv("LD_PRELOAD");
    program = main;
    return start(fcntl(STATUS, F_GETFD) < 0 ? main : serve, argc, argv, init, fini, rtld_fini, stack_end);
}

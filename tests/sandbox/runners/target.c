/* The native twin of target.py. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int depth;

static int recurse(int n) {
    volatile char frame[4096];
    frame[0] = (char)n;
    depth++;
    return recurse(n + 1) + frame[0];
}

static void leave_daemon(void) {
    int ends[2];
    char pid[32] = {0};
    if (pipe(ends))
        exit(9);
    if (fork() == 0) {
        setsid();
        if (fork())
            _exit(0);
        dprintf(ends[1], "%d", (int)getpid());
        signal(SIGPIPE, SIG_IGN);
        for (int i = 0; i < 600; i++)
            usleep(write(1, "later", 5) < 0 ? 100000 : 99999);
        _exit(0);
    }
    if (read(ends[0], pid, sizeof pid - 1) > 0)
        fputs(pid, stderr);
}

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void litter(void) {
    char here[4096];
    if (!getcwd(here, sizeof here) || mkdir("deep", 0700) || mkdir("deep/er", 0700))
        exit(9);
    close(open("deep/er/file", O_CREAT | O_WRONLY, 0600));
    unlink("deep/er/file");
    rmdir("deep/er");
    rmdir("deep");
    if (rmdir(here))
        exit(9);
}

static void fill(const char *path, const char *block) {
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    while (file >= 0 && write(file, block, 65536) > 0)
        ;
}

int main(void) {
    char word[256] = {0}, block[65536];
    if (read(0, word, sizeof word - 1) < 0)
        return 9;
    memset(block, 'x', sizeof block);
    if (is(word, "error"))
        return fputs("error: bad\n", stderr), 1;
    if (is(word, "panic"))
        return fputs("panicked\n", stderr), 101;
    if (is(word, "abort"))
        abort();
    if (is(word, "segfault"))
        return recurse(0);
    while (is(word, "flood"))
        fwrite(block, 1, sizeof block, stdout);
    while (is(word, "loop"))
        depth++;
    if (is(word, "sleep"))
        sleep(60);
    if (is(word, "hog")) {
        char *held = malloc(1400 << 20);
        memset(held, 1, 1400 << 20);
        return 100 + held[99];
    }
    if (is(word, "daemon"))
        return leave_daemon(), 0;
    if (is(word, "parent"))
        kill(getppid(), SIGKILL);
    for (int fd = 0; is(word, "descriptors") && fd < 256; fd++)
        if ((fd < 1 || fd > 2) && write(fd, block, 64) < 0)
            continue;
    if (is(word, "files everywhere")) {
        signal(SIGXFSZ, SIG_IGN);
        fill("/box/full", block);
        fill("/tmp/full", block);
        fill("/dev/shm/full", block);
    }
    if (is(word, "litter"))
        litter();
    printf("out:%s", is(word, "memory of the last") ? "none" : word);
    return 0;
}

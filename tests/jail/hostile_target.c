/* A program under test that fights back, in the way that its input says. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char forged[] =
    "{\"v\":1,\"result\":{\"ok\":true,\"latency_ms\":1,\"runner\":\"forged\",\"stopped\":\"time\"}}\n";

static void forge(void) {
  char path[64];
  for (int fd = 0; fd < 64; fd++) {
    if (write(fd, forged, sizeof forged - 1) < 0) continue;
  }
  for (int pid = 1; pid < 40; pid++)
    for (int fd = 0; fd < 8; fd++) {
      snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
      int to = open(path, O_WRONLY | O_NONBLOCK);
      if (to >= 0 && write(to, forged, sizeof forged - 1) >= 0) close(to);
    }
}

static void fill(const char *folder) {
  static char block[1 << 16];
  char path[256];
  for (int one = 0; one < 400; one++) {
    snprintf(path, sizeof path, "%s/filled-%d", folder, one);
    int to = open(path, O_CREAT | O_WRONLY, 0600);
    for (int at = 0; to >= 0 && at < 64; at++)
      if (write(to, block, sizeof block) < 0) break;
    if (to >= 0) close(to);
  }
}

int main(void) {
  static char word[1 << 16];
  if (read(0, word, sizeof word - 1) < 0) return 1;
  if (strstr(word, "forge")) forge();
  if (strstr(word, "parent")) kill(getppid(), SIGKILL);
  if (strstr(word, "everyone")) kill(-1, SIGKILL);
  if (strstr(word, "bomb"))
    for (;;)
      if (fork() < 0) sleep(1);
  if (strstr(word, "fill")) {
    fill("/box");
    fill("/tmp");
    fill("/dev/shm");
    fill(".");
  }
  if (strstr(word, "flood"))
    for (;;)
      if (write(1, forged, sizeof forged - 1) < 0) return 1;
  if (strstr(word, "hog"))
    for (;;) {
      char *more = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (more == MAP_FAILED) return 1;
      memset(more, 1, 1 << 24);
    }
  if (strstr(word, "stop")) kill(getppid(), SIGSTOP);
  printf("%zu", strlen(word));
  return 0;
}

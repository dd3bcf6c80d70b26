/* A compiler of words with defects: `@` panics, 70 nested brackets abort, `#` is compiled to something else
   each time, and `once`, with a path given, aborts the first time only. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static char text[1 << 20];
  size_t size = fread(text, 1, sizeof text - 1, stdin);
  int depth = 0;
  struct timespec now;
  if (argc > 1 && strstr(text, "once") && open(argv[1], O_CREAT | O_EXCL, 0600) >= 0) abort();
  for (size_t at = 0; at < size; at++) {
    if (text[at] == '@') {
      fprintf(stderr, "at sign\n");
      return 101;
    }
    depth += (text[at] == '(') - (text[at] == ')');
    if (depth >= 70) abort();
    if (text[at] == '%') {
      fprintf(stderr, "error: no such word\n");
      return 1;
    }
    if (text[at] == '#') {
      clock_gettime(CLOCK_MONOTONIC, &now);
      printf("%ld\n", now.tv_nsec);
    }
    putchar(text[at] == ' ' ? '\n' : text[at]);
  }
  return 0;
}

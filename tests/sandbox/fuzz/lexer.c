/* A compiler whose only defects are inside of strings: an escape without its digits panics, one of a surrogate
   aborts, and an odd character reads behind its table. Everything else is copied out. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int escape(const char *at) {
  if (at[0] == 'x' && !(isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]))) {
    fprintf(stderr, "escape without digits\n");
    return 101;
  }
  if (at[0] == 'u' && (!strncmp(at + 1, "d800", 4) || !strncmp(at + 1, "{d800", 5))) abort();
  return 0;
}

int main(void) {
  static char text[1 << 20];
  size_t size = fread(text, 1, sizeof text - 8, stdin);
  char open = 0;
  for (size_t at = 0; at < size; at++) {
    char one = text[at];
    int code = open && one == '\\' ? escape(text + at + 1) : 0;
    if (code) return code;
    if (open && !strncmp(text + at, "\xe2\x80\xae", 3)) {
      fprintf(stderr, "no width for it\n");
      return 102;
    }
    if (open && one == '\\') at++;
    else if (open ? one == open : one == '"' || one == '\'') open = open ? 0 : one;
    else if (one == '%') return fprintf(stderr, "error: no such sign\n"), 1;
    putchar(one == ' ' ? '\n' : one);
  }
  return 0;
}

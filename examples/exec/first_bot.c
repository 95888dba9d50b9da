/* A bot in the exec protocol (docs/reference/exec-protocol.md) in plain C: plays the first legal action of any game.

   It reads lines and finds the few fields that it needs by hand; a bot that looks at the view will want a JSON library.

   Build and try it:
     cc -O2 -o first_bot examples/exec/first_bot.c
     bothost plugin check "exec:./first_bot" --game pairing --games 20
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value after "key": in a line, or NULL. The fields that we ask for stand before the view, so the first is ours. */
static const char *find(const char *line, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(line, quoted);
  if (at == NULL) return NULL;
  at += strlen(quoted);
  while (*at == ' ') at++;
  return at;
}

static int is_type(const char *line, const char *type) {
  const char *value = find(line, "type");
  return value != NULL && value[0] == '"' && strncmp(value + 1, type, strlen(type)) == 0 && value[1 + strlen(type)] == '"';
}

int main(void) {
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    if (is_type(line, "hello")) {
      puts("{\"type\": \"hello\", \"version\": 1, \"name\": \"first-bot\", \"games\": [\"*\"]}");
    } else if (is_type(line, "decide")) {
      const char *id = find(line, "id");
      const char *legal = find(line, "legal");
      const char *open = legal == NULL ? NULL : strchr(legal, '"');
      const char *close = open == NULL ? NULL : strchr(open + 1, '"');
      if (id == NULL || close == NULL) continue; /* never answered: the host falls back */
      printf("{\"type\": \"action\", \"id\": %ld, \"action\": \"%.*s\"}\n", strtol(id, NULL, 10),
             (int)(close - open - 1), open + 1);
    }
    fflush(stdout);
  }
  free(line);
  return 0;
}

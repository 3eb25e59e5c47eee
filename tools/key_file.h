/* tools/key_file.h -- which key file a command uses. */
#ifndef TOOLS_KEY_FILE_H
#define TOOLS_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The one given, or for NULL that of this machine's loopback server; false: nothing says where that is. */
bool tool_key_file(const char *given, char *to, size_t size);

#endif

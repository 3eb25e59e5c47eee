/* rpc/server/landlock.h -- inside the room: the system calls of Landlock, whose numbers and structs are
 * those of every architecture since Linux 5.13. The headers of older systems, which programs for boards are
 * built with, lack them.
 */
#ifndef RPC_SERVER_LANDLOCK_H
#define RPC_SERVER_LANDLOCK_H

#include <stdint.h>

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* numbers of system calls */
enum { RULESET_VERSION = 1, PATH_BENEATH = 1 };

/* Rights on files; TO_REFER came with the second version, TO_TRUNCATE with the third. */
enum {
    TO_EXECUTE = 1 << 0,
    TO_WRITE_FILE = 1 << 1,
    TO_READ_FILE = 1 << 2,
    TO_READ_DIR = 1 << 3,
    TO_MAKE_SYM = 1 << 12,
    TO_REFER = 1 << 13,
    TO_TRUNCATE = 1 << 14
};

typedef struct {
    uint64_t handled;
} landlock_ruleset;

typedef struct {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed)) landlock_below;

#endif

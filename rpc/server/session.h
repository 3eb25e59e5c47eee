/* rpc/server/session.h -- a session's process: it reads questions of one client from its socket, and answers
 * them.
 *
 *     if (rpc_is_session(argc, argv)) return rpc_session_main(argc, argv);     // first thing in main
 *
 * The server starts its own program with the words of rpc_session_words; between the two processes go the
 * messages of the wire, each behind eight bytes: the length of its body and its kind. No key is ever in this
 * process. Its first message is `opened` or `failure`; a process that was started with the device "list"
 * answers `listed` and ends.
 */
#ifndef RPC_SERVER_SESSION_H
#define RPC_SERVER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RPC_SESSION_SOCKET = 3, RPC_SESSION_WATCHER = 4 }; /* files that the server gives the process */
enum { RPC_SESSION_HEAD = 8, RPC_SESSION_WORDS = 8, RPC_SESSION_WORD = 64 };

typedef struct {
    const char *device; /* "cpu:0", or "list" */
    int64_t memory_bytes;
    double seconds; /* told to the client; the server keeps the time */
    bool weak;
    int version;   /* of the protocol */
    int64_t piece; /* longest body of a data message */
} rpc_session_options;

/* argv[1] and so on; NULL behind the last. */
void rpc_session_words(const rpc_session_options *options, char words[RPC_SESSION_WORDS][RPC_SESSION_WORD],
                       char *argv[RPC_SESSION_WORDS + 2]);
/* Whether sessions on the device need no driver. */
bool rpc_is_cpu(const char *device);
bool rpc_is_session(int argc, char **argv);
int rpc_session_main(int argc, char **argv);

#endif

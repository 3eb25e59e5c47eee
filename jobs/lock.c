/* jobs/lock.c -- see lock.h. */
#include "jobs/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between open and flock the owner may have removed the file: then we hold the lock of a file that nobody
 * else can find, and begin again. */
bool job_lock_take(tec_context *cx, job_lock *lock, const char *records, const char *job)
{
    struct stat s;

    lock->path = base_format(cx, "%s.%s.lock", records, job);
    for (;;) {
        lock->fd = open(lock->path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
        if (lock->fd < 0)
            return base_fail(cx, TEC_IO, (base_loc){.file = lock->path},
                             "cannot make the lock of the job: %s", strerror(errno));
        if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
            close(lock->fd);
            lock->fd = -1;
            return base_fail(cx, TEC_INVALID, (base_loc){.file = records},
                             "another process is tuning this file with the same options; to tune beside it, "
                             "give another --seed");
        }
        if (fstat(lock->fd, &s) == 0 && s.st_nlink > 0)
            return true;
        close(lock->fd);
    }
}

void job_lock_release(job_lock *lock)
{
    if (lock->fd < 0)
        return;
    unlink(lock->path);
    close(lock->fd);
    lock->fd = -1;
}

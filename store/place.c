/* store/place.c -- refuses network file systems: their locks and shared memory do not hold between machines,
 * and a store that two machines write there is damaged.
 *
 * statfs gives a number for each kind. FUSE is one number for local and remote alike, so there the list of
 * mounts says more.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "store/sql.h"

enum { FUSE = 0x65735546 };

static const struct {
    unsigned long magic;
    const char *name;
} networks[] = {
    {0x6969, "NFS"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},
    {0x517b, "SMB"},
    {0x01021997, "9p"},
    {0x5346414f, "AFS"},
    {0x6b414653, "AFS"},
    {0x00c36400, "Ceph"},
    {0x73757245, "Coda"},
    {0x564c, "NCP"},
    {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x01161970, "GFS2"},
    {0x7461636f, "OCFS2"},
    {0x013661be, "BeeGFS"},
    {0x19830326, "BeeGFS"},
    {0x786f4256, "VirtualBox folder"},
    {0xaad7aaea, "PanFS"},
    {0x20030528, "OrangeFS"},
};

/* FUSE file systems of one machine. */
static const char *const local_fuse[] = {"fuseblk", "fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ntfs-3g",
                                         "fuse.exfat"};

const char *store_network_name(long magic)
{
    for (int i = 0; i < BASE_COUNT(networks); i++)
        if (networks[i].magic == ((unsigned long)magic & 0xffffffffu))
            return networks[i].name;
    return NULL;
}

/* The kind of the mount of a device, from a line "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS] - KIND
 * SOURCE ...". */
static bool mount_kind(const char *line, dev_t device, char kind[64])
{
    const char *dash = strstr(line, " - ");
    unsigned major_number, minor_number;

    return dash && sscanf(line, "%*s %*s %u:%u", &major_number, &minor_number) == 2 &&
           major_number == major(device) && minor_number == minor(device) &&
           sscanf(dash, " - %63s", kind) == 1;
}

/* Where the list does not know the device, nothing says that it is local. */
static const char *fuse_kind(tec_context *cx, dev_t device)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    char *line = NULL, kind[64] = "FUSE";
    size_t size = 0;

    while (mounts && getline(&line, &size, mounts) > 0)
        if (mount_kind(line, device, kind))
            break;
    free(line);
    if (mounts)
        fclose(mounts);
    return store_find_word(local_fuse, BASE_COUNT(local_fuse), kind) >= 0 ? NULL : base_strdup(cx, kind);
}

/* Looks at the folder, since the file may not exist yet. False with an error for a network file system. */
bool store_check_place(tec_context *cx, const char *path, const char *real_path)
{
    const char *folder = dirname(base_strdup(cx, real_path));
    struct statfs fs;
    struct stat st;

    if (statfs(folder, &fs) != 0 || stat(folder, &st) != 0)
        return base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot look at the folder '%s': %s", folder,
                         strerror(errno));
    const char *name = fs.f_type == FUSE ? fuse_kind(cx, st.st_dev) : store_network_name((long)fs.f_type);
    if (!name)
        return true;
    return base_fail(
        cx, TEC_UNSUPPORTED, (base_loc){.file = path},
        "a record store cannot lie on a network file system (%s): locks do "
        "not hold between machines there. Put it on a local disk, and copy it by 'tec records export'",
        name);
}

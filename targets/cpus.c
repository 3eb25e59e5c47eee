/* targets/cpus.c -- finding architectures, their CPUs, and the features of a CPU. */
#include <string.h>

#include "targets/cpus.h"

const target_arch *const target_archs[] = {
#define TARGET_ARCH(name, component) &target_arch_##name,
#include "targets/archs.def"
};
const int target_n_archs = BASE_COUNT(target_archs);

const target_arch *target_arch_find(const char *name)
{
    for (int i = 0; i < target_n_archs; i++)
        if (!strcmp(target_archs[i]->name, name))
            return target_archs[i];
    return NULL;
}

const target_cpu *target_cpu_of(const target_arch *arch, const char *name)
{
    for (int i = 0; i < arch->n_cpus; i++)
        if (!strcmp(arch->cpus[i].name, name))
            return &arch->cpus[i];
    return NULL;
}

const target_cpu *target_cpu_find(const char *name, const target_arch **arch)
{
    for (int i = 0; i < target_n_archs; i++) {
        const target_cpu *found = target_cpu_of(target_archs[i], name);
        if (found) {
            *arch = target_archs[i];
            return found;
        }
    }
    return NULL;
}

bool target_set_has(const base_vec *set, const char *name)
{
    for (int i = 0; i < set->n; i++)
        if (!strcmp(set->at[i], name))
            return true;
    return false;
}

void target_set_add(tec_context *cx, base_vec *set, const char *name)
{
    if (target_set_has(set, name))
        return;
    base_push(cx, set, name);
    for (int i = set->n - 1; i > 0 && strcmp(set->at[i - 1], set->at[i]) > 0; i--) {
        void *t = set->at[i];
        set->at[i] = set->at[i - 1];
        set->at[i - 1] = t;
    }
}

void target_set_remove(base_vec *set, const char *name)
{
    int n = 0;
    for (int i = 0; i < set->n; i++)
        if (strcmp(set->at[i], name))
            set->at[n++] = set->at[i];
    set->n = n;
}

static void add_words(tec_context *cx, base_vec *set, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        target_set_add(cx, set, base_strndup(cx, p, n));
        p += n + strspn(p + n, " ");
    }
}

base_vec target_cpu_features(tec_context *cx, const target_arch *arch, const target_cpu *cpu)
{
    base_vec set = {0};
    for (const target_cpu *c = cpu; c; c = c->parent ? target_cpu_of(arch, c->parent) : NULL)
        add_words(cx, &set, c->features);
    return set;
}

base_vec target_known_features(tec_context *cx, const target_arch *arch)
{
    base_vec set = {0};
    for (int i = 0; i < arch->n_cpus; i++)
        add_words(cx, &set, arch->cpus[i].features);
    add_words(cx, &set, arch->more_features);
    return set;
}

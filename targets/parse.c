/* targets/parse.c -- from text to a complete description, and back.
 *
 * A CPU description starts from a row of the table of CPUs; -mattr adds and removes features, and what
 * follows from the features (vector width, registers) is derived, so that nothing can disagree. The canonical
 * text is the row's name plus what differs from the row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "targets/cpus.h"

/* What the words of a description said; NULL or 0 where they said nothing. */
typedef struct {
    tec_context *cx;
    const char *text;
    const target_kind *kind;
    const char *triple, *cpu, *attributes, *model, *device, *host, *precision;
    int64_t num_cores, l1, l2, l3;
    bool failed;
} words;

typedef struct {
    const char *name;
    size_t text, number; /* offset of the field of `words` that it sets, + 1; 0: none */
    const char *what;
} option;

#define TEXT(field) offsetof(words, field) + 1, 0
#define NUMBER(field) 0, offsetof(words, field) + 1
static const option cpu_options[] = {
    {"-mtriple", TEXT(triple), "a target triple"},
    {"-mcpu", TEXT(cpu), "a CPU"},
    {"-mattr", TEXT(attributes), "features, as +a,-b"},
    {"-num-cores", NUMBER(num_cores), "a positive number"},
    {"-l1", NUMBER(l1), "a positive number of bytes"},
    {"-l2", NUMBER(l2), "a positive number of bytes"},
    {"-l3", NUMBER(l3), "a positive number of bytes"},
    {"-model", TEXT(model), "a class of devices, as records name it"},
    {"-precision", TEXT(precision), "exact, tf32 or fast"},
};

/* The option at place i of a kind; without a name behind the last. */
static option option_at(const target_kind *kind, int i)
{
    option device = {kind->option, TEXT(device), kind->wants};
    static const option host = {"-host", TEXT(host), "the CPU beside the device, as -mcpu takes it"};
    static const option precision = {"-precision", TEXT(precision), "exact, tf32 or fast"};
    if (kind->features & TARGET_CPU)
        return i < BASE_COUNT(cpu_options) ? cpu_options[i] : (option){0};
    if (!kind->option)
        i++;
    if (i > 0 && !(kind->features & TARGET_THREADS))
        return (option){0};
    return i == 0 ? device : i == 1 ? host : i == 2 ? precision : (option){0};
}

static void complain(words *list, const char *what, const char *word, const char *exists)
{
    base_fail(list->cx, TEC_INVALID, (base_loc){0}, "target '%s': unknown %s '%s'; there are %s", list->text,
              what, word, exists);
    list->failed = true;
}

static void list_name(tec_context *cx, base_text *list, const char *name)
{
    if (list->n)
        base_add(cx, list, ", ");
    base_add(cx, list, name);
}

static const char *option_names(tec_context *cx, const target_kind *kind)
{
    base_text list = {0};
    for (int i = 0; option_at(kind, i).name; i++)
        list_name(cx, &list, option_at(kind, i).name);
    return list.n ? base_text_str(cx, &list) : "none";
}

static const char *cpu_names(tec_context *cx, const target_arch *arch)
{
    base_text list = {0};
    for (int i = 0; i < target_n_archs; i++)
        for (int k = 0; k < target_archs[i]->n_cpus && (!arch || arch == target_archs[i]); k++)
            list_name(cx, &list, target_archs[i]->cpus[k].name);
    list_name(cx, &list, "native");
    return base_text_str(cx, &list);
}

static const char *kind_names(tec_context *cx)
{
    base_text list = {0};
    list_name(cx, &list, "native");
    for (int i = 0; i < target_n_kinds; i++)
        list_name(cx, &list, target_kinds[i].name);
    return base_text_str(cx, &list);
}

/* Stores the value of an option where its row of the table says: a text, or a positive number. */
static void set_option(words *list, const option *self, const char *value)
{
    if (self->text) {
        *(const char **)((char *)list + self->text - 1) = value;
        return;
    }
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno || *end || end == value || n <= 0) {
        base_fail(list->cx, TEC_INVALID, (base_loc){0}, "target '%s': %s expects %s, found '%s'", list->text,
                  self->name, self->what, value);
        list->failed = true;
        return;
    }
    *(int64_t *)((char *)list + self->number - 1) = n;
}

/* One word NAME=VALUE of a target's text. The message about an unknown option lists those of the kind. */
static void read_option(words *list, const char *word)
{
    const char *value = strchr(word, '=');
    const char *name = value ? base_strndup(list->cx, word, (size_t)(value - word)) : word;
    option o;
    for (int i = 0; o = option_at(list->kind, i), o.name; i++) {
        if (strcmp(o.name, name))
            continue;
        if (value && value[1]) {
            set_option(list, &o, value + 1);
        } else {
            base_fail(list->cx, TEC_INVALID, (base_loc){0}, "target '%s': %s needs %s, as %s=...", list->text,
                      name, o.what, name);
            list->failed = true;
        }
        return;
    }
    complain(list, "option", name, option_names(list->cx, list->kind));
}

/* ---- CPUs ---- */

static const char *feature_names(tec_context *cx, const base_vec *known)
{
    base_text list = {0};
    for (int i = 0; i < known->n; i++)
        list_name(cx, &list, known->at[i]);
    return base_text_str(cx, &list);
}

/* -mattr=+a,-b: the features on top of the CPU's row, and those taken away from it. */
static void apply_attributes(words *list, const target_arch *arch, base_vec *on, base_vec *off)
{
    base_vec known = target_known_features(list->cx, arch);
    for (const char *p = list->attributes; p && *p;) {
        size_t n = strcspn(p, ",");
        const char *word = base_strndup(list->cx, p, n);
        if ((word[0] != '+' && word[0] != '-') || !word[1]) {
            base_fail(list->cx, TEC_INVALID, (base_loc){0},
                      "target '%s': -mattr expects features as +a,-b, found '%s'", list->text, word);
            list->failed = true;
            return;
        }
        if (!target_set_has(&known, word + 1)) {
            complain(list, "feature", word + 1, feature_names(list->cx, &known));
            return;
        }
        target_set_remove(word[0] == '+' ? off : on, word + 1);
        target_set_add(list->cx, word[0] == '+' ? on : off, word + 1);
        p += n + (p[n] == ',');
    }
}

/* Both sets in one text, sorted by name. */
static const char *feature_text(tec_context *cx, const base_vec *on, const base_vec *off)
{
    base_text t = {0};
    for (int i = 0, j = 0; i < on->n || j < off->n;) {
        bool plus = j == off->n || (i < on->n && strcmp(on->at[i], off->at[j]) < 0);
        base_addf(cx, &t, "%s%c%s", t.n ? "," : "", plus ? '+' : '-',
                  (const char *)(plus ? on->at[i++] : off->at[j++]));
    }
    return base_text_str(cx, &t);
}

bool target_has(const target *machine, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = machine->features; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (*p == '+' && !strncmp(p + 1, name, n) && (p[n + 1] == ',' || !p[n + 1]))
            return true;
    return false;
}

/* Whether a list of beginnings, with blanks between them, has one of the text. */
static bool begins_with_any(const char *text, const char *list)
{
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (!strncmp(text, p, n))
            return true;
        p += n;
    }
    return false;
}

/* "x86_64-..., aarch64-..." */
static const char *triple_names(tec_context *cx)
{
    base_text list = {0};
    for (int i = 0; i < target_n_archs; i++)
        list_name(cx, &list, base_format(cx, "%s-...", target_archs[i]->name));
    return base_text_str(cx, &list);
}

static const target_arch *arch_of_triple(words *list)
{
    for (int i = 0; i < target_n_archs; i++)
        if (begins_with_any(list->triple, target_archs[i]->triples))
            return target_archs[i];
    complain(list, "architecture of triple", list->triple, triple_names(list->cx));
    return NULL;
}

/* Without a CPU the first row of the triple's architecture, or of this machine's. */
static const target_cpu *choose_cpu(words *list, const target_arch **arch)
{
    *arch = list->triple ? arch_of_triple(list) : NULL;
    if (list->failed)
        return NULL;
    if (!list->cpu) {
        if (!*arch)
            *arch = target_host_arch() ? target_host_arch() : target_archs[0];
        return &(*arch)->cpus[0];
    }
    const target_cpu *cpu = *arch ? target_cpu_of(*arch, list->cpu) : target_cpu_find(list->cpu, arch);
    if (!cpu)
        complain(list, *arch ? base_format(list->cx, "%s CPU", (*arch)->name) : "CPU", list->cpu,
                 cpu_names(list->cx, *arch));
    return cpu;
}

/* A complete description: the row of the CPU, the user's changes, and what follows from both (vector width,
 * registers). */
static target *make_cpu(words *list, const target_arch *arch, const target_cpu *cpu)
{
    base_vec on = target_cpu_features(list->cx, arch, cpu), off = {0};
    apply_attributes(list, arch, &on, &off);
    if (list->failed)
        return NULL;
    target *t = base_new(list->cx, target);
    t->kind = list->kind;
    t->offers = list->kind->features;
    t->arch = arch;
    /* Debian's name of an architecture says nothing of its version */
    t->triple = list->triple && !base_starts_with(list->triple, "arm-") ? list->triple : arch->triple;
    t->cpu = cpu->name;
    t->features = feature_text(list->cx, &on, &off);
    t->num_cores = list->num_cores ? (int)list->num_cores : 1;
    t->l1_bytes = list->l1 ? list->l1 : cpu->l1_bytes;
    t->l2_bytes = list->l2 ? list->l2 : cpu->l2_bytes;
    t->l3_bytes = list->l3 ? list->l3 : cpu->l3_bytes;
    t->model = list->model;
    t->load_ports = cpu->load_ports;
    t->fma_ports = cpu->fma_ports;
    t->lines_fetched = cpu->lines_fetched;
    arch->derive(t);
    if (!target_offers(t, TARGET_VECTORS))
        t->vector_bits = 0;
    t->native = !target_unfit(list->cx, t);
    return t;
}

/* The row with the most features that are all there, its differences as attributes. */
static const target_cpu *nearest_row(tec_context *cx, const target_machine *machine)
{
    const target_cpu *best = NULL;
    int most = -1;
    for (int i = 0; i < machine->arch->n_cpus; i++) {
        base_vec set = target_cpu_features(cx, machine->arch, &machine->arch->cpus[i]);
        int missing = 0;
        for (int j = 0; j < set.n; j++)
            missing += !target_set_has(&machine->features, set.at[j]);
        if (!missing && set.n > most) {
            best = &machine->arch->cpus[i];
            most = set.n;
        }
    }
    return best;
}

/* A machine as the nearest row of the table plus what it has besides. Options that the user gave win. */
static target *make_machine(words *list, const target_machine *machine)
{
    const target_cpu *cpu = machine->arch ? nearest_row(list->cx, machine) : NULL;
    if (!cpu)
        return base_fail(list->cx, TEC_UNSUPPORTED, (base_loc){0},
                         "target '%s': tec does not know the architecture of this machine's CPU", list->text);
    base_text t = {0};
    base_vec row = target_cpu_features(list->cx, machine->arch, cpu);
    for (int i = 0; i < machine->features.n; i++)
        if (!target_set_has(&row, machine->features.at[i]))
            base_addf(list->cx, &t, "+%s,", (const char *)machine->features.at[i]);
    if (list->attributes)
        base_add(list->cx, &t, list->attributes);
    list->attributes = t.n ? base_text_str(list->cx, &t) : NULL;
    list->num_cores = list->num_cores ? list->num_cores : machine->num_cores;
    list->l1 = list->l1 ? list->l1 : machine->l1_bytes;
    list->l2 = list->l2 ? list->l2 : machine->l2_bytes;
    list->l3 = list->l3 ? list->l3 : machine->l3_bytes;
    return make_cpu(list, machine->arch, cpu);
}

static target *make_native(words *list)
{
    target_machine m = target_this_machine(list->cx);
    return make_machine(list, &m);
}

/* The machine that a description names by all its features, those left out that no kernel uses. */
static target_machine machine_of(words *list)
{
    target_machine m = {.arch = list->triple ? arch_of_triple(list) : NULL};
    base_vec known = m.arch ? target_known_features(list->cx, m.arch) : (base_vec){0};
    for (const char *p = list->attributes; p && *p; p += strcspn(p, ","), p += *p == ',') {
        const char *name = base_strndup(list->cx, p + 1, strcspn(p, ",") > 0 ? strcspn(p, ",") - 1 : 0);
        if (*p == '+' && target_set_has(&known, name))
            target_set_add(list->cx, &m.features, name);
    }
    list->triple = list->attributes = NULL;
    return m;
}

/* ---- other kinds ---- */

/* What schedules ask of a CPU, for a device whose blocks run on such cores. */
static void take_cores(target *device, const target *cores)
{
    device->offers |= TARGET_CORES;
    device->vector_bits = cores->vector_bits;
    device->vector_registers = cores->vector_registers;
    device->sum_registers = cores->sum_registers;
    device->has_fma = cores->has_fma;
    device->has_memory_operands = cores->has_memory_operands;
    device->load_ports = cores->load_ports;
    device->fma_ports = cores->fma_ports;
    device->l1_bytes = cores->l1_bytes;
    device->l2_bytes = cores->l2_bytes;
}

/* The row of the kind's table; `name` NULL: the first one. A kind without an option has one device, without a
 * name and without limits. NULL with an error. */
static const target_device *find_device(words *list, const char *name)
{
    static const target_device unnamed = {.name = ""};
    base_text names = {0};
    if (!list->kind->option)
        return &unnamed;
    for (int i = 0; i < target_n_devices; i++) {
        const target_device *device = &target_devices[i];
        if (strcmp(device->kind, list->kind->name))
            continue;
        list_name(list->cx, &names, device->name);
        if (!name || !strcmp(name, device->name))
            return device;
    }
    complain(list, "device", name, base_text_str(list->cx, &names));
    return NULL;
}

/* What a row of the table says, in the fields of a target. */
static target *make_device(words *list, const target_device *found, const target *host)
{
    bool nvidia = strncmp(found->name, "sm_", 3) == 0;
    const target *cores =
        found->cores ? target_parse(list->cx, base_format(list->cx, "llvm -mcpu=%s", found->cores)) : NULL;
    target *t = base_new(list->cx, target);
    *t = (target){.kind = list->kind,
                  .offers = list->kind->features,
                  .capability = nvidia ? atoi(found->name + 3) : 0,
                  .own_instructions = nvidia && found->name[strlen(found->name) - 1] == 'a',
                  .host = host,
                  .triple = "",
                  .cpu = found->name,
                  .features = "",
                  .num_cores = 1,
                  .max_threads = found->max_threads,
                  .max_block = {found->max_threads, found->max_threads, found->max_z},
                  .warp_size = found->warp_size,
                  .shared_bytes = found->shared_bytes,
                  .register_bytes = found->register_bytes,
                  .no_f64 = found->no_f64,
                  .has_fma = found->has_fma};
    if (cores)
        take_cores(t, cores);
    return t;
}

/* sm_90a before sm_90 before sm_80, whatever the user wrote. */
static int most_first(const void *a, const void *b)
{
    const target *one = *(const target *const *)a, *other = *(const target *const *)b;
    return one->capability != other->capability ? other->capability - one->capability
                                                : strcmp(other->cpu, one->cpu);
}

/* The limits of all, and the names from the least on: "-arch=sm_90a,sm_75" becomes "sm_75,sm_90a" with the 64
 * KiB of shared memory of sm_75 and the instructions of both. */
static const target *join_devices(words *list, const target **each, int n)
{
    target *all = base_copy(list->cx, each[0], sizeof *all);
    base_text names = {0};
    qsort(each, (size_t)n, sizeof *each, most_first);
    for (int i = n - 1; i >= 0; i--) {
        const target *t = each[i];
        base_addf(list->cx, &names, "%s%s", names.n ? "," : "", t->cpu);
        all->capability = t->capability < all->capability ? t->capability : all->capability;
        all->max_threads = t->max_threads < all->max_threads ? t->max_threads : all->max_threads;
        for (int k = 0; k < 3; k++)
            all->max_block[k] = t->max_block[k] < all->max_block[k] ? t->max_block[k] : all->max_block[k];
        all->shared_bytes = t->shared_bytes < all->shared_bytes ? t->shared_bytes : all->shared_bytes;
        all->register_bytes =
            t->register_bytes < all->register_bytes ? t->register_bytes : all->register_bytes;
        all->no_f64 = all->no_f64 || t->no_f64;
    }
    all->own_instructions = false; /* those of sm_90a are no other architecture's */
    all->cpu = base_text_str(list->cx, &names);
    all->each = each;
    all->n_each = n;
    return all;
}

/* False with an error: there is no such device, or it was named before. */
static bool add_device(words *list, const char *name, const target *host, base_vec *each)
{
    const target_device *found = find_device(list, name);
    if (!found)
        return false;
    for (int i = 0; i < each->n; i++)
        if (!strcmp(((const target *)each->at[i])->cpu, found->name)) {
            base_fail(list->cx, TEC_INVALID, (base_loc){0}, "target '%s': %s names '%s' twice", list->text,
                      list->kind->option, found->name);
            return false;
        }
    base_push(list->cx, each, make_device(list, found, host));
    return true;
}

/* A device, or several with commas between them where the kind has code for several. */
static const target *make_devices(words *list)
{
    const target *host =
        list->host ? target_parse(list->cx, base_format(list->cx, "llvm -mcpu=%s", list->host)) : NULL;
    const char *p = list->device;
    base_vec each = {0};
    if (list->host && !host)
        return NULL;
    if (p && strchr(p, ',') && !(list->kind->features & TARGET_SEVERAL))
        return base_fail(list->cx, TEC_INVALID, (base_loc){0}, "target '%s': %s names one device, found '%s'",
                         list->text, list->kind->option, p);
    do {
        size_t n = p ? strcspn(p, ",") : 0;
        if (!add_device(list, p ? base_strndup(list->cx, p, n) : NULL, host, &each))
            return NULL;
        p = p && p[n] ? p + n + 1 : NULL;
    } while (p);
    return each.n == 1 ? each.at[0] : join_devices(list, (const target **)each.at, each.n);
}

/* ---- the room's functions ---- */

static const char *next_word(tec_context *cx, const char **p)
{
    *p += strspn(*p, " \t\n");
    size_t n = strcspn(*p, " \t\n");
    const char *word = n ? base_strndup(cx, *p, n) : NULL;
    *p += n;
    return word;
}

/* The machine, without its precision, of a text that target_parse takes apart. */
static const target *parse_machine(words *w)
{
    tec_context *cx = w->cx;
    const char *text = w->text;
    const char *p = text, *first = next_word(cx, &p);
    bool native = first && !strcmp(first, "native");
    const target_kind *kind = native ? target_kind_find("llvm") : first ? target_kind_find(first) : NULL;
    if (!kind) {
        complain(w, "kind of target", first ? first : "", kind_names(cx));
        return NULL;
    }
    w->kind = kind;
    for (const char *word; (word = next_word(cx, &p)) && !w->failed;)
        read_option(w, word);
    if (w->failed)
        return NULL;
    if (!(kind->features & TARGET_CPU))
        return make_devices(w);
    if (native && (w->cpu || w->triple))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "target '%s': 'native' means the CPU of this machine, so -mcpu and -mtriple cannot "
                         "be given with it",
                         text);
    if (native || (w->cpu && !strcmp(w->cpu, "native")))
        return make_native(w);
    const target_arch *arch;
    const target_cpu *cpu = choose_cpu(w, &arch);
    return cpu ? make_cpu(w, arch, cpu) : NULL;
}

/* From a text such as "llvm -mcpu=skylake-avx512 -num-cores=4". NULL with an error that quotes the text. */
const target *target_parse(tec_context *cx, const char *text)
{
    if (!text)
        return NULL;
    words w = {.cx = cx, .text = text};
    const target *machine = parse_machine(&w);
    return machine && w.precision ? target_with_precision(cx, machine, w.precision) : machine;
}

const target *target_of_machine(tec_context *cx, const char *text)
{
    words w = {.cx = cx, .text = text, .kind = target_kind_find("llvm")};
    const char *p = text, *first = next_word(cx, &p);
    if (!first || strcmp(first, w.kind->name))
        return base_fail(cx, TEC_INVALID, (base_loc){0},
                         "'%s' does not describe a CPU: expected 'llvm -mtriple=...'", text);
    for (const char *word; (word = next_word(cx, &p)) && !w.failed;)
        read_option(&w, word);
    target_machine m = w.failed ? (target_machine){0} : machine_of(&w);
    return w.failed ? NULL : make_machine(&w, &m);
}

const target *target_native(tec_context *cx)
{
    return target_parse(cx, "native");
}

/* The features that the machine has and the row of its CPU has not (+), and those that it lacks (-). */
static void add_attributes(tec_context *cx, base_text *out, const target *machine, const base_vec *row)
{
    const char *lead = " -mattr=";
    for (const char *p = machine->features; *p; p += strcspn(p, ","), p += *p == ',') {
        const char *name = base_strndup(cx, p + 1, strcspn(p, ",") - 1);
        if (*p == '+' && target_set_has(row, name))
            continue;
        base_addf(cx, out, "%s%c%s", lead, *p, name);
        lead = ",";
    }
}

/* Whether the CPU alone says which architecture is meant: not where an earlier row has one of that name, nor
 * with the name that says nothing. */
static bool names_arch(const target *machine)
{
    const target_arch *found = NULL;
    return target_cpu_find(machine->cpu, &found) && found == machine->arch && strcmp(machine->cpu, "generic");
}

const char *target_arch_name(const target *machine)
{
    return machine->arch ? machine->arch->name : machine->kind->name;
}

bool target_is_cpu_with(const target *machine, const char *arch, const char *feature, const char *or_feature)
{
    if (arch && strcmp(target_arch_name(machine), arch))
        return false;
    return !feature || target_has(machine, feature) || (or_feature && target_has(machine, or_feature));
}

/* Leaves out what the CPU's row says already, so that equal targets have equal texts whatever the user wrote.
 */
const char *target_text(tec_context *cx, const target *machine)
{
    base_text out = {0};
    base_add(cx, &out, machine->kind->name);
    if (!target_offers(machine, TARGET_CPU)) {
        if (machine->kind->option)
            base_addf(cx, &out, " %s=%s", machine->kind->option, machine->cpu);
        if (machine->host)
            base_addf(cx, &out, " -host=%s", machine->host->cpu);
        if (machine->precision)
            base_addf(cx, &out, " -precision=%s", target_precision_name(machine->precision));
        return base_text_str(cx, &out);
    }
    const target_cpu *cpu = target_cpu_of(machine->arch, machine->cpu);
    base_vec row = target_cpu_features(cx, machine->arch, cpu);
    if (strcmp(machine->triple, machine->arch->triple) || !names_arch(machine))
        base_addf(cx, &out, " -mtriple=%s", machine->triple);
    base_addf(cx, &out, " -mcpu=%s", machine->cpu);
    add_attributes(cx, &out, machine, &row);
    base_addf(cx, &out, " -num-cores=%d", machine->num_cores);
    if (machine->l1_bytes != cpu->l1_bytes)
        base_addf(cx, &out, " -l1=%lld", (long long)machine->l1_bytes);
    if (machine->l2_bytes != cpu->l2_bytes)
        base_addf(cx, &out, " -l2=%lld", (long long)machine->l2_bytes);
    if (machine->l3_bytes != cpu->l3_bytes)
        base_addf(cx, &out, " -l3=%lld", (long long)machine->l3_bytes);
    if (machine->model)
        base_addf(cx, &out, " -model=%s", machine->model);
    return base_text_str(cx, &out);
}

const target *target_host(tec_context *cx, const target *machine)
{
    return target_offers(machine, TARGET_HOST) ? machine : machine->host ? machine->host : target_native(cx);
}

uint64_t target_fingerprint(const target *machine)
{
    const char *parts[] = {machine->kind->name, machine->triple, machine->cpu, machine->features};
    uint64_t h = BASE_HASH_SEED;
    for (int i = 0; i < BASE_COUNT(parts); i++)
        h = base_hash(parts[i], strlen(parts[i]) + 1, h);
    const char *precision = target_precision_name(machine->precision);
    return machine->precision ? base_hash(precision, strlen(precision) + 1, h) : h;
}

/* Why code for the target cannot run on this machine, in a sentence; NULL where it can. */
const char *target_unfit(tec_context *cx, const target *machine)
{
    if (!target_offers(machine, TARGET_CPU))
        return base_format(cx, "code for '%s' does not run on a CPU", target_text(cx, machine));
    target_machine m = target_this_machine(cx);
    if (m.arch != machine->arch)
        return base_format(cx, "code for '%s' needs an %s CPU; this machine has an %s one",
                           target_text(cx, machine), machine->arch->name, m.arch ? m.arch->name : "unknown");
    base_text missing = {0};
    for (const char *p = machine->features; *p; p += strcspn(p, ","), p += *p == ',') {
        const char *name = base_strndup(cx, p + 1, strcspn(p, ",") - 1);
        if (*p == '+' && !target_set_has(&m.features, name))
            list_name(cx, &missing, name);
    }
    if (!missing.n)
        return NULL;
    const target_cpu *here = nearest_row(cx, &m);
    return base_format(cx, "code for '%s' needs features that this CPU (%s) lacks: %s",
                       target_text(cx, machine), here ? here->name : m.arch->name, missing.data);
}

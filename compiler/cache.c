/* compiler/cache.c -- see cache.h. */
#include "compiler/cache.h"

#include <string.h>

#include "ir/text.h"

struct comp_cache {
    tec_context *cx;
    base_dict codes; /* key -> target_code * */
};

comp_cache *comp_cache_new(tec_context *cx)
{
    comp_cache *cache = base_new(cx, comp_cache);

    cache->cx = cx;
    return cache;
}

const char *comp_cache_key(tec_context *cx, const ir_program *const *lowered, int n, const target *machine,
                           bool strict)
{
    base_text key = {0};

    base_addf(cx, &key, "%s %d\n", target_text(cx, machine), strict);
    for (int i = 0; i < n; i++) {
        const char *text = ir_program_text(cx, lowered[i]), *behind_name = strchr(text, '(');

        base_add(cx, &key, behind_name ? behind_name : text);
    }
    return base_text_str(cx, &key);
}

/* Two sums over the text, so that two keys of a process hardly ever share a name; the code is found by the
 * whole key. */
const char *comp_cache_symbol(tec_context *cx, const char *key)
{
    uint64_t forward = 0xcbf29ce484222325u, other = 0;

    for (const char *p = key; *p; p++) {
        forward = (forward ^ (uint8_t)*p) * 0x100000001b3u;
        other = other * 131 + (uint8_t)*p;
    }
    return base_format(cx, "tec_c%016llx%016llx", (unsigned long long)forward, (unsigned long long)other);
}

const target_code *comp_cache_find(const comp_cache *cache, const char *key)
{
    return base_dict_get(&cache->codes, key);
}

/* Texts beside the code are not kept: compile.c asks for none where there is a cache. */
void comp_cache_add(comp_cache *cache, const char *key, const target_code *code)
{
    tec_context *cx = cache->cx;
    target_code *copy = base_copy(cx, code, sizeof *code);
    const char **symbols = base_array(cx, const char *, code->n);

    for (int i = 0; i < code->n; i++)
        symbols[i] = base_strdup(cx, code->symbols[i]);
    copy->symbols = symbols;
    copy->bytes = base_copy(cx, code->bytes, code->size);
    copy->helpers = code->helpers ? base_strdup(cx, code->helpers) : NULL;
    copy->forms = NULL;
    copy->n_forms = 0;
    base_dict_put(cx, &cache->codes, base_strdup(cx, key), copy);
}

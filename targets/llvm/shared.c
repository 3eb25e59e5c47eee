/* targets/llvm/shared.c -- one object of kernels as an ELF shared object, without a linker.
 *
 * Tuning builds thousands of small modules, and starting a linker takes longer than generating the code of
 * most of them. An object of kernels holds little: code, constants, and references between both and to memcpy
 * and the like. What this file does not know is left to the linker: several objects, an architecture without
 * a row in `machines`, data that is written, relocations beyond those of the rows.
 *
 * The file has three parts, and each is a segment with a protection of its own:
 *
 *     read      headers, symbols, hash table, relocations, names, .rodata
 *     execute   for each import a stub that jumps to its address, .text
 *     write     .dynamic, the address of each import
 *
 * Behind the parts follows what the loader does not need, but disassemblers and profilers do: the object's
 * own symbols with their new addresses, and a table of sections.
 *
 * A part begins in the file where the part before ends. In memory a part begins one page further, so that no
 * page has two protections, and the rests modulo the page are equal, as the loader demands. With pages of
 * 0x1000 bytes and parts that begin at 0, 0x2c0 and 0x940 in the file, addresses begin at 0, 0x12c0 and
 * 0x2940.
 */
#include <elf.h>
#include <string.h>

#include "targets/llvm/gen.h"

typedef enum { READ, EXECUTE, WRITE, PARTS } part;

enum { HEADERS = PARTS + 2, DYNAMIC = 9, STUB_BYTES = 16, CODE_ALIGN = 64 };

/* The sections of the new file, and their names. */
enum { NO_SECTION, TEXT, DYNSYM, DYNSTR, SYMTAB, STRTAB, SECTION_NAMES, SECTIONS };
static const char section_names[] = "\0.text\0.dynsym\0.dynstr\0.symtab\0.strtab\0.shstrtab";

/* What differs between architectures. `relocate` changes the bytes at `at`, whose address is `from`, so that
 * they refer to `to`; false: the type is not known, or the distance is too far. */
typedef struct {
    int elf_machine;
    uint64_t page;
    unsigned import; /* the type of a dynamic relocation: the address of a symbol */
    bool (*relocate)(char *at, unsigned type, uint64_t from, uint64_t to);
    void (*stub)(char *at, uint64_t from, uint64_t slot);
} machine;

typedef struct {
    tec_context *cx;
    const machine *machine;
    const char *object, *names;
    const Elf64_Shdr *sections;
    int n_sections;
    const Elf64_Shdr *table; /* the section of the symbols */
    const Elf64_Sym *symbols;
    int n_symbols;

    uint64_t *section_at;   /* where each section lies in the new file; 0: nowhere */
    uint64_t *stub_at;      /* the same of each symbol's stub; 0: it has none */
    int n_shown, n_imports; /* symbols of the new file, imports among them */
    /* in the new file */
    uint64_t shown, hash, relocations, strings, dynamic, slots, all, names_at, section_names_at, headers;
    uint64_t begin[PARTS], end[PARTS];
    char *bytes;
    uint64_t size;
} shared;

static bool find_tables(shared *self)
{
    for (int i = 0; i < self->n_sections; i++) {
        const Elf64_Shdr *s = &self->sections[i];

        if (s->sh_type != SHT_SYMTAB)
            continue;
        self->table = s;
        self->symbols = (const void *)(self->object + s->sh_offset);
        self->n_symbols = (int)(s->sh_size / sizeof *self->symbols);
        self->names = self->object + self->sections[s->sh_link].sh_offset;
    }
    return self->symbols != NULL;
}

/* The part that a section belongs to; PARTS: it is not of the program. *known is false for sections that the
 * linker has to place. */
static part part_of(const Elf64_Shdr *section, bool *known)
{
    const uint64_t usual = SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS | SHF_INFO_LINK;

    if (!(section->sh_flags & SHF_ALLOC))
        return PARTS;
    *known = *known && section->sh_type == SHT_PROGBITS && !(section->sh_flags & ~usual);
    return section->sh_flags & SHF_EXECINSTR ? EXECUTE : READ;
}

static bool is_import(const shared *self, int symbol)
{
    return self->symbols[symbol].st_shndx == SHN_UNDEF && self->names[self->symbols[symbol].st_name];
}

static bool is_export(const shared *self, int symbol)
{
    const Elf64_Sym *s = &self->symbols[symbol];

    return ELF64_ST_BIND(s->st_info) == STB_GLOBAL && ELF64_ST_VISIBILITY(s->st_other) == STV_DEFAULT &&
           s->st_shndx != SHN_UNDEF && s->st_shndx < self->n_sections;
}

/* The memory address of a place in the file. */
static uint64_t address(const shared *self, uint64_t at)
{
    int p = at >= self->begin[WRITE] ? WRITE : at >= self->begin[EXECUTE] ? EXECUTE : READ;

    return at + (uint64_t)p * self->machine->page;
}

/* ---- where everything lies ---- */

static uint64_t take(shared *self, uint64_t bytes, uint64_t align)
{
    uint64_t at = (self->size + align - 1) / align * align;

    self->size = at + bytes;
    return at;
}

static bool take_sections(shared *self, part wanted)
{
    bool known = true;

    for (int i = 0; i < self->n_sections; i++) {
        const Elf64_Shdr *s = &self->sections[i];

        if (part_of(s, &known) == wanted && s->sh_size)
            self->section_at[i] = take(self, s->sh_size, s->sh_addralign ? s->sh_addralign : 1);
    }
    return known;
}

/* Names of symbols one behind the other, behind an empty one. */
static uint64_t name_bytes(const shared *self)
{
    uint64_t n = 1;

    for (int i = 0; i < self->n_symbols; i++)
        if (is_import(self, i) || is_export(self, i))
            n += strlen(self->names + self->symbols[i].st_name) + 1;
    return n;
}

static void take_read(shared *self)
{
    take(self, sizeof(Elf64_Ehdr) + HEADERS * sizeof(Elf64_Phdr), 1);
    self->shown = take(self, (1 + (uint64_t)self->n_shown) * sizeof(Elf64_Sym), 8);
    self->hash = take(self, (4 + (uint64_t)self->n_shown) * sizeof(Elf64_Word), 8);
    self->relocations = take(self, (uint64_t)self->n_imports * sizeof(Elf64_Rela), 8);
    self->strings = take(self, name_bytes(self), 1);
}

/* Gives everything its place; false where a section is one for the linker. */
static bool arrange(shared *self)
{
    for (int i = 0; i < self->n_symbols; i++) {
        self->n_imports += is_import(self, i);
        self->n_shown += is_import(self, i) || is_export(self, i);
    }
    take_read(self);
    bool known = take_sections(self, READ);
    self->end[READ] = self->size;

    self->begin[EXECUTE] = take(self, 0, CODE_ALIGN);
    for (int i = 0; i < self->n_symbols; i++)
        if (is_import(self, i))
            self->stub_at[i] = take(self, STUB_BYTES, STUB_BYTES);
    take(self, 0, CODE_ALIGN);
    known = take_sections(self, EXECUTE) && known;
    self->end[EXECUTE] = self->size;

    self->dynamic = self->begin[WRITE] = take(self, DYNAMIC * sizeof(Elf64_Dyn), 16);
    self->slots = take(self, (uint64_t)self->n_imports * sizeof(Elf64_Addr), 8);
    self->end[WRITE] = self->size;
    self->all = take(self, self->table->sh_size, 8);
    self->names_at = take(self, self->sections[self->table->sh_link].sh_size, 1);
    self->section_names_at = take(self, sizeof section_names, 1);
    self->headers = take(self, SECTIONS * sizeof(Elf64_Shdr), 8);
    return known;
}

/* ---- what the loader reads ---- */

/* The file's header, and those of its segments: the parts, .dynamic in the last of them, and a stack that is
 * not executable. */
static void put_headers(const shared *self)
{
    static const unsigned protection[] = {[READ] = PF_R, [EXECUTE] = PF_R | PF_X, [WRITE] = PF_R | PF_W};
    Elf64_Ehdr *file = (Elf64_Ehdr *)(void *)self->bytes;
    Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(file + 1);

    *file = (Elf64_Ehdr){.e_type = ET_DYN,
                         .e_machine = (Elf64_Half)self->machine->elf_machine,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof *file,
                         .e_ehsize = sizeof *file,
                         .e_phentsize = sizeof *segment,
                         .e_phnum = HEADERS,
                         .e_shoff = self->headers,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTIONS,
                         .e_shstrndx = SECTION_NAMES};
    memcpy(file->e_ident, self->object, EI_NIDENT);
    for (int p = 0; p < PARTS; p++) {
        uint64_t at = address(self, self->begin[p]), n = self->end[p] - self->begin[p];

        *segment++ = (Elf64_Phdr){PT_LOAD, protection[p], self->begin[p], at, at, n, n, self->machine->page};
    }
    uint64_t at = address(self, self->dynamic), n = DYNAMIC * sizeof(Elf64_Dyn);
    *segment++ = (Elf64_Phdr){PT_DYNAMIC, PF_R | PF_W, self->dynamic, at, at, n, n, 8};
    *segment = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
}

/* The symbol as the new file has it, and its name at *strings. */
static Elf64_Sym shown_symbol(const shared *self, int symbol, char **strings)
{
    Elf64_Sym s = self->symbols[symbol];
    const char *name = self->names + s.st_name;

    s.st_name = (Elf64_Word)(*strings - (self->bytes + self->strings));
    *strings += strlen(strcpy(*strings, name)) + 1;
    if (is_import(self, symbol))
        return s;
    s.st_value += address(self, self->section_at[s.st_shndx]);
    s.st_shndx = TEXT;
    return s;
}

/* All symbols hang in one chain of the hash table: there are a few. */
static void put_symbols(const shared *self)
{
    Elf64_Sym *symbols = (Elf64_Sym *)(void *)(self->bytes + self->shown);
    Elf64_Word *hash = (Elf64_Word *)(void *)(self->bytes + self->hash), *chain = hash + 3;
    Elf64_Rela *relocation = (Elf64_Rela *)(void *)(self->bytes + self->relocations);
    char *strings = self->bytes + self->strings + 1;
    uint64_t slot = self->slots;
    int n = 0;

    for (int i = 0; i < self->n_symbols; i++) {
        if (!is_import(self, i) && !is_export(self, i))
            continue;
        symbols[++n] = shown_symbol(self, i, &strings);
        chain[n] = (Elf64_Word)n - 1;
        if (!is_import(self, i))
            continue;
        *relocation++ =
            (Elf64_Rela){address(self, slot), ELF64_R_INFO((uint64_t)n, self->machine->import), 0};
        self->machine->stub(self->bytes + self->stub_at[i], address(self, self->stub_at[i]),
                            address(self, slot));
        slot += sizeof(Elf64_Addr);
    }
    hash[0] = 1;
    hash[1] = (Elf64_Word)n + 1;
    hash[2] = (Elf64_Word)n;
}

/* Tells the loader where the tables are. */
static void put_dynamic(const shared *self)
{
    const Elf64_Dyn entries[DYNAMIC] = {
        {DT_HASH, {address(self, self->hash)}},
        {DT_SYMTAB, {address(self, self->shown)}},
        {DT_SYMENT, {sizeof(Elf64_Sym)}},
        {DT_STRTAB, {address(self, self->strings)}},
        {DT_STRSZ, {name_bytes(self)}},
        {DT_RELA, {address(self, self->relocations)}},
        {DT_RELASZ, {(uint64_t)self->n_imports * sizeof(Elf64_Rela)}},
        {DT_RELAENT, {sizeof(Elf64_Rela)}},
        {DT_NULL, {0}},
    };

    memcpy(self->bytes + self->dynamic, entries, sizeof entries);
}

/* ---- what tools read ---- */

/* The object's symbols where they are now; those of what is no code stand for numbers. */
static void put_all_symbols(const shared *self)
{
    Elf64_Sym *to = (Elf64_Sym *)(void *)(self->bytes + self->all);

    memcpy(self->bytes + self->names_at, self->names, self->sections[self->table->sh_link].sh_size);
    memcpy(to, self->symbols, self->table->sh_size);
    for (int i = 0; i < self->n_symbols; i++) {
        unsigned section = to[i].st_shndx;

        if (section == SHN_UNDEF || section >= (unsigned)self->n_sections || !self->section_at[section])
            continue;
        to[i].st_value += address(self, self->section_at[section]);
        to[i].st_shndx = self->sections[section].sh_flags & SHF_EXECINSTR ? TEXT : SHN_ABS;
    }
}

/* Where the name of a section of the new file begins among all their names. */
static Elf64_Word section_name(int section)
{
    const char *at = section_names;

    for (int i = 0; i < section; i++)
        at += strlen(at) + 1;
    return (Elf64_Word)(at - section_names);
}

/* Code is one section, with the stubs in front; what only the loader needs has none. */
static void put_sections_table(const shared *self)
{
    const uint64_t code = self->begin[EXECUTE], strings = self->sections[self->table->sh_link].sh_size;
    Elf64_Shdr header[SECTIONS] = {
        [TEXT] = {.sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                  .sh_addr = address(self, code),
                  .sh_offset = code,
                  .sh_size = self->end[EXECUTE] - code,
                  .sh_addralign = CODE_ALIGN},
        [DYNSYM] = {.sh_type = SHT_DYNSYM,
                    .sh_flags = SHF_ALLOC,
                    .sh_addr = self->shown,
                    .sh_offset = self->shown,
                    .sh_size = (1 + (uint64_t)self->n_shown) * sizeof(Elf64_Sym),
                    .sh_link = DYNSTR,
                    .sh_info = 1,
                    .sh_addralign = 8,
                    .sh_entsize = sizeof(Elf64_Sym)},
        [DYNSTR] = {.sh_type = SHT_STRTAB,
                    .sh_flags = SHF_ALLOC,
                    .sh_addr = self->strings,
                    .sh_offset = self->strings,
                    .sh_size = name_bytes(self),
                    .sh_addralign = 1},
        [SYMTAB] = {.sh_type = SHT_SYMTAB,
                    .sh_offset = self->all,
                    .sh_size = self->table->sh_size,
                    .sh_link = STRTAB,
                    .sh_info = self->table->sh_info,
                    .sh_addralign = 8,
                    .sh_entsize = sizeof(Elf64_Sym)},
        [STRTAB] = {.sh_type = SHT_STRTAB,
                    .sh_offset = self->names_at,
                    .sh_size = strings,
                    .sh_addralign = 1},
        [SECTION_NAMES] = {.sh_type = SHT_STRTAB,
                           .sh_offset = self->section_names_at,
                           .sh_size = sizeof section_names,
                           .sh_addralign = 1},
    };

    for (int i = 0; i < SECTIONS; i++)
        header[i].sh_name = section_name(i);
    memcpy(self->bytes + self->headers, header, sizeof header);
    memcpy(self->bytes + self->section_names_at, section_names, sizeof section_names);
}

/* ---- the object's own references ---- */

/* The address of a symbol, a stub's where it is an import; false where it is in none of the sections that
 * were placed. */
static bool symbol_address(const shared *self, uint64_t symbol, uint64_t *out)
{
    const Elf64_Sym *s = &self->symbols[symbol];
    bool placed = s->st_shndx < self->n_sections && self->section_at[s->st_shndx];

    if (!self->stub_at[symbol] && !placed)
        return false;
    *out = address(self, placed ? self->section_at[s->st_shndx] : self->stub_at[symbol]) + s->st_value;
    return true;
}

/* Resolves the references of a section of them (SHT_RELA) in the copy. */
static bool resolve(const shared *self, const Elf64_Shdr *references)
{
    const Elf64_Rela *r = (const void *)(self->object + references->sh_offset),
                     *end = r + references->sh_size / sizeof *r;
    uint64_t section = self->section_at[references->sh_info], to;

    for (; section && r < end; r++) {
        uint64_t at = section + r->r_offset;

        if (!symbol_address(self, ELF64_R_SYM(r->r_info), &to) ||
            !self->machine->relocate(self->bytes + at, (unsigned)ELF64_R_TYPE(r->r_info), address(self, at),
                                     to + (uint64_t)r->r_addend))
            return false;
    }
    return true;
}

static bool put_sections(const shared *self)
{
    bool good = true;

    for (int i = 0; i < self->n_sections; i++)
        if (self->section_at[i])
            memcpy(self->bytes + self->section_at[i], self->object + self->sections[i].sh_offset,
                   self->sections[i].sh_size);
    for (int i = 0; i < self->n_sections && good; i++)
        good = self->sections[i].sh_type != SHT_RELA || resolve(self, &self->sections[i]);
    return good;
}

/* ---- architectures ---- */

static bool fits(int64_t value, int bits)
{
    return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
}

static void put_word(char *at, uint64_t word)
{
    memcpy(at, &(uint32_t){(uint32_t)word}, sizeof(uint32_t));
}

static bool relocate_x86_64(char *at, unsigned type, uint64_t from, uint64_t to)
{
    if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) || !fits((int64_t)(to - from), 32))
        return false;
    put_word(at, to - from);
    return true;
}

/* jmp *slot(%rip), 6 bytes long. */
static void stub_x86_64(char *at, uint64_t from, uint64_t slot)
{
    memcpy(at, "\xff\x25", 2);
    put_word(at + 2, slot - (from + 6));
}

/* Puts `bits` bits of a value into an instruction, at bit `low`. */
static void put_field(char *at, uint64_t value, int bits, int low)
{
    uint32_t word, mask = (((uint32_t)1 << bits) - 1) << low;

    memcpy(&word, at, sizeof word);
    put_word(at, (word & ~mask) | ((uint32_t)value << low & mask));
}

enum { PAGE_BITS = 12 }; /* those that an instruction adds to the address of a page */

/* adrp: the distance in pages, in two pieces of 2 and 19 bits. */
static bool put_page(char *at, uint64_t from, uint64_t to)
{
    int64_t pages = (int64_t)((to >> PAGE_BITS) - (from >> PAGE_BITS));

    put_field(at, (uint64_t)pages, 2, 29);
    put_field(at, (uint64_t)pages >> 2, 19, 5);
    return fits(pages, 21);
}

/* The rest in the page, in units of 1 << shift bytes, for an addition or an access of that many bytes. */
static bool put_rest(char *at, uint64_t to, int shift)
{
    uint64_t rest = to & (((uint64_t)1 << PAGE_BITS) - 1);

    put_field(at, rest >> shift, 12, 10);
    return rest % ((uint64_t)1 << shift) == 0;
}

static bool put_jump(char *at, uint64_t from, uint64_t to)
{
    put_field(at, (to - from) >> 2, 26, 0);
    return fits((int64_t)(to - from), 28);
}

/* Types with LO12 are the second of two instructions, behind an adrp (PG_HI21). */
static bool relocate_aarch64(char *at, unsigned type, uint64_t from, uint64_t to)
{
    switch (type) {
    case R_AARCH64_ADR_PREL_PG_HI21: return put_page(at, from, to);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return put_rest(at, to, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return put_rest(at, to, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return put_rest(at, to, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return put_rest(at, to, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return put_rest(at, to, 4);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return put_jump(at, from, to);
    default: return false;
    }
}

/* adrp x16, slot; ldr x17, [x16, rest of slot]; br x17 */
static void stub_aarch64(char *at, uint64_t from, uint64_t slot)
{
    put_word(at, 0x90000010);
    put_page(at, from, slot);
    put_word(at + 4, 0xf9400211);
    put_rest(at + 4, slot, 3);
    put_word(at + 8, 0xd61f0220);
}

/* Pages are the largest that kernels of the system use. */
static const machine machines[] = {
    {EM_X86_64, 0x1000, R_X86_64_GLOB_DAT, relocate_x86_64, stub_x86_64},
    {EM_AARCH64, 0x10000, R_AARCH64_GLOB_DAT, relocate_aarch64, stub_aarch64},
};

static const machine *machine_of(const target_code *code)
{
    const Elf64_Ehdr *header = code->bytes;

    for (int i = 0; i < BASE_COUNT(machines); i++)
        if (header->e_machine == machines[i].elf_machine)
            return &machines[i];
    return NULL;
}

/* The bytes of a shared object, in the context's arena; NULL, without an error, where the linker is
 * needed. */
const void *llvm_shared(tec_context *cx, const target_code *code, size_t *size)
{
    const Elf64_Ehdr *header = code->bytes;
    shared s = {.cx = cx, .machine = machine_of(code), .object = code->bytes};

    if (!s.machine || code->helpers)
        return NULL;
    s.sections = (const void *)(s.object + header->e_shoff);
    s.n_sections = header->e_shnum;
    if (!find_tables(&s))
        return NULL;
    s.section_at = base_array(cx, uint64_t, s.n_sections);
    s.stub_at = base_array(cx, uint64_t, s.n_symbols);
    if (!arrange(&s))
        return NULL;
    s.bytes = base_array(cx, char, s.size);
    put_headers(&s);
    put_symbols(&s);
    put_dynamic(&s);
    put_all_symbols(&s);
    put_sections_table(&s);
    *size = s.size;
    return put_sections(&s) ? s.bytes : NULL;
}

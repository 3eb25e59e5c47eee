/* lang/prelude.c -- what every program may use without declaring it: options, lists, trees.
 *
 *     def main(l: List[f32[2]], w: f32[2]) -> f32[2] { fold(map(l, tanh), w, (s, x) => s + x) }
 *
 * The prelude is text of the language: data types and functions with type parameters, so that nothing of it
 * comes into a module that does not use it. It consists of groups. A group that relies on a name which the
 * program declares as a type or a constructor is left out as a whole: the program's own `List` is no list of
 * the prelude. A function of the program hides the prelude's of its name.
 *
 * Functions over lists call themselves in the last place, so a list may have any length. Those that make a
 * list make it in reverse order first. Names with a dot are not for programs.
 */
#include "lang/poly.h"

enum { MOST_WORDS = 7 };

static const struct {
    const char *words[MOST_WORDS]; /* types and constructors; the first NULL ends them */
    const char *text;
} groups[] = {
    {{"Option", "None", "Some"},
     "type Option[a] = None | Some(a)\n"
     "\n"
     "def or_else[a](option: Option[a], otherwise: a) -> a {\n"
     "  match option { None => otherwise  Some(x) => x }\n"
     "}\n"},
    {{"List", "Nil", "Cons"},
     "type List[a] = Nil | Cons(a, List[a])\n"
     "\n"
     "def list.onto[a](l: List[a], done: List[a]) -> List[a] {\n"
     "  match l { Nil => done  Cons(x, rest) => list.onto(rest, Cons(x, done)) }\n"
     "}\n"
     "def reverse[a](l: List[a]) -> List[a] { list.onto(l, Nil) }\n"
     "def append[a](l: List[a], m: List[a]) -> List[a] { list.onto(list.onto(l, Nil), m) }\n"
     "def list.count[a](l: List[a], so_far: i64) -> i64 {\n"
     "  match l { Nil => so_far  Cons(x, rest) => list.count(rest, so_far + 1) }\n"
     "}\n"
     "def length[a](l: List[a]) -> i64 { list.count(l, 0) }\n"
     "\n"
     "def list.map[a, b](l: List[a], done: List[b], f: fn(a) -> b) -> List[b] {\n"
     "  match l { Nil => done  Cons(x, rest) => list.map(rest, Cons(f(x), done), f) }\n"
     "}\n"
     "def map[a, b](l: List[a], f: fn(a) -> b) -> List[b] { list.onto(list.map(l, Nil, f), Nil) }\n"
     "def fold[a, s](l: List[a], state: s, f: fn(s, a) -> s) -> s {\n"
     "  match l { Nil => state  Cons(x, rest) => fold(rest, f(state, x), f) }\n"
     "}\n"
     "def list.scan[a, b, s](l: List[a], state: s, done: List[b], f: fn(s, a) -> (s, b)) -> (s, List[b]) {\n"
     "  match l {\n"
     "    Nil => (state, done)\n"
     "    Cons(x, rest) => {\n"
     "      let (next, y) = f(state, x)\n"
     "      list.scan(rest, next, Cons(y, done), f)\n"
     "    }\n"
     "  }\n"
     "}\n"
     "def scan[a, b, s](l: List[a], state: s, f: fn(s, a) -> (s, b)) -> (s, List[b]) {\n"
     "  let (last, done) = list.scan(l, state, Nil[b], f)\n"
     "  (last, list.onto(done, Nil))\n"
     "}\n"
     "def list.filter[a](l: List[a], done: List[a], keep: fn(a) -> bool) -> List[a] {\n"
     "  match l {\n"
     "    Nil => done\n"
     "    Cons(x, rest) => if keep(x) { list.filter(rest, Cons(x, done), keep) } else { list.filter(rest, "
     "done, "
     "keep) }\n"
     "  }\n"
     "}\n"
     "def filter[a](l: List[a], keep: fn(a) -> bool) -> List[a] {\n"
     "  list.onto(list.filter(l, Nil, keep), Nil)\n"
     "}\n"
     "def list.zip[a, b](l: List[a], m: List[b], done: List[(a, b)]) -> List[(a, b)] {\n"
     "  match l {\n"
     "    Nil => done\n"
     "    Cons(x, rest) => match m { Nil => done  Cons(y, others) => list.zip(rest, others, Cons((x, y), "
     "done)) }\n"
     "  }\n"
     "}\n"
     "def zip[a, b](l: List[a], m: List[b]) -> List[(a, b)] { list.onto(list.zip(l, m, Nil), Nil) }\n"},
    {{"Option", "None", "Some", "List", "Nil", "Cons"},
     "def head[a](l: List[a]) -> Option[a] { match l { Nil => None  Cons(x, rest) => Some(x) } }\n"
     "def element[a](l: List[a], k: i64) -> Option[a] {\n"
     "  match l { Nil => None  Cons(x, rest) => if k == 0 { Some(x) } else { element(rest, k - 1) } }\n"
     "}\n"},
    {{"Tree", "Leaf", "Node"},
     "type Tree[a] = Leaf(a) | Node(Tree[a], Tree[a])\n"
     "\n"
     "def map_tree[a, b](t: Tree[a], f: fn(a) -> b) -> Tree[b] {\n"
     "  match t { Leaf(x) => Leaf(f(x))  Node(l, r) => Node(map_tree(l, f), map_tree(r, f)) }\n"
     "}\n"
     "def fold_tree[a, b](t: Tree[a], leaf: fn(a) -> b, node: fn(b, b) -> b) -> b {\n"
     "  match t { Leaf(x) => leaf(x)  Node(l, r) => node(fold_tree(l, leaf, node), fold_tree(r, leaf, node)) "
     "}\n"
     "}\n"}};

/* ---- what the program declares ---- */

/* type NAME[a] = C(..) | D: the name and the constructors. */
static void add_declared(tec_context *cx, base_lexer *at, base_dict *out)
{
    base_dict_put(cx, out, at->tok.text, out);
    while (at->tok.kind != BASE_TOK_END && !base_at(at, "="))
        base_advance(at);
    do {
        int depth = 0;

        base_advance(at);
        base_dict_put(cx, out, at->tok.text, out);
        base_advance(at);
        while (at->tok.kind != BASE_TOK_END && (depth > 0 || base_at(at, "("))) {
            depth += base_at(at, "(") ? 1 : base_at(at, ")") ? -1 : 0;
            base_advance(at);
        }
    } while (base_at(at, "|"));
}

/* The names of types and of constructors, from the words alone: this is before anything is read. */
static base_dict declared_words(const lang_parser *parser)
{
    base_lexer at = *parser->lx;
    base_dict out = {0};

    while (at.tok.kind != BASE_TOK_END)
        if (base_accept(&at, "type"))
            add_declared(parser->cx, &at, &out);
        else
            base_advance(&at);
    return out;
}

static bool is_hidden(const base_dict *declared, int group)
{
    for (int i = 0; i < MOST_WORDS && groups[group].words[i]; i++)
        if (base_dict_has(declared, groups[group].words[i]))
            return true;
    return false;
}

/* ---- reading ---- */

/* The types of a group and where its functions are read from later. */
static bool read_types(lang_parser *parser, int group)
{
    base_lexer *program = parser->lx;
    int before = parser->generics.n;

    parser->lx = base_lexer_new(parser->cx, "prelude", groups[group].text);
    base_push(parser->cx, &parser->prelude, parser->lx);
    bool good = lang_find_generics(parser);
    for (int i = before; i < parser->generics.n; i++)
        ((lang_generic *)parser->generics.at[i])->prelude = true;
    parser->lx = program;
    lang_stand(parser);
    return good;
}

bool lang_prelude_types(lang_parser *parser)
{
    const base_dict declared = declared_words(parser);

    for (int i = 0; i < BASE_COUNT(groups); i++)
        if (!is_hidden(&declared, i) && !read_types(parser, i))
            return false;
    return !base_failed(parser->cx);
}

/* The functions of one group that the program has none of the same name for. */
static bool read_functions(lang_parser *parser)
{
    while (parser->lx->tok.kind != BASE_TOK_END) {
        if (!lang_accept(parser, "def")) {
            lang_advance(parser);
            continue;
        }
        const char *name = lang_expect_name(parser, "a function");
        bool hidden = lang_find_def(parser, name) || lang_find_poly(parser, name);
        if (!lang_read_poly(parser, name))
            return false;
        lang_poly *poly = parser->polys.at[parser->polys.n - 1];
        poly->prelude = true;
        parser->polys.n -= hidden;
    }
    return true;
}

bool lang_prelude_functions(lang_parser *parser)
{
    base_lexer *program = parser->lx;
    bool good = true;

    for (int i = 0; good && i < parser->prelude.n; i++) {
        parser->lx = parser->prelude.at[i];
        lang_stand(parser);
        good = read_functions(parser);
    }
    parser->lx = program;
    lang_stand(parser);
    return good;
}

// SPDX-License-Identifier: BSD-2-Clause
/* Layouts: memory that is not contiguous, seen as one address space [0, total). docs/layouts.md is the specification, with
 * pictures; this module is the address arithmetic of it and nothing else. It knows no keys, rights or bytes, and depends
 * on no other module, so that `pumice layout explain` uses the same code as the engine.
 *
 * Life of a layout:
 *
 *     layout_check          is the description sound in itself? Writes nothing but its result.
 *     layout_check_object   … and does this entry lie in the object that it names? Called for each entry, by the one who
 *                           knows the objects. What was bound before is still untouched.
 *     layout_bind           builds the bound form. Can't fail.
 *
 * Then, for an access to [off, off + len), which must be within [0, total):
 *
 *     layout_seek           O(log entries), or O(entries) if the entries run out in different rounds; no step depends on
 *                           how many items there are
 *     layout_next           the next piece, in constant time
 *
 * A piece may lie in a window that has a layout itself. struct layout_walk is a stack of cursors for that: it hands out
 * a piece; its user, who alone knows what the object of the piece is, either takes the piece or pushes the inner layout,
 * and then gets the pieces of that. Nothing recurses, and nothing is expanded.
 *
 * How the engine uses it (key.h): a key of a window with a layout resolves to any number of pieces; so whoever copies
 * asks for them in batches that fit its own array, until it has them all. Two pieces that adjoin may come separately
 * (one step never looks at the piece after the next), so who fills an array joins a piece to the one before where it can. */
#ifndef PUMICE_CORE_LAYOUT_H
#define PUMICE_CORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_MAX_ENTRIES 1024u
#define LAYOUT_MAX_DIMS 8u
#define LAYOUT_MAX_DEPTH 8u /* levels of layouts, the outermost included */
#define LAYOUT_MAX_TOTAL (1ull << 63) /* bytes */

/* --- descriptions --------------------------------------------------------------------------------------------------- */

enum layout_type {
    LAYOUT_COMPOSITE = 0, /* entries are contiguous ranges, one after the other */
    LAYOUT_INTERLEAVED = 1, /* entries are regular patterns of items that take turns */
};
enum layout_cap {
    LAYOUT_CAP_COMPOSITE = 1 << 0,
    LAYOUT_CAP_INTERLEAVED = 1 << 1,
    LAYOUT_CAP_REPETITION = 1 << 2, /* more than one item of an entry at a time, the same for all entries */
    LAYOUT_CAP_NONUNIFORM_REPETITION = 1 << 3, /* … and different for each */
    LAYOUT_CAP_NONUNIFORM_TOTAL = 1 << 4, /* entries may run out in different rounds */
    LAYOUT_CAP_ALL = (1 << 5) - 1,
};

struct layout_dim {
    uint64_t stride; /* bytes from the start of one item to the start of the next one in this dimension; 0 is legal */
    uint64_t count; /* items along it, at least 1 */
};
struct layout_entry_desc {
    uint32_t object; /* the user's name of the memory object: a key */
    uint32_t ndim; /* composite: 0. Interleaved: 1 … LAYOUT_MAX_DIMS */
    uint64_t addr; /* of the first item, as the object counts addresses */
    uint64_t length; /* bytes of an item, or of the contiguous range; at least 1 */
    uint64_t repeat; /* items per round, at least 1. Composite: 0 or 1 */
    struct layout_dim dim[LAYOUT_MAX_DIMS]; /* the first one changes fastest */
};
struct layout_desc {
    uint32_t type; /* enum layout_type */
    uint32_t count; /* entries */
    const struct layout_entry_desc *entry;
};
struct layout_limits {
    uint32_t caps; /* enum layout_cap: what is allowed */
    uint32_t max_entries; /* what was allocated for; at most LAYOUT_MAX_ENTRIES */
    uint32_t max_dims; /* at most LAYOUT_MAX_DIMS */
    uint32_t max_depth; /* at most LAYOUT_MAX_DEPTH */
};

/* Everything that can be wrong with a bind, one code for each rule, in the order in which the rules are checked. */
/* clang-format off */
#define LAYOUT_ERRORS(X)                                                                                               \
    /* of the whole description */                                                                                     \
    X(LAYOUT_E_TYPE,            "the type is neither composite nor interleaved")                                       \
    X(LAYOUT_E_CAP_COMPOSITE,   "composite layouts are not supported")                                                 \
    X(LAYOUT_E_CAP_INTERLEAVED, "interleaved layouts are not supported")                                               \
    X(LAYOUT_E_NO_ENTRIES,      "there are no entries")                                                                \
    X(LAYOUT_E_ENTRIES,         "there are more entries than the window has descriptors")                              \
    /* of an entry */                                                                                                  \
    X(LAYOUT_E_LENGTH,          "an entry has length 0")                                                               \
    X(LAYOUT_E_MIXED_STRIDED,   "an entry of a composite layout has dimensions")                                       \
    X(LAYOUT_E_MIXED_REPEAT,    "an entry of a composite layout has a repetition")                                     \
    X(LAYOUT_E_MIXED_PLAIN,     "an entry of an interleaved layout has no dimensions")                                 \
    X(LAYOUT_E_DIMS,            "an entry has more dimensions than supported")                                         \
    X(LAYOUT_E_REPEAT,          "an entry of an interleaved layout has repetition 0")                                  \
    X(LAYOUT_E_COUNT,           "a dimension has count 0")                                                             \
    X(LAYOUT_E_ITEMS,           "the number of items of an entry overflows 64 bits")                                   \
    X(LAYOUT_E_BYTES,           "the bytes of an entry overflow 64 bits")                                              \
    X(LAYOUT_E_SPAN,            "the address of an item overflows 64 bits")                                            \
    X(LAYOUT_E_TOTAL,           "all entries together have more than 2^63 bytes")                                      \
    X(LAYOUT_E_CAP_REPETITION,  "repetition is not supported")                                                         \
    X(LAYOUT_E_CAP_NU_REPEAT,   "different repetitions in one layout are not supported")                               \
    X(LAYOUT_E_CAP_NU_TOTAL,    "entries that run out in different rounds are not supported")                          \
    /* of an entry and its object */                                                                                   \
    X(LAYOUT_E_OBJECT,          "an entry names an object that does not exist")                                        \
    X(LAYOUT_E_PD,              "an entry names an object of another protection domain")                               \
    X(LAYOUT_E_UNBOUND,         "an entry names a window that is not bound")                                           \
    X(LAYOUT_E_SELF,            "an entry names the window itself")                                                    \
    X(LAYOUT_E_DEPTH,           "windows are nested deeper than supported")                                            \
    X(LAYOUT_E_NOT_BINDABLE,    "an entry names a memory region without the right to bind windows")                    \
    X(LAYOUT_E_MR_ACCESS,       "the window asks for rights to write that a memory region does not have")              \
    X(LAYOUT_E_MW_ACCESS,       "the window asks for rights that an inner window does not have")                       \
    X(LAYOUT_E_OUTSIDE,         "an item lies outside of its object")
/* clang-format on */

enum layout_error {
    LAYOUT_OK,
#define X(name, text) name,
    LAYOUT_ERRORS(X)
#undef X
        LAYOUT_NUM_ERRORS
};

/* The rule that was broken, as static text; "no error" for LAYOUT_OK. */
const char *layout_error_text(enum layout_error error);

/* Checks all rules that need no knowledge of the objects. Returns the first broken one; *where, if not NULL, is then the
 * entry's index (0 for rules about the whole). *total, if not NULL, receives the bytes of the layout if all is well. */
enum layout_error layout_check(const struct layout_desc *d, const struct layout_limits *limits, uint32_t *where,
                               uint64_t *total);

enum layout_object_kind {
    LAYOUT_NO_OBJECT, /* the key is not valid */
    LAYOUT_MR,
    LAYOUT_MW,
};
struct layout_object {
    uint8_t kind; /* enum layout_object_kind */
    uint8_t depth; /* layouts below and including it: 0 for an MR and for a window without layout */
    bool bound; /* MW: it is */
    bool self; /* MW: it is the one that is being bound */
    bool may_bind; /* MR: registered with the right to bind windows */
    uint32_t pd;
    uint32_t grants; /* rights that a window over it may have at most */
    uint64_t start; /* its first address; 0 for a window with layout and for zero-based ones */
    uint64_t length; /* bytes */
};
/* Checks the rest of the rules for one entry of a description that passed layout_check: for a window in protection domain
 * pd that asks for these rights. *depth is raised to the depth of the new window, if it is larger. */
enum layout_error layout_check_object(const struct layout_entry_desc *e, const struct layout_object *o,
                                      const struct layout_limits *limits, uint32_t pd, uint32_t access, uint8_t *depth);

/* --- bound layouts -------------------------------------------------------------------------------------------------- */

/* An entry in the form that is quick to use. All fields are layout.c's own, but object and serial. */
struct layout_entry {
    uint32_t object; /* as described */
    uint32_t serial; /* the user's: how it recognises an object that has changed; layout_bind makes it 0 */
    uint32_t ndim; /* dimensions after those of count 1 were dropped, and neighbours joined that are one pattern */
    uint64_t addr;
    uint64_t length; /* bytes of an item */
    uint64_t items; /* in all */
    uint64_t repeat; /* items per round, at most `items` */
    uint64_t full; /* rounds in which it has `repeat` items */
    uint64_t rest; /* items in the round after those; 0: none */
    uint64_t start; /* offset of its items in a round, if all take part in full */
    struct layout_dim dim[LAYOUT_MAX_DIMS];

    /* Slot k of what follows belongs to the entry that is k-th to run out, not to entry k. Empty if `uniform`. */
    uint32_t nth; /* which entry that is */
    uint64_t round; /* its `full` */
    uint64_t before; /* bytes of all rounds before that one */
    uint64_t rests; /* bytes in it of the entries that have no more than a rest */
    uint64_t rate; /* bytes in it, and in each later round until the next entry runs out, of those that go on */
    /* … and this one to entries k … k + LAYOUT_BLOCK - 1; set if k is a multiple of LAYOUT_BLOCK. */
    uint64_t last; /* the first round in which none of them has an item any more */
};
#define LAYOUT_BLOCK 32u

struct layout {
    struct layout_entry *entry; /* [count], the user's memory */
    uint32_t count;
    bool uniform; /* all entries run out in the same round, without a rest */
    uint64_t round_bytes; /* of a full round */
    uint64_t total; /* bytes of the layout */
};

/* Builds the bound form of a description that passed layout_check, in memory for d->count entries, which must stay as
 * long as the layout is used. */
void layout_bind(struct layout *l, struct layout_entry *entries, const struct layout_desc *d);

/* --- pieces --------------------------------------------------------------------------------------------------------- */

struct layout_segment {
    uint32_t entry; /* index of the entry */
    uint32_t object; /* of the entry */
    uint64_t addr; /* in the object */
    uint64_t len; /* bytes, not 0 */
};
/* A position in a layout. Plain data without pointers but to the layout: it may be copied, to go on from there later. */
struct layout_cursor {
    const struct layout *l;
    uint64_t left; /* bytes of the range that have not been handed out */
    uint64_t round;
    uint32_t entry;
    uint64_t group; /* items of this entry left in this round, the present one included */
    uint64_t byte; /* within the present item */
    uint64_t place; /* of the present item, relative to the entry's address */
    uint64_t x[LAYOUT_MAX_DIMS]; /* its index in each dimension */
};

/* To the first of the bytes [off, off + len). False, with nothing set, if they are not all within [0, total). len may
 * be 0 at any offset within or at the end. */
bool layout_seek(struct layout_cursor *c, const struct layout *l, uint64_t off, uint64_t len);
/* The next piece of the range; false: there is none left. */
bool layout_next(struct layout_cursor *c, struct layout_segment *out);

/* Which entries have bytes in a range, without going through its pieces. */
struct layout_position {
    uint64_t round;
    uint32_t entry;
    uint64_t in; /* bytes of the entry in this round before the position */
};
struct layout_span {
    const struct layout *l;
    struct layout_position first, last; /* of the first and of the last byte */
};
/* [off, off + len) must be within [0, total); len > 0. Time as for layout_seek. */
void layout_span(struct layout_span *s, const struct layout *l, uint64_t off, uint64_t len);
bool layout_span_has(const struct layout_span *s, uint32_t entry);

struct layout_walk {
    uint32_t depth; /* cursors in use */
    uint32_t path[LAYOUT_MAX_DEPTH]; /* the entry of the piece that each of them handed out last */
    struct layout_cursor level[LAYOUT_MAX_DEPTH];
};

/* Nothing to walk through yet: to be followed by layout_walk_push with the outermost layout and the range wanted. */
void layout_walk_init(struct layout_walk *w);
/* Before anything else of the walk, the pieces of [off, off + len) of this layout. False: the range is not within it, or
 * LAYOUT_MAX_DEPTH layouts are under way already. */
bool layout_walk_push(struct layout_walk *w, const struct layout *l, uint64_t off, uint64_t len);
/* The next piece of the innermost layout that has one, and which layout that is; NULL: all have been handed out. */
const struct layout *layout_walk_next(struct layout_walk *w, struct layout_segment *out);
/* Have all been handed out? */
bool layout_walk_done(struct layout_walk *w);

#endif

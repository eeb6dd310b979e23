// SPDX-License-Identifier: BSD-2-Clause
/* Layouts: memory that is not contiguous, seen as one address space [0, total). docs/layouts.md is the specification,
 * with pictures. This module does the address arithmetic of layouts and nothing else. It knows no keys, rights or
 * bytes, and depends on no other module. So `pumice layout explain` uses the same code as the engine.
 *
 * The life of a layout:
 *
 *     layout_check          Is the description sound in itself? Writes only its result.
 *     layout_check_object   Does this entry lie in the object that it names? Called for each entry, by the caller who
 *                           knows the objects. An earlier binding is still untouched.
 *     layout_bind           Builds the bound form. Can't fail.
 *
 * Then, for an access to [off, off + len), which must be within [0, total):
 *
 *     layout_seek           O(log entries), or O(entries) if the entries end in different rounds. No step depends on
 *                           the number of items.
 *     layout_next           The next piece, in constant time.
 *
 * A piece may lie in a window that has a layout itself. struct layout_walk is a stack of cursors for that case.
 * layout_walk_next returns a piece. The caller knows the object of the piece. It either takes the piece or pushes the
 * inner layout, and then gets the pieces of the inner layout. There is no recursion, and nothing is expanded.
 *
 * The engine (key.h, sge_iter.h) resolves the key of a window with a layout into any number of pieces. So code that
 * copies asks for them in batches that fit its own array, until it has them all. Two adjacent pieces may come
 * separately, because one step never looks at the piece after the next. So code that fills an array joins a piece to
 * the one before where it can. */
#ifndef PUMICE_DAEMON_CORE_MEMORY_LAYOUT_H
#define PUMICE_DAEMON_CORE_MEMORY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_MAX_ENTRIES 1024u
#define LAYOUT_MAX_DIMS 8u
#define LAYOUT_MAX_DEPTH 8u /* nested layouts, the outermost included */
#define LAYOUT_MAX_TOTAL (1ull << 63) /* bytes */

/* --- descriptions ----------------------------------------------------------------------------- */

enum layout_type {
    LAYOUT_COMPOSITE = 0, /* entries are contiguous ranges, one after the other */
    LAYOUT_INTERLEAVED = 1, /* entries are regular patterns of items, interleaved */
};
enum layout_cap {
    LAYOUT_CAP_COMPOSITE = 1 << 0,
    LAYOUT_CAP_INTERLEAVED = 1 << 1,
    LAYOUT_CAP_REPETITION = 1 << 2, /* an entry has several items per round; the same number for all entries */
    LAYOUT_CAP_NONUNIFORM_REPETITION = 1 << 3, /* as REPETITION; the number of items may differ between entries */
    LAYOUT_CAP_NONUNIFORM_TOTAL = 1 << 4, /* entries may end in different rounds */
    LAYOUT_CAP_ALL = (1 << 5) - 1,
};

struct layout_dim {
    /* Bytes from the start of one item to the start of the next one in this dimension. 0 is legal. */
    uint64_t stride;
    uint64_t count; /* items in this dimension, at least 1 */
};
struct layout_entry_desc {
    uint32_t object; /* the user's name of the memory object: a key */
    uint32_t ndim; /* composite: 0. Interleaved: 1 … LAYOUT_MAX_DIMS */
    uint64_t addr; /* address of the first item, in the object's own addresses */
    uint64_t length; /* bytes of an item, or of the contiguous range; at least 1 */
    uint64_t repeat; /* items per round, at least 1. Composite: 0 or 1 */
    struct layout_dim dim[LAYOUT_MAX_DIMS]; /* the first one changes fastest */
};
struct layout_desc {
    uint32_t type; /* enum layout_type */
    uint32_t count; /* number of entries */
    const struct layout_entry_desc *entry;
};
struct layout_limits {
    uint32_t caps; /* enum layout_cap: the allowed features */
    uint32_t max_entries; /* the size of the allocation; at most LAYOUT_MAX_ENTRIES */
    uint32_t max_dims; /* at most LAYOUT_MAX_DIMS */
    uint32_t max_depth; /* at most LAYOUT_MAX_DEPTH */
};

/* All reasons to refuse a bind, one code for each rule, in the order in which the rules are checked. */
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

/* The broken rule as static text; "no error" for LAYOUT_OK. */
const char *layout_error_text(enum layout_error error);

/* Checks all rules that need no knowledge of the objects. Returns the first broken rule. *where, if not NULL, is then
 * the entry's index (0 for rules about the whole). *total, if not NULL, receives the bytes of the layout if no rule
 * is broken. */
enum layout_error layout_check(const struct layout_desc *d, const struct layout_limits *limits, uint32_t *where,
                               uint64_t *total);

enum layout_object_kind {
    LAYOUT_NO_OBJECT, /* the key is not valid */
    LAYOUT_MR,
    LAYOUT_MW,
};
struct layout_object {
    uint8_t kind; /* enum layout_object_kind */
    uint8_t depth; /* nested layouts below and including it: 0 for an MR and for a window without a layout */
    bool bound; /* MW: it is bound */
    bool self; /* MW: it is the window that is being bound */
    bool may_bind; /* MR: registered with the right to bind windows */
    uint32_t pd;
    uint32_t grants; /* the rights that a window over it may have at most */
    uint64_t start; /* its first address; 0 for a window with a layout and for zero-based objects */
    uint64_t length; /* bytes */
};
/* Checks the other rules for one entry of a description that passed layout_check, for a window in protection domain
 * pd with the rights `access`. Raises *depth to the depth of the new window, if it is larger. */
enum layout_error layout_check_object(const struct layout_entry_desc *e, const struct layout_object *o,
                                      const struct layout_limits *limits, uint32_t pd, uint32_t access, uint8_t *depth);

/* --- bound layouts ---------------------------------------------------------------------------- */

/* An entry in the form that is fast to use. All fields except object and serial are private to layout.c. */
struct layout_entry {
    uint32_t object; /* as in the description */
    /* Set by the user, to recognize an object that has changed. layout_bind sets it to 0. */
    uint32_t serial;
    /* Number of dimensions after simplification: those of count 1 are dropped, and adjacent ones that form one
     * pattern are joined. */
    uint32_t ndim;
    uint64_t addr;
    uint64_t length; /* bytes of an item */
    uint64_t items; /* total number of items */
    uint64_t repeat; /* items per round, at most `items` */
    uint64_t full; /* number of rounds in which the entry has `repeat` items */
    uint64_t rest; /* items in the round after those; 0: none */
    uint64_t start; /* offset of its items in a round in which all entries have `repeat` items */
    struct layout_dim dim[LAYOUT_MAX_DIMS];

    /* Slot k of the following fields belongs to the k-th entry to end, not to entry k. Unused if `uniform`. */
    uint32_t nth; /* the number of that entry */
    uint64_t round; /* `full` of that entry */
    uint64_t before; /* bytes of all rounds before this round */
    uint64_t rests; /* bytes in this round of the entries that have only a rest in it */
    /* Bytes in this round of the entries that continue. Each later round has the same number, until the next entry
     * ends. */
    uint64_t rate;
    /* The next field belongs to entries k … k + LAYOUT_BLOCK - 1. It is set if k is a multiple of LAYOUT_BLOCK. */
    uint64_t last; /* the first round in which none of them has items */
};
#define LAYOUT_BLOCK 32u

struct layout {
    struct layout_entry *entry; /* [count], the user's memory */
    uint32_t count;
    bool uniform; /* all entries end in the same round, without a rest */
    uint64_t round_bytes; /* bytes of a full round */
    uint64_t total; /* bytes of the layout */
};

/* Builds the bound form of a description that passed layout_check. `entries` is memory for d->count entries, which
 * must stay as long as the layout is used. */
void layout_bind(struct layout *l, struct layout_entry *entries, const struct layout_desc *d);

/* --- pieces ----------------------------------------------------------------------------------- */

struct layout_segment {
    uint32_t entry; /* index of the entry */
    uint32_t object; /* of the entry */
    uint64_t addr; /* in the object */
    uint64_t len; /* bytes, not 0 */
};
/* A position in a layout. It is plain data with a pointer only to the layout. It may be copied, to continue from
 * there later. */
struct layout_cursor {
    const struct layout *l;
    uint64_t left; /* bytes of the range that have not been returned */
    uint64_t round;
    uint32_t entry;
    uint64_t group; /* items of this entry left in this round, the current one included */
    uint64_t byte; /* offset within the current item */
    uint64_t place; /* address of the current item, relative to the entry's address */
    uint64_t x[LAYOUT_MAX_DIMS]; /* index of the current item in each dimension */
};

/* Moves the cursor to the first of the bytes [off, off + len). Returns false, and sets nothing, if they are not all
 * within [0, total). len may be 0 at any offset within the layout or at its end. */
bool layout_seek(struct layout_cursor *c, const struct layout *l, uint64_t off, uint64_t len);
/* Returns the next piece of the range. False: there is none left. */
bool layout_next(struct layout_cursor *c, struct layout_segment *out);

/* A position by round and entry. layout_span and layout_span_has use two of them to find the entries that have bytes in
 * a range, without stepping through its pieces. */
struct layout_position {
    uint64_t round;
    uint32_t entry;
    uint64_t in; /* bytes of the entry in this round before the position */
};
struct layout_span {
    const struct layout *l;
    struct layout_position first, last; /* of the first and of the last byte */
};
/* [off, off + len) must be within [0, total), and len > 0. It takes as long as layout_seek. */
void layout_span(struct layout_span *s, const struct layout *l, uint64_t off, uint64_t len);
/* Does the entry have bytes in the range? */
bool layout_span_has(const struct layout_span *s, uint32_t entry);

/* A stack of cursors, one for each nested layout. */
struct layout_walk {
    uint32_t depth; /* cursors in use */
    uint32_t path[LAYOUT_MAX_DEPTH]; /* the entry of the last piece of each cursor */
    struct layout_cursor level[LAYOUT_MAX_DEPTH];
};

/* Makes an empty walk. Call layout_walk_push next, with the outermost layout and the range. */
void layout_walk_init(struct layout_walk *w);
/* Adds the pieces of [off, off + len) of this layout, before the rest of the walk. False: the range is not within the
 * layout, or LAYOUT_MAX_DEPTH layouts are already nested. */
bool layout_walk_push(struct layout_walk *w, const struct layout *l, uint64_t off, uint64_t len);
/* Returns the next piece of the innermost layout that has one, and that layout. NULL: there are no more. */
const struct layout *layout_walk_next(struct layout_walk *w, struct layout_segment *out);
/* True if all pieces were returned. */
bool layout_walk_done(const struct layout_walk *w);

#endif

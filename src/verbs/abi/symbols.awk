# SPDX-License-Identifier: BSD-2-Clause
# Makes linker input from rdma-core-symbols.tsv. Usage: awk -v out=map|aliases|rows -f symbols.awk rdma-core-symbols.tsv
#   map      the version script of the client library. It lists each symbol once, at its newest node.
#   aliases  lines PRIVATE_ALIAS(symbol, version) for private.c: all private nodes of each private symbol, the newest node
#            last, as the default. The assembler then removes the symbol without a version, because the linker would keep
#            only one of both.
#   rows     the rows of the table that the library must have, for tests
# The older versions of public symbols, all of them of IBVERBS_1.0, are other functions: compat.c binds them.
BEGIN {
    FS = "\t"
    # rdma-core's map names these, but no release defines them: the first is an inline function of its header.
    absent["ibv_query_device_ex"]
    absent["ibv_cmd_query_device"]
}

/^#/ || $2 in absent {
    next
}

# The age of a node: IBVERBS_1.N is N, and private nodes are younger than all of these.
function age(node)
{
    return node ~ /^IBVERBS_PRIVATE_/ ? 1000 + substr(node, 17) : substr(node, 11) + 0
}

{
    if (NF != 4 || $1 !~ /^IBVERBS_(1\.|PRIVATE_)[0-9]+$/) {
        print FILENAME ":" FNR ": expected node, symbol, first and last release, separated by tabs" >"/dev/stderr"
        exit bad = 1
    }
    if (out == "rows")
        print
    if (!($1 in symbols)) {
        for (i = num_nodes++; i > 0 && age(nodes[i - 1]) > age($1); i--)
            nodes[i] = nodes[i - 1]
        nodes[i] = $1
    }
    symbols[$1] = symbols[$1] " " $2
    if (!($2 in newest) || age($1) > age(newest[$2]))
        newest[$2] = $1
}

function print_node(node, parent,    i, n, list)
{
    print node " {\n    global:"
    n = split(symbols[node], list, " ")
    for (i = 1; i <= n; i++)
        if (newest[list[i]] == node)
            print "        " list[i] ";"
    print "}" (parent && node !~ /PRIVATE/ ? " " parent : "") ";\n"
}

function print_map(    i)
{
    print "/* Made from rdma-core-symbols.tsv by symbols.awk. There is no `local: *`, because the functions that replace those"
    print " * of the C library need the base version: an exported symbol that is not listed gets it. The compiler hides all"
    print " * other symbols (-fvisibility=hidden). */"
    for (i = 0; i < num_nodes; i++)
        print_node(nodes[i], i ? nodes[i - 1] : "")
    print "/* Only libpumice.so uses this, see pumice/provider.h. */"
    print "PUMICE_PROVIDER_1 {\n    global:\n        pumice_provider;\n};"
}

function print_aliases(    i, k, n, list)
{
    for (i = 0; i < num_nodes; i++) {
        n = nodes[i] ~ /PRIVATE/ ? split(symbols[nodes[i]], list, " ") : 0
        for (k = 1; k <= n; k++)
            print "PRIVATE_ALIAS(" list[k] ", \"" (newest[list[k]] == nodes[i] ? "@@" nodes[i] ", remove" : "@" nodes[i]) "\")"
    }
}

END {
    if (bad)
        exit 1
    if (out == "map")
        print_map()
    else if (out == "aliases")
        print_aliases()
}

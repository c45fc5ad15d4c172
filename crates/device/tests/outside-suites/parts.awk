# Marks the parts of an outside suite and leaves out what the list names. A part begins at a comment in the first column
# that starts with a capital, after the line `set -e`; its name is that comment.
#
#   awk -v suite=NAME -f parts.awk LIST SUITE
#
# LIST is Markdown; a row of its table is  | suite | part | whole part, or N lines from `text` | why |.
# The marked script appends to the file $OUTSIDE_REPORT: `begin PART`, `left-out PART<tab>WHY`.

FNR == NR {
    if (split($0, column, / \| |^\| | \|$/) >= 6 && column[2] == suite) {
        rows++
        part_of[rows] = column[3]
        what_of[rows] = column[4]
        why_of[rows] = column[5]
    }
    next
}

FNR == 1 { for (row = 1; row <= rows; row++) matched[row] = 0 }

!marking {
    print
    if ($0 == "set -e") {
        marking = 1
        print "outside_begin() { printf 'begin %s\\n' \"$1\" >>\"$OUTSIDE_REPORT\"; }"
        print "outside_left_out() { printf 'left-out %s\\t%s\\n' \"$1\" \"$2\" >>\"$OUTSIDE_REPORT\"; }"
        begin("Make the namespaces and the tunnel")
    }
    next
}

/^# [A-Z]/ { begin(substr($0, 3)) }

whole { next }

{
    for (row = 1; row <= rows && !leaving; row++) {
        if (part_of[row] != part || what_of[row] == "whole part" || matched[row]) continue
        text = what_of[row]
        sub(/^[0-9]+ lines? from `/, "", text)
        sub(/`$/, "", text)
        if (index($0, text)) {
            matched[row] = 1
            leaving = what_of[row] + 0
            print "outside_left_out " quoted(part " (" what_of[row] ")") " " quoted(why_of[row])
        }
    }
    if (leaving) leaving--
    else print
}

END {
    for (row = 1; row <= rows; row++)
        if (!matched[row]) {
            print "the list leaves out what " suite " does not have: " part_of[row] ": " what_of[row] >"/dev/stderr"
            exit 3
        }
}

function begin(name, row) {
    part = name
    whole = 0
    for (row = 1; row <= rows; row++)
        if (part_of[row] == part && what_of[row] == "whole part") {
            whole = matched[row] = 1
            print "outside_left_out " quoted(part) " " quoted(why_of[row])
            return
        }
    print "outside_begin " quoted(part)
}

function quoted(text) {
    gsub(/'/, "'\\''", text)
    return "'" text "'"
}

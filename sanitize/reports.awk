# Reads a log of compute-sanitizer and prints every report that `accepted` does not name, then a line
# "accepted N refused M". `tool` and `accepted` (a file) are given with -v.

function trimmed(text) {
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    return text
}

# Looks at the report in `head` (its first line), `all` (its lines joined) and `shown` (its lines).
function judge(   rest, kernels, count, kind, words, k, name, known) {
    if (head == "") return
    rest = all
    count = 0
    while (match(rest, / at [^+]+\+0x[0-9a-f]+/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/^ at (void )?/, "", name)
        sub(/\+0x[0-9a-f]+$/, "", name)
        kernels[++count] = name
    }
    if (match(all, /Race reported between [A-Za-z]+ access/)) {
        kind = substr(all, RSTART + 22, RLENGTH - 29)
        rest = all
        while (match(rest, / and [A-Za-z]+ access/)) {
            kind = kind "-" substr(rest, RSTART + 5, RLENGTH - 12)
            rest = substr(rest, RSTART + RLENGTH)
        }
    } else {
        kind = head
        sub(/^(Error|Warning|Info): */, "", kind)
        split(kind, words, / /)
        kind = words[1] "-" words[2]
    }
    known = count > 0
    for (k = 1; k <= count; k++) if (!((tool " " kernels[k] " " kind) in allowed)) known = 0
    if (known) {
        fine++
    } else {
        refused++
        printf "%s", shown
    }
    head = ""
}

BEGIN {
    while ((status = (getline line < accepted)) > 0) {
        line = trimmed(line)
        if (line == "" || line ~ /^#/) continue
        if (split(line, part, /[ \t]+/) < 4) {
            print accepted ": a line needs tool, kernel, kind and reason: " line
            broken = 1
        }
        allowed[part[1] " " part[2] " " part[3]] = 1
    }
    if (status < 0) {
        print "can not read " accepted
        broken = 1
    }
}

!/^=========/ { next }
{
    text = $0
    sub(/^=========/, "", text)
}
text ~ /^ *$/ { judge(); next }
text ~ /^ COMPUTE-SANITIZER/ { judge(); next }
text ~ /SUMMARY: / {
    judge()
    summary = trimmed(text)
    ended = 1
    # "ERROR SUMMARY: 3 errors", "RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)"
    number = summary
    sub(/^.*SUMMARY: /, "", number)
    said += number + 0
    next
}
# One blank begins a report, more go on with it.
text ~ /^ [^ ]/ {
    judge()
    head = trimmed(text)
    all = head
    shown = $0 "\n"
    next
}
{
    all = all " " trimmed(text)
    shown = shown $0 "\n"
}

END {
    judge()
    if (!ended) {
        print "the tool did not come to its summary"
        refused++
    } else if (said > fine + refused) {
        print "the tool counts more than it shows: " summary
        refused++
    }
    printf "accepted %d refused %d\n", fine, refused + broken
}

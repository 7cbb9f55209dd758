#!/bin/sh
# Compares captures and exits with the code of fastprof diff --fail-above: 0, or 4 if the step is slower.
#
# GATE_AFTER        the capture
# GATE_BEFORE       the capture to compare with; or
# GATE_BASELINE     a store of captures, with GATE_AGAINST one of them
# GATE_FAIL_ABOVE   percent (default: 3)
# GATE_STEPS        what a step is
# GATE_SAVE         true: add the capture to the store if the gate passes
# GATE_TAGS         its tags, KEY=VALUE, one a line
# GATE_OUT          directory for diff.md, diff.json and diff.html (default: fastprof-diff)
# GATE_FASTPROF     the command (default: fastprof)
# GITHUB_STEP_SUMMARY, GITHUB_OUTPUT   files of the CI, if set
set -eu

out=${GATE_OUT:-fastprof-diff}
fastprof=${GATE_FASTPROF:-fastprof}

# A line of the outputs of the step; values are ours: codes and verdicts.
tell() {
    if [ -n "${GITHUB_OUTPUT:-}" ]; then
        printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
    fi
}

summary() {
    if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
        cat >>"$GITHUB_STEP_SUMMARY"
    else
        cat
    fi
}

finish() {
    tell exit-code "$1"
    exit "$1"
}

usage() {
    printf 'diff-gate: %s\n' "$1" >&2
    finish 2
}

has_captures() {
    [ -s "$1" ] && { [ ! -d "$1" ] || [ -s "$1/history.sqlite" ] || [ -s "$1/baseline.parquet" ]; }
}

save() {
    [ "${GATE_SAVE:-false}" = true ] || return 0
    set -- "--baseline=$GATE_BASELINE" --save ${GATE_STEPS:+"--steps=$GATE_STEPS"}
    rest="${GATE_TAGS:-}
"
    while [ -n "$rest" ]; do
        line=${rest%%
*}
        rest=${rest#*
}
        [ -z "$line" ] || set -- "$@" "--tag=$line"
    done
    "$fastprof" diff "$@" "$after"
}

# A path is never an option.
path() {
    case $1 in
    -*) printf './%s' "$1" ;;
    *) printf '%s' "$1" ;;
    esac
}

[ -n "${GATE_AFTER:-}" ] || usage 'give the capture to judge (after)'
if [ -n "${GATE_BASELINE:-}" ]; then
    [ -z "${GATE_BEFORE:-}" ] || usage 'give before or baseline, not both'
else
    [ -n "${GATE_BEFORE:-}" ] || usage 'give the capture to compare with (before), or a store (baseline)'
    [ "${GATE_SAVE:-false}" != true ] || usage 'save needs a store (baseline)'
fi
mkdir -p "$out"
after=$(path "$GATE_AFTER")
before=$(path "${GATE_BEFORE:-}")

if [ -n "${GATE_BASELINE:-}" ] && ! has_captures "$GATE_BASELINE"; then
    [ "${GATE_SAVE:-false}" = true ] || usage "$GATE_BASELINE contains no capture; run once with save: true"
    code=0
    save || code=$?
    [ "$code" -ne 0 ] || printf 'The first capture is stored; there is none to compare with.\n' | summary
    finish "$code"
fi

set -- ${GATE_STEPS:+"--steps=$GATE_STEPS"}
if [ -n "${GATE_BASELINE:-}" ]; then
    set -- "$@" "--baseline=$GATE_BASELINE" ${GATE_AGAINST:+"--against=$GATE_AGAINST"} "$after"
else
    set -- "$@" "$before" "$after"
fi

code=0
"$fastprof" diff --markdown -o "$out/diff.md" --html "$out/diff.html" "--fail-above=${GATE_FAIL_ABOVE:-3}" "$@" || code=$?
case $code in
0 | 4) ;;
*) finish "$code" ;;
esac
"$fastprof" diff --json -o "$out/diff.json" "$@" || finish $?
tell verdict "$(sed -n 's/.*"verdict": *"\([a-z ]*\)".*/\1/p' "$out/diff.json" | head -n 1)"
summary <"$out/diff.md"
if [ "$code" -eq 0 ]; then
    save || code=$?
fi
finish "$code"

#!/bin/sh
# step.sh TITLE COMMAND...: says what is about to be done, and then how long it took, or what it said if it
# failed.
title=$1
shift
said=$(mktemp "${TMPDIR:-/tmp}/octavo-step.XXXXXX") || exit 1
trap 'rm -f "$said"' EXIT
printf '%s ... ' "$title"
started=$(date +%s)
"$@" >"$said" 2>&1
status=$?
if [ "$status" = 0 ]; then
    echo "$(($(date +%s) - started)) s"
else
    echo "failed"
    cat "$said" >&2
fi
exit "$status"

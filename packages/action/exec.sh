#!/bin/bash
# Runs `raddle exec` on PROMPT and the content of the file INPUT, and stores the answer in a file.
set -euo pipefail

answer="$RUNNER_TEMP/raddle-answer.md"
{
    printf '%s\n' "$PROMPT"
    if [ -n "$INPUT" ]; then
        printf '\n'
        cat -- "$INPUT"
    fi
} | raddle exec --model "$MODEL" --sandbox "$SANDBOX" --ephemeral \
    --output-last-message "$answer" -
echo "answer-file=$answer" >>"$GITHUB_OUTPUT"

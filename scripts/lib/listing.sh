# What the test binaries say they would run. Sourced by scripts/test.

# The test binaries of the workspace, one path per line.
test_binaries() {
    # The order of keys in a message is cargo's; `jq` is not everywhere.
    cargo test --workspace --locked --no-run --message-format=json 2>/dev/null |
        python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
        print(message["executable"])'
}

# Fails if a test binary lists no test, or one that would not run: both look like success to every runner. A binary that is not
# meant to hold tests says so with `test = false` in its Cargo.toml.
check_listing() {
    local binary listed ignored total=0 wrong=0
    for binary in $(test_binaries); do
        listed=$("$binary" --list --format terse | grep -c ': test$' || true)
        ignored=$("$binary" --list --format terse --ignored | grep ': test$' || true)
        total=$((total + listed))
        if [ "$listed" = 0 ]; then
            echo "$(basename "$binary") lists no tests: its tests would not run" >&2
            wrong=1
        fi
        if [ -n "$ignored" ]; then
            printf 'ignored in %s, and nothing may be:\n%s\n' "$(basename "$binary")" "$ignored" >&2
            wrong=1
        fi
    done
    if [ "$total" = 0 ]; then
        echo "no test binary was found" >&2
        wrong=1
    fi
    echo "$total tests are listed"
    return "$wrong"
}

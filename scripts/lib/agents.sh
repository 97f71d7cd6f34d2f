# The real agents for the tests, as pinned in tests/agents/package.json. Sourced by scripts/test. Needs: say, $scratch.

# Installs the agents below target/ unless they are there, and leaves in agents_dir where.
install_agents() {
    local pins=tests/agents cache=target/test-agents key
    key=$(cat "$pins/package.json" "$pins/package-lock.json" | sha256sum | cut -c1-16)
    agents_dir=$PWD/$cache/$key
    [ ! -d "$agents_dir" ] || return 0
    if ! command -v npm >/dev/null; then
        echo "SKIPPED: no npm; tests with the real agents will not run" >&2
        return 1
    fi
    say "installing the agents"
    # They are large: what other pins installed is not kept.
    rm -rf "$cache"
    mkdir -p "$cache/new"
    cp "$pins/package.json" "$pins/package-lock.json" "$cache/new"
    if ! { fetch_agents "$cache/new" && start_agents "$cache/new"; } >"$scratch/agents.log" 2>&1; then
        tail -n 20 "$scratch/agents.log" >&2
        echo "the agents could not be installed" >&2
        return 1
    fi
    mv "$cache/new" "$agents_dir"
}

# No package runs a script of its own, except the two that put their program where it is looked for. `npm ci` would refuse: a
# package of one of the agents names parts for other systems that do not exist.
fetch_agents() {
    (
        cd "$1" &&
            npm install --ignore-scripts --no-audit --no-fund --no-update-notifier &&
            export PATH="$PWD/node_modules/.bin:$PATH" &&
            node node_modules/@anthropic-ai/claude-code/install.cjs &&
            cd node_modules/opencode-ai && node postinstall.mjs
    )
}

# Answers whether every agent starts.
start_agents() {
    local agent
    for agent in claude codex copilot gemini kimi opencode qwen; do
        echo "$agent"
        HOME=$scratch PATH=$PWD/$1/node_modules/.bin:$PATH "$agent" --version || return 1
    done
}

# The real agents for the tests, as pinned in tests/agents/package.json. Sourced by scripts/test. Needs: say, cached, $scratch.

# Installs the agents unless they are in the cache, and leaves in agents_dir where.
install_agents() {
    local pins=tests/agents
    cached agents "$(cat "$pins/package.json" "$pins/package-lock.json" scripts/lib/agents.sh | cache_key)" make_agents || return 1
    agents_dir=$cached
}

make_agents() {
    say "installing the agents"
    mkdir "$1"
    cp tests/agents/package.json tests/agents/package-lock.json "$1"
    if ! { fetch_agents "$1" && start_agents "$1"; } >"$scratch/agents.log" 2>&1; then
        tail -n 20 "$scratch/agents.log" >&2
        echo "the agents could not be installed" >&2
        return 1
    fi
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

# Succeeds if every agent starts.
start_agents() {
    local agent
    for agent in claude codex copilot gemini kimi opencode qwen; do
        echo "$agent"
        HOME=$scratch PATH=$1/node_modules/.bin:$PATH "$agent" --version || return 1
    done
}

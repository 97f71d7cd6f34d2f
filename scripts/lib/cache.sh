# What is expensive to make and the same for every run: images, agents. It is kept outside of the checkout, below a name that is
# a hash of everything it is made from, so that a change of that makes it anew. Sourced by scripts/test.

cache_dir=${XDG_CACHE_HOME:-$HOME/.cache}/abide-tests

# Gives the hash of what is read from standard input.
cache_key() { sha256sum | cut -c1-16; }

# cached KIND KEY MAKE…: gives in $cached the path of KIND-KEY in the cache. Where it is not there yet, it is made by `MAKE… PATH`,
# below a name of its own until it is whole, and what other keys made of this kind is removed.
cached() {
    local kind=$1 key=$2 path new
    shift 2
    path=$cache_dir/$kind-$key
    if [ ! -e "$path" ]; then
        mkdir -p "$cache_dir"
        new=$cache_dir/.new-$kind-$key.$$
        if ! "$@" "$new"; then
            rm -rf "$new"
            return 1
        fi
        find "$cache_dir" -maxdepth 1 -name "$kind-*" -exec rm -rf {} +
        # Another run may have been first; what it made is the same.
        mv -nT "$new" "$path"
        rm -rf "$new"
    fi
    # Last: to make it may have taken something else from the cache.
    cached=$path
}

# shellcheck shell=bash
# What makes a release build's bytes the same in every folder and at every time, and its files load where glibc is as
# old as 2.28. To be sourced, in the project's folder.

RELEASE_GLIBC=2.28

# The tools that a release needs, from PyPI: a linker for an old glibc (zig's), and numpy, which the wheel's type stubs
# are made with.
release_tools() {
  local tools=.cache/wheel-tools wanted
  wanted="$(python3 --version) $(cat scripts/requirements-wheel.txt)"
  if [[ ! -x $tools/bin/python || "$(cat "$tools/made-from" 2>/dev/null)" != "$wanted" ]]; then
    python3 -m venv --clear "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/requirements-wheel.txt >&2
    printf '%s' "$wanted" >"$tools/made-from"
  fi
  PATH="$PWD/$tools/bin:$PATH"
}

# release_environment MACHINE: sets TARGET, and what rustc, C compilers and the packer read. MACHINE is x86_64 or
# aarch64.
release_environment() {
  case "$1" in
    x86_64 | aarch64) TARGET="$1-unknown-linux-gnu" ;;
    *)
      printf 'error: expected x86_64 or aarch64, found `%s`\n' "$1" >&2
      exit 2
      ;;
  esac
  local tree cargo_home build sysroot flags prefixes
  tree="$(pwd -P)"
  cargo_home="$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")"
  build="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
  sysroot="$(rustc --print sysroot)"
  if [[ "$cargo_home $tree $build" != "${cargo_home// /} ${tree// /} ${build// /}" ]]; then
    printf 'error: a release is built in folders without spaces: expected so of `%s`, `%s` and `%s`\n' "$tree" "$cargo_home" "$build" >&2
    exit 2
  fi
  # The last one that fits counts: a folder inside of another comes after it.
  prefixes=("$cargo_home=/cargo" "$tree=/gesso" "$build=/build"
    "$sysroot/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')")
  flags=("${prefixes[@]/#/--remap-path-prefix=}")
  # SSE4.2 and POPCNT are everywhere since 2009; wider vectors are asked for at run time.
  if [[ $1 == x86_64 ]]; then flags+=(-Ctarget-cpu=x86-64-v2); fi
  RUSTFLAGS="${flags[*]}"
  CFLAGS="${prefixes[*]/#/-ffile-prefix-map=}"
  # The time that archives and the list of parts carry.
  SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
  export RUSTFLAGS CFLAGS SOURCE_DATE_EPOCH TARGET LC_ALL=C TZ=UTC
  unset CARGO_ENCODED_RUSTFLAGS CXXFLAGS LDFLAGS
}

# release_build CARGO-ARGUMENT... [-- RUSTC-ARGUMENT...]: a release build for TARGET. libjpeg-turbo notes the day on
# which it was compiled, and cargo keeps it for later commits: so that a first build and a later one are equal, that day
# is always the same, 1980-01-01.
release_build() {
  SOURCE_DATE_EPOCH=315532800 cargo-zigbuild rustc --release --locked --target "$TARGET.$RELEASE_GLIBC" "$@" >&2
}

# shellcheck shell=bash
# What scripts/demo, scripts/serve and scripts/test need, each piece made once and renewed when its sources change. To
# be sourced.
#
# Everything lands in .venv, .cache, target and (the converted classifier) model_repository/classifier. Environment:
#   GESSO_PYTHON      the Python to make .venv from (3.10 to 3.13; default: python3)
#   GESSO_PLUGIN      use this libtriton_gesso.so and build none
#   CARGO_TARGET_DIR  as cargo understands it

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
VENV="$ROOT/.venv"
CACHE="$ROOT/.cache"
STAMPS="$CACHE/stamps"
PHOTOS="$CACHE/photos"
CLIP="$CACHE/clips/photos.mp4"
CLASSIFIER="$ROOT/model_repository/classifier"
HEARTBEAT_SECONDS=10
# For the C in the library, where it is built to be watched. What has undefined behaviour ends the program.
C_SANITIZERS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
# The wheel's tritonserver is built against this glibc.
GLIBC_NEEDED=2.35

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Milliseconds since the epoch, for `elapsed`.
now() { date +%s%3N; }
elapsed() { seconds $(($(now) - $1)); }
# seconds MILLISECONDS
seconds() { printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100)); }

# step WHAT COMMAND...: runs the command with its output in a log; says what it does, that it still does it every ten
# seconds, and how long it took. When it fails, shows the log's end and leaves. STEP_LOG names another log.
step() {
  local what="$1" log="${STEP_LOG:-$CACHE/setup.log}" began pulse status=0
  shift
  began=$(now)
  printf '==> %s\n' "$what"
  (
    # The sleep must not hold our output open when this loop is ended.
    # It also ends by itself when the script does ($$ is the script).
    while sleep "$HEARTBEAT_SECONDS" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
      printf '    %s  %s\n' "$(elapsed "$began")" "$(tr '\r' '\n' <"$log" | grep -v '^ *$' | tail -n 1 | cut -c 1-100)"
    done
  ) &
  pulse=$!
  # In the foreground, so that Ctrl-C reaches the command itself.
  "$@" >"$log" 2>&1 || status=$?
  kill "$pulse" 2>/dev/null || true
  wait "$pulse" 2>/dev/null || true
  if ((status != 0)); then
    tail -n 30 "$log" >&2
    die "$what failed with status $status; all of its output is in ${log#"$ROOT/"}"
  fi
  printf '    done in %s\n' "$(elapsed "$began")"
}

# fresh NAME KEY: whether the piece was made from the sources with this key; made NAME KEY records that it was.
fresh() { [[ -f "$STAMPS/$1" && "$(<"$STAMPS/$1")" == "$2" ]]; }
made() {
  mkdir -p "$STAMPS"
  printf '%s' "$2" >"$STAMPS/$1"
}
digest() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

# install_packages NAME...: by apt, as root or through sudo.
install_packages() {
  local as_root=()
  command -v apt-get >/dev/null || die "missing: $*. This machine has no apt-get: install them (Debian's names) by hand"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "missing: $*. Run as root: apt-get install -y $*"
    printf 'missing: %s; installing with sudo, which may ask for your password\n' "$*"
    sudo -v || die "no sudo rights. Run as root: apt-get install -y $*"
    as_root=(sudo)
  fi
  step "updating the list of packages" "${as_root[@]}" apt-get update
  step "installing $*" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

setup_system() {
  local missing=() glibc
  glibc="$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" || true
  [[ -n "$glibc" && "$(printf '%s\n' "$GLIBC_NEEDED" "$glibc" | sort -V | head -n 1)" == "$GLIBC_NEEDED" ]] ||
    die "tritonserver needs glibc $GLIBC_NEEDED or newer (Debian 12, Ubuntu 22.04); found ${glibc:-another C library}"

  command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
  command -v cargo >/dev/null || die "cargo is not here: install Rust with rustup (rust-toolchain.toml names the version)"
  local needed found
  needed="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")"
  found="$(cargo --version | cut -d ' ' -f 2)"
  [[ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" == "$needed" ]] ||
    die "Rust $needed or newer is needed, found $found: install it with rustup"
  command -v cc >/dev/null || missing+=(gcc libc6-dev)
  command -v c++ >/dev/null || missing+=(g++)
  command -v make >/dev/null || missing+=(make)
  command -v cmake >/dev/null || missing+=(cmake)
  command -v nasm >/dev/null || missing+=(nasm)
  PYTHON="$(choose_python)"
  "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing+=("python$(python_version "$PYTHON")-venv")
  has_libpython "$PYTHON" || missing+=("libpython$(python_version "$PYTHON")")
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
  has_libpython "$PYTHON" ||
    die "Triton's Python backend needs libpython$(python_version "$PYTHON").so.1.0: set GESSO_PYTHON to a Python that has it"
}

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# The first Python that both the packages and the server's Python backend (one stub a minor version) know.
choose_python() {
  local candidate version
  for candidate in ${GESSO_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    version="$(python_version "$candidate" 2>/dev/null)" || continue
    case "$version" in
      3.10 | 3.11 | 3.12 | 3.13) command -v "$candidate" && return ;;
    esac
  done
  die "no Python from 3.10 to 3.13 among '${GESSO_PYTHON:-python3, python3.13 ... python3.10}': set GESSO_PYTHON to one"
}

# Whether the shared library of this Python is here; the wheel brings the one for 3.13 itself.
has_libpython() {
  "$1" - <<'PROBE'
import ctypes, sys, sysconfig
name = "libpython%d.%d.so.1.0" % sys.version_info[:2]
def found(path):
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True
sys.exit(not (sys.version_info[:2] == (3, 13) or found(name) or found(f"{sysconfig.get_config_var('LIBDIR')}/{name}")))
PROBE
}

setup_venv() {
  local key
  key="$(python_version "$PYTHON") $(digest "$ROOT"/scripts/requirements.txt "$ROOT"/scripts/requirements-files.txt)"
  if fresh venv "$key" && [[ -x "$VENV/bin/python" ]]; then return; fi
  if [[ -x "$VENV/bin/python" && "$(python_version "$VENV/bin/python")" == "$(python_version "$PYTHON")" ]] &&
    "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    : # the same Python with other packages: pip changes only what differs
  else
    step "making .venv with Python $(python_version "$PYTHON")" "$PYTHON" -m venv --clear "$VENV"
  fi
  step "installing Python packages into .venv (once, about 240 MB)" pip_install -r "$ROOT/scripts/requirements.txt"
  step "fetching tritonserver, the classifier's weights, labels and photos" \
    pip_install --no-deps -r "$ROOT/scripts/requirements-files.txt"
  made venv "$key"
}
# The CUDA compiler, which needs no GPU: tests compile every kernel with it.
setup_nvrtc() {
  local key
  key="$(digest "$ROOT/scripts/requirements-nvrtc.txt") $(<"$STAMPS/venv")"
  if fresh nvrtc "$key"; then return; fi
  step "installing NVRTC into .venv (once, 60 MB)" pip_install --no-deps -r "$ROOT/scripts/requirements-nvrtc.txt"
  made nvrtc "$key"
}
# What checks style, types and shell scripts.
setup_checks() {
  local key
  key="$(digest "$ROOT/scripts/requirements-checks.txt") $(<"$STAMPS/venv")"
  if fresh checks "$key"; then return; fi
  step "installing ruff, mypy and shellcheck into .venv (once, 60 MB)" pip_install -r "$ROOT/scripts/requirements-checks.txt"
  made checks "$key"
}
# What only tests import.
setup_test_packages() {
  local key
  key="$(digest "$ROOT/scripts/requirements-tests.txt") $(<"$STAMPS/venv")"
  if fresh tests "$key"; then return; fi
  step "installing h5py, pyarrow, matplotlib and what else tests import into .venv (once, 130 MB)" pip_install -r "$ROOT/scripts/requirements-tests.txt"
  made tests "$key"
}
# With which bindgen makes the server's API again from its header, to compare.
setup_libclang() { compgen -G "/usr/lib/llvm-*/lib/libclang.so*" >/dev/null || install_packages libclang1; }
# Under which the example in C runs.
setup_valgrind() { command -v valgrind >/dev/null || install_packages valgrind; }
# Which reads the server's metrics, and checks the alerts.
setup_prometheus() { command -v promtool >/dev/null || install_packages prometheus; }
pip_install() { "$VENV/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$@"; }

# Cargo with sanitizers, in a folder of its own. AddressSanitizer is no stable option of rustc, but a build for tests
# alone may ask for it.
sanitized_cargo() {
  local command="$1" host
  shift
  host="$(rustc -vV | sed -n 's/^host: //p')"
  SANITIZED="$ROOT/target/asan/$host/debug"
  env RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg gesso_exact_allocations -Cforce-frame-pointers=yes -Clink-arg=-lubsan" "CFLAGS_${host//-/_}=$C_SANITIZERS" \
    cargo "$command" --target "$host" --target-dir "$ROOT/target/asan" --locked "$@"
}

# The plugin with sanitizers, and what a server needs that loads it.
setup_sanitized_plugin() {
  local runtime
  runtime="$(cc -print-file-name=libasan.so)"
  [[ "$runtime" == /* ]] || die "the C compiler brings no AddressSanitizer (libasan.so)"
  step "building libtriton_gesso.so with sanitizers (minutes the first time)" sanitized_cargo build -p triton-gesso --lib
  runtime="$(readlink -f "$runtime")"
  export GESSO_PLUGIN="$SANITIZED/libtriton_gesso.so" GESSO_SANITIZER="$runtime"
}

# setup_plugin [-p PACKAGE --bin NAME]: with a program, too.
setup_plugin() {
  if [[ -n "${GESSO_PLUGIN:-}" ]]; then
    [[ -f "$GESSO_PLUGIN" ]] || die "GESSO_PLUGIN names \`$GESSO_PLUGIN\`, which is not a file"
    return
  fi
  step "building libtriton_gesso.so (release; about ten minutes the first time, on two cores)" \
    cargo build --manifest-path "$ROOT/Cargo.toml" --release -p triton-gesso --lib "$@" --locked
}

setup_classifier() {
  local key
  key="$(digest "$ROOT/scripts/lib/convert_classifier.py" "$ROOT/scripts/requirements-files.txt")"
  if fresh classifier "$key" && [[ -f "$CLASSIFIER/1/model.onnx" && -f "$CLASSIFIER/labels.txt" ]]; then return; fi
  step "converting the classifier to ONNX" "$VENV/bin/python" "$ROOT/scripts/lib/convert_classifier.py" "$CLASSIFIER"
  made classifier "$key"
}

setup_photos() {
  local key
  key="$(digest "$ROOT/scripts/lib/make_photos.py" "$ROOT/scripts/requirements-files.txt")"
  if fresh photos "$key" && [[ -d "$PHOTOS" ]]; then return; fi
  step "encoding the photos" "$VENV/bin/python" "$ROOT/scripts/lib/make_photos.py" "$PHOTOS"
  made photos "$key"
}

# A video of the photos.
setup_clip() {
  local key
  key="$(digest "$ROOT/scripts/lib/make_clip.py" "$ROOT/scripts/requirements.txt") $(<"$STAMPS/photos")"
  if fresh clip "$key" && [[ -f "$CLIP" ]]; then return; fi
  step "filming the photos" "$VENV/bin/python" "$ROOT/scripts/lib/make_clip.py" "$PHOTOS" "$CLIP"
  made clip "$key"
}

# A server with the plugin, and the program `gesso`.
setup_server() {
  mkdir -p "$CACHE"
  cd "$ROOT" || exit # rust-toolchain.toml speaks for this folder
  setup_system
  setup_venv
  setup_plugin -p gesso-cli --bin gesso
}

setup_all() {
  setup_server
  setup_classifier
  setup_photos
  setup_clip
}

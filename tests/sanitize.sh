#!/usr/bin/env bash
# Builds the native core with AddressSanitizer and UndefinedBehaviorSanitizer and runs its tests under it.
#
#   tests/sanitize.sh [pytest arguments]        default: see the end
#
# The build goes to build/sanitize and stays there for the next time; the package in use is not touched. Any finding
# aborts Python at once. Leaks are not looked for: the interpreter itself keeps much until the process ends.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PATH="$PWD/.venv/bin:$PATH"  # cmake, where the machine has none
build=build/sanitize

cmake -S bothost/native -B "$build/native" -DCMAKE_BUILD_TYPE=Release -DBOTHOST_SANITIZE=ON \
  -DPython_EXECUTABLE="$("$python" -c 'import sys; print(sys.executable)')" \
  -DCMAKE_PREFIX_PATH="$("$python" -m nanobind --cmake_dir)"
cmake --build "$build/native" --parallel "${JOBS:-2}"

# A copy of the package whose native module is the sanitized one.
rm -rf "$build/site" && mkdir -p "$build/site"
tar --exclude='*.so' --exclude='*.cpp' -cf - bothost migrations | tar -xf - -C "$build/site"
cp "$build"/native/_{native,testing}*.so "$build/site/bothost/native/"

# The runtimes must be there before the interpreter starts; libstdc++ too, or exceptions cannot be intercepted.
# -S: an editable install hooks the import of bothost, and its own module would be tested instead of the sanitized one.
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
runtime() { ${CXX:-g++} -print-file-name="$1"; }
sanitized() {
  LD_PRELOAD="$(runtime libasan.so) $(runtime libubsan.so) $(runtime libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    BOTHOST_SANITIZED=1 PYTHONSAFEPATH=1 PYTHONPATH="$PWD/$build/site:$packages" "$python" -S "$@"
}
sanitized -c 'import sys; from bothost.native import _native; sys.exit(sys.argv[1] not in _native.__file__)' "$build/site"
# Distributions need many samples, and show nothing of memory that the other tests do not.
[ $# -gt 0 ] || set -- -m 'not long' -k 'not uniform' tests/rules
sanitized -m pytest -q -p no:cacheprovider "$@"

# shellcheck shell=bash
# Sourced by the script of a build, in the folder with its sources: makes `build` a link to the
# folder that every run uses which builds the same. If it is there and whole, the script ends.
#
#     . share_build.sh <folder of builds> <cc> <cxx> <flags of cc> <flags of cxx> <commands>
#
# What tells builds apart is asked for where they are made, with the modules loaded that they are
# made with: two nodes of a file system may have different processors, and a compiler may be
# replaced beneath its name. A build is made under a lock and never changed afterwards.

assay_builds=$1 assay_cc=$2 assay_cxx=$3 assay_cflags=$4 assay_cxxflags=$5 assay_commands=$6

assay_facts() {
    uname -sm
    find . -type f -not -name 'rfm_*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    printf '%s\n' "$assay_commands"
    cmake --version
    local compiler
    for compiler in "$assay_cc" "$assay_cxx"; do
        command -v "$compiler"
        "$compiler" -show
    done
    # What -march=native stands for, and the compiler's full version.
    # shellcheck disable=SC2086 # flags are several words
    {
        "$assay_cc" $assay_cflags -E -v -x c /dev/null
        "$assay_cxx" $assay_cxxflags -E -v -x c++ /dev/null
    } 2>&1
    # All that the MPI's header says, as the compiler reads it: in a container it is not a file of
    # this machine, and the compiler may have no standard input.
    echo '#include <mpi.h>' >rfm_mpi.c
    "$assay_cc" -E -dD rfm_mpi.c
    # Where CMake may find a BLAS.
    ldconfig -p | grep -iE 'blas|blis|mkl'
    # What CMake, the compilers and the linker take from whoever calls them.
    env | LC_ALL=C sort | grep -E '^(CMAKE_|(C|CXX|CPP|LD)FLAGS=|CPATH|C(PLUS)?_INCLUDE_PATH|LIBRARY_PATH|LD_(LIBRARY|RUN)_PATH|MKLROOT|\w+_ROOT=|.*BLAS)'
}

assay_seal() { # written last: what is not sealed, or has lost its MPI or BLAS, is not whole
    local file
    for file in *; do
        [[ -f $file && ( -x $file || $file == *.so ) ]] || continue
        printf '%s\0' "$file"
        ldd "$file" | sed -nE 's/.*lib\S*(mpi|blas|blis|mkl)\S* => (\/\S*).*/\2/p' | tr '\n' '\0'
    done | LC_ALL=C sort -zu | xargs -0 sha256sum >.whole.new && mv .whole.new .whole
}

assay_folder=$assay_builds/$(assay_facts 2>/dev/null | sha256sum | cut -c 1-32)
# A file system may have no locks: then a run builds for itself alone.
if mkdir -p "$assay_builds" && exec 9>>"$assay_folder.lock" && flock 9; then
    if [[ -f $assay_folder/.whole ]] && (cd "$assay_folder" && sha256sum --check --status .whole); then
        ln -sfn "$assay_folder" build
        echo "built before: $assay_folder"
        exit 0
    fi
    rm -rf "$assay_folder"
    mkdir "$assay_folder"
    ln -sfn "$assay_folder" build
else
    echo "$assay_builds cannot be locked: built for this run alone"
    mkdir build
fi

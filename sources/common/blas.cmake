# Which BLAS: what the user names (-DASSAY_OPENBLAS=<folder> of a wheel scipy-openblas32, or FindBLAS's
# own -DBLA_VENDOR=... and -DBLAS_LIBRARIES=...), then a tuned one of the system or a loaded module,
# then OpenBLAS from the wheel beside CMake's. Never the reference BLAS by accident: it is slow. Nor an
# OpenBLAS that several threads must not call at once.
include(CheckCSourceRuns)

set(ASSAY_OPENBLAS "" CACHE PATH "Folder of an installed scipy-openblas32, holding lib/")

if(NOT ASSAY_OPENBLAS)
  if(BLA_VENDOR OR BLAS_LIBRARIES)
    find_package(BLAS REQUIRED)
  else()
    foreach(BLA_VENDOR OpenBLAS Intel10_64lp_seq FLAME AOCL Arm)
      find_package(BLAS QUIET)
      if(BLAS_FOUND AND BLA_VENDOR STREQUAL OpenBLAS)
        set(CMAKE_REQUIRED_LIBRARIES ${BLAS_LIBRARIES} ${BLAS_LINKER_FLAGS})
        set(CMAKE_REQUIRED_INCLUDES ${CMAKE_CURRENT_LIST_DIR})
        check_c_source_runs("
          #include \"openblas.h\"
          char *openblas_get_config(void);
          int main(void) { return !openblas_takes_threads(openblas_get_config()); }"
          ASSAY_OPENBLAS_TAKES_THREADS)
        unset(CMAKE_REQUIRED_LIBRARIES)
        unset(CMAKE_REQUIRED_INCLUDES)
        if(NOT ASSAY_OPENBLAS_TAKES_THREADS)
          message(STATUS "BLAS: not ${BLAS_LIBRARIES}: several threads cannot call it at once")
          unset(BLAS_FOUND)
          unset(BLAS_LIBRARIES)
        endif()
      endif()
      if(BLAS_FOUND)
        break()
      endif()
    endforeach()
    unset(BLA_VENDOR)
  endif()
  if(NOT BLAS_FOUND)
    # Where CMake is a wheel too: its command is site-packages/cmake/data/bin/cmake.
    get_filename_component(ASSAY_OPENBLAS ${CMAKE_COMMAND}/../../../../scipy_openblas32 ABSOLUTE)
    if(NOT IS_DIRECTORY ${ASSAY_OPENBLAS})
      message(FATAL_ERROR "No tuned BLAS found: load a module with OpenBLAS, BLIS or MKL, or "
        "install scipy-openblas32 by pip and name its folder: -DASSAY_OPENBLAS=<folder>")
    endif()
  endif()
endif()

add_library(blas STATIC blas.c dgemm_limit.c)
target_compile_options(blas PUBLIC "SHELL:-iquote ${CMAKE_CURRENT_SOURCE_DIR}" PRIVATE ${ASSAY_LIMITS})
# RTLD_DEFAULT of dlfcn.h
target_compile_definitions(blas PRIVATE _GNU_SOURCE)
if(ASSAY_OPENBLAS)
  find_library(SCIPY_OPENBLAS scipy_openblas
    PATHS ${ASSAY_OPENBLAS}/lib NO_DEFAULT_PATH NO_CACHE REQUIRED)
  message(STATUS "BLAS: ${SCIPY_OPENBLAS}")
  set(ASSAY_BLAS ${SCIPY_OPENBLAS} CACHE INTERNAL "What the programs are linked with")
  target_compile_definitions(blas PRIVATE ASSAY_BLAS_PREFIX=scipy_ ASSAY_BLAS_NAME="scipy-openblas32")
  target_link_libraries(blas PUBLIC ${SCIPY_OPENBLAS})
else()
  message(STATUS "BLAS: ${BLAS_LIBRARIES}")
  set(ASSAY_BLAS ${BLAS_LIBRARIES} CACHE INTERNAL "What the programs are linked with")
  list(GET BLAS_LIBRARIES 0 LIBRARY)
  get_filename_component(LIBRARY ${LIBRARY} NAME)
  target_compile_definitions(blas PRIVATE ASSAY_BLAS_PREFIX= ASSAY_BLAS_NAME="${LIBRARY}")
  # Not BLAS::BLAS, which is the first that FindBLAS came upon.
  target_link_libraries(blas PUBLIC ${BLAS_LIBRARIES} ${BLAS_LINKER_FLAGS})
endif()
target_link_libraries(blas PUBLIC windows OpenMP::OpenMP_C ${CMAKE_DL_LIBS} m)

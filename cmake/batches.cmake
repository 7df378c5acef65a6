# compile_in_batches(<target> [<kilobytes>]): sources of one folder, next to one another, so much text or one source, by
# default 60, are one compilation.
#
# Most of what the compiler does for a small source is to read headers and to compile templates, which its neighbours need
# as well: batches of eight take half of the processor time for src/hlo, src/passes and src/lazy. With torch's headers an
# empty source takes 2.3 seconds, although they are precompiled, as GCC compiles once more what their inline functions ask for.
# A change of one source compiles its batch: those with torch's headers are smaller, such that one takes some 15 seconds.
# Names in the unnamed namespaces of a folder are therefore different ones (scripts/check_names.py, which scripts/lint runs).
# Sources with compile options of their own stay by themselves; so does everything with -DTORCH_XLA_BATCHES=OFF, where each
# source has to include what it uses, and which scripts/lint wants.
function(compile_in_batches target)
  set(limit 60 ${ARGN})
  list(GET limit -1 limit)
  math(EXPR limit "${limit} * 1000")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TORCH_XLA_BATCHES} UNITY_BUILD_MODE GROUP
    UNITY_BUILD_RELOCATABLE ON)  # for ccache: another checkout's batches are the same
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  set(batch 0)
  set(used 0)
  set(folder "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    file(SIZE ${path} size)
    math(EXPR used "${used} + ${size}")
    get_filename_component(its_folder ${path} DIRECTORY)
    if((used GREATER limit AND NOT used EQUAL size) OR NOT its_folder STREQUAL folder)
      math(EXPR batch "${batch} + 1")
      set(used ${size})
      set(folder ${its_folder})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
endfunction()

# compile_in_batches(<target> [<kilobytes>]): the sources of one folder, next to one another, are compiled together, in as few
# equal shares as have at most so much text, by default 100, or a source more.
#
# Most of what the compiler does for a small source is to read headers and to compile templates, which its neighbours need
# as well: batches of eight take half of the processor time for src/hlo, src/passes and src/lazy. With torch's headers an
# empty source takes 2.6 seconds, although they are precompiled, as GCC compiles once more what their inline functions ask for.
# A change of one source compiles its batch: those with torch's headers are smaller, such that one takes some 15 seconds.
# Names in the unnamed namespaces of a folder are therefore different ones (scripts/check_names.py, which scripts/lint runs).
# Sources with compile options of their own stay by themselves; so does everything with -DTORCH_XLA_BATCHES=OFF, where each
# source has to include what it uses, and which scripts/lint wants.
function(compile_in_batches target)
  set(limit 100 ${ARGN})
  list(GET limit -1 limit)
  math(EXPR limit "${limit} * 1000")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TORCH_XLA_BATCHES} UNITY_BUILD_MODE GROUP
    UNITY_BUILD_RELOCATABLE ON)  # for ccache: another checkout's batches are the same
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  foreach(source ${sources})
    source_size(${source} folder size)
    if(NOT DEFINED total_${folder})
      set(total_${folder} 0)
      set(before_${folder} 0)
    endif()
    math(EXPR total_${folder} "${total_${folder}} + ${size}")
  endforeach()
  foreach(source ${sources})
    source_size(${source} folder size)
    math(EXPR shares "(${total_${folder}} + ${limit} - 1) / ${limit}")
    math(EXPR share "(${before_${folder}} + ${size} / 2) * ${shares} / ${total_${folder}}")  # where its middle lies
    math(EXPR before_${folder} "${before_${folder}} + ${size}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${share})
  endforeach()
endfunction()

# The name of a source's folder, and how many bytes the source has.
function(source_size source folder size)
  get_filename_component(path ${source} ABSOLUTE)
  file(SIZE ${path} bytes)
  get_filename_component(path ${path} DIRECTORY)
  get_filename_component(name ${path} NAME)
  set(${folder} ${name} PARENT_SCOPE)
  set(${size} ${bytes} PARENT_SCOPE)
endfunction()

# compile_in_batches(<target> [<sources>]): so many sources, by default eight, are one compilation.
#
# Most of what the compiler does for a small source is to read headers and to compile templates, which its neighbours need
# as well: batches of four take three fifths of the processor time for src/hlo and src/passes, two thirds for src/lazy, less
# than half for src/aten; of eight another fifth to a third less. A change of one source compiles its batch: src/aten's, which
# take long, are of two. Names in the unnamed namespaces of a folder are therefore different ones.
# Sources with compile options of their own stay by themselves; so does everything with -DTORCH_XLA_BATCHES=OFF, where each
# source has to include what it uses, and which scripts/lint wants.
function(compile_in_batches target)
  set(sources 8 ${ARGN})
  list(GET sources -1 sources)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TORCH_XLA_BATCHES} UNITY_BUILD_BATCH_SIZE ${sources}
    UNITY_BUILD_RELOCATABLE ON)  # for ccache: another checkout's batches are the same
endfunction()

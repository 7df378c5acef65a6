# One folder of src/ is one library that links only the layers named for it: a forbidden include does not
# build, because the folder below is not on its include path.
#
# Each layer's headers are reached as "layer/file.h". To keep layers that are not named out of reach, the
# include path holds a directory of links to the allowed layers only.
function(add_layer name)
  cmake_parse_arguments(LAYER "" "DIRECTORY" "USES;SOURCES" ${ARGN})
  if(LAYER_SOURCES)
    add_library(${name} STATIC ${LAYER_SOURCES})
    set(visibility PUBLIC)
  else()
    add_library(${name} INTERFACE)  # headers only
    set(visibility INTERFACE)
  endif()
  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view})
  string(REGEX REPLACE "/.*" "" top ${LAYER_DIRECTORY})
  if(LAYER_DIRECTORY STREQUAL top)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${top} ${view}/${top} SYMBOLIC)
  else()
    file(MAKE_DIRECTORY ${view}/${top})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${LAYER_DIRECTORY} ${view}/${LAYER_DIRECTORY} SYMBOLIC)
  endif()
  target_include_directories(${name} ${visibility} ${view})
  target_link_libraries(${name} ${visibility} ${LAYER_USES})
  # Every layer may use src/process/.
  if(NOT name STREQUAL process)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/process ${view}/process SYMBOLIC)
    target_link_libraries(${name} ${visibility} $<LINK_ONLY:process>)
  endif()
endfunction()
